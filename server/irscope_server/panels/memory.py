"""``irscope/memory``: what holds memory, and when: of a step that was measured, and by the plans of a compile."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from irscope.measures.memory import MEASURES, Buffer, Category, buffers_of, by_module
from irscope.measures.tree import chained, folded, tree_of
from irscope.pipelines.registry import role_of
from irscope.profiling.buffer_places import GRADIENTS, OUTPUTS, SAVED
from irscope.profiling.changes import stored_profile
from irscope.profiling.step_memory import BUFFERS, INPUTS, PARAMETERS, STATES, VARIABLES, HeldBlock, reserved_words
from irscope.protocol import Compile, Report, StageRef
from irscope.store.store import Store
from irscope.vocabulary import units
from irscope.vocabulary.stages import Role
from irscope.vocabulary.units import percent

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.panels.answers import (
    CompileChoice,
    answer,
    compile_choices,
    compile_named,
    place_uri,
    profiled_run,
    why_empty,
)
from irscope_server.panels.trees import NO_TREE, MeasureTree, tree_answer
from irscope_server.stages.tree import UriOf

_CATEGORIES: dict[str, Category] = {
    PARAMETERS: "parameters", BUFFERS: "parameters", GRADIENTS: "gradients", STATES: "optimizer", INPUTS: "inputs",
    VARIABLES: "inputs", SAVED: "kept", OUTPUTS: "returned",
}  # fmt: skip
"""What the kinds of blocks are in the chart; all others are temporary."""


@dataclass(frozen=True)
class MemoryParams:
    """A run and one of its compiles; without it, the compile with the most operations."""

    run: str
    compile: str | None = None


@dataclass(frozen=True)
class MemoryBuffer(Buffer):
    """A buffer of a memory plan, or a block of a measured step, with its line in the document of the plan, or in one of its
    own."""

    line: int
    uri: str = ""
    places: tuple[Place, ...] = ()
    """The user's lines, where they are known without a look at the whole graph."""


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of one schedule, step by step; or of a measured step, whose "steps" are points in time."""

    stage: str
    title: str
    uri: str
    steps: tuple[str, ...]
    """The kernel of each call, or how much of the measured step has passed."""
    live: tuple[int, ...]
    """Bytes that the graph's own buffers hold during each step."""
    peak: int
    """The step at which that is the most."""
    beside: str
    """In words: what the bytes do not count, or what they are."""
    measured: bool
    buffers: tuple[MemoryBuffer, ...]
    modules: MeasureTree
    """What the buffers take, by module."""
    lines: MeasureTree
    """The same by call frame, where a step was measured; else empty."""


@dataclass(frozen=True)
class MemoryResult:
    """The measured step of a run, if there is one, and the memory plans of a compile; `reason` says in words why there are none."""

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

    report = await context.archive.report(params.run)
    profiled = await context.archive.ask(functools.partial(profiled_run, params.run, report.script))

    def read(store: Store, report: Report) -> MemoryResult:
        measured = _measured(store, profiled, context.uri_of)
        choices = compile_choices(report, context.uri_of, Role.MEMORY)
        compile = compile_named(report, params.compile, Role.MEMORY)
        if compile is None:
            return MemoryResult(report.run, report.pipeline, None, "", (), measured, why_empty(report, "memory plan"))
        plans = (*measured, *_plans(store, report, compile, context.uri_of))
        reason = "" if plans else why_empty(report, "memory plan", compile)
        return MemoryResult(report.run, report.pipeline, compile.id, compile.title, choices, plans, reason)

    return await answer(context, ("memory", params.run, params.compile, profiled), params.run, read)


def _measured(store: Store, run: str | None, uri_of: UriOf) -> tuple[MemoryPlan, ...]:
    """The measured step of a profiled run; empty if its memory was not measured."""
    profile = stored_profile(store, run) if run is not None else None
    if run is None or profile is None or (found := profile.memory) is None:
        return ()
    languages = {stage.id: stage.language for one in store.report(run).compiles for stage in one.stages}

    def block(one: HeldBlock) -> MemoryBuffer:
        return _held(one, uri_of_stage(run, one.stage, languages[one.stage]) if one.stage in languages else "", uri_of)

    beside = " ".join(each for each in (f"in {found.peak_in}.", reserved_words(found)) if each)
    return (
        MemoryPlan(
            "", "Measured step", "", tuple(percent(part, 1) for part, _ in found.curve),
            tuple(size for _, size in found.curve), max(range(len(found.curve)), key=lambda at: found.curve[at][1]),
            beside, True, tuple(map(block, found.held)), tree_answer(folded(found.by_kind), uri_of),
            tree_answer(chained(found.by_line), uri_of),
        ),
    )  # fmt: skip


def _held(one: HeldBlock, code: str, uri_of: UriOf) -> MemoryBuffer:
    """A block of a measured step; ``code`` is the URI of the output code that allocates it."""
    name = f"{one.name or one.kind}{f' ×{one.count}' if one.count > 1 else ''}"
    places = (Place(place_uri(uri_of, one.file), max(0, one.line - 1)),) if one.file else ()
    about = ": ".join(each for each in (one.kind if one.name else "", one.why) if each)
    return MemoryBuffer(
        name, one.bytes, "", _CATEGORIES.get(one.kind, "temporary"), "", "", one.first, one.last, about, one.module,
        max(0, one.code_line - 1), code, places,
    )  # fmt: skip


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
        f"beside {units.size(sum(int(size) for _, size in data['inputs']))} of inputs",
        False,
        tuple(MemoryBuffer(**vars(buffer), line=lines.get(buffer.name, 0)) for buffer in buffers),
        tree_answer(tree, uri_of),
        NO_TREE,
    )


REQUEST = PanelRequest("irscope/memory", MemoryParams, MemoryResult, memory)
