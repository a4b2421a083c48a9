"""``irscope/memory``: the buffers of a compile over its schedule, and what holds the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.measures.memory import MEASURES, Buffer, buffers_of, by_module
from irscope.measures.tree import folded, tree_of
from irscope.pipelines.registry import role_of
from irscope.protocol import Compile, Report, StageRef
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.panels.answers import CompileChoice, answer, compile_choices, compile_named, why_empty
from irscope_server.panels.trees import MeasureTree, tree_answer
from irscope_server.stages.tree import UriOf


@dataclass(frozen=True)
class MemoryParams:
    """A run and one of its compiles; without it, the compile with the most operations."""

    run: str
    compile: str | None = None


@dataclass(frozen=True)
class MemoryBuffer(Buffer):
    """A buffer of a memory plan, with its line in the document of the plan."""

    line: int


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of one schedule, step by step."""

    stage: str
    title: str
    uri: str
    steps: tuple[str, ...]
    """The kernel of each call."""
    live: tuple[int, ...]
    """Bytes that the graph's own buffers hold during each step."""
    peak: int
    """The step at which that is the most."""
    inputs: int
    """Bytes of what the caller gives, which the plan does not count."""
    buffers: tuple[MemoryBuffer, ...]
    modules: MeasureTree
    """What the buffers take, by module."""


@dataclass(frozen=True)
class MemoryResult:
    """The memory plans of a compile; `reason` says in words why there are none."""

    run: str
    pipeline: str
    """The name of the pipeline that the run's programs went through."""
    compile: str | None
    function: str
    compiles: tuple[CompileChoice, ...]
    """The compiles that have a plan."""
    plans: tuple[MemoryPlan, ...]
    reason: str


async def memory(context: ReadContext, params: MemoryParams) -> Encoded:
    """Raises LookupError for an unknown run or compile."""

    def read(store: Store, report: Report) -> MemoryResult:
        choices = compile_choices(report, context.uri_of, Role.MEMORY)
        compile = compile_named(report, params.compile, Role.MEMORY)
        if compile is None:
            return MemoryResult(report.run, report.pipeline, None, "", (), (), why_empty(report, "memory plan"))
        plans = tuple(_plans(store, report, compile, context.uri_of))
        reason = "" if plans else why_empty(report, "memory plan", compile)
        return MemoryResult(report.run, report.pipeline, compile.id, compile.title, choices, plans, reason)

    return await answer(context, ("memory", params.run, params.compile), params.run, read)


def _plans(store: Store, report: Report, compile: Compile, uri_of: UriOf) -> list[MemoryPlan]:
    found = []
    for stage in compile.stages:
        if role_of(stage.name) is not Role.MEMORY:
            continue
        data = store.stage_data(report.run, stage.id)
        try:
            found.append(_plan(store, report, compile, stage, data, uri_of))
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError):
            continue  # data of another version, or from elsewhere
    return found


def _plan(store: Store, report: Report, compile: Compile, stage: StageRef, data: Any, uri_of: UriOf) -> MemoryPlan:
    lines = {
        line.split(maxsplit=1)[0]: number
        for number, line in enumerate(store.stage_text(report.run, stage.id).split("\n"))
        if line[:1].isalpha()
    }
    buffers = list(buffers_of(store, report.run, compile, stage))
    peak = int(data["peak"]["step"])
    tree = folded(tree_of("this graph", MEASURES, by_module(buffers, peak)))
    return MemoryPlan(
        stage.id,
        words.stage_title(stage),
        uri_of_stage(report.run, stage.id, stage.language),
        tuple(str(step["kernel"]) for step in data["steps"]),
        tuple(int(step["live"]) for step in data["steps"]),
        peak,
        sum(int(size) for _, size in data["inputs"]),
        tuple(MemoryBuffer(**vars(buffer), line=lines.get(buffer.name, 0)) for buffer in buffers),
        tree_answer(tree, uri_of),
    )


REQUEST = PanelRequest("irscope/memory", MemoryParams, MemoryResult, memory)
