"""``irscope/memory``: the buffers of a compile over its schedule, and what holds the peak."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from irscope.ir.nodes import modules_of
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, Report, StageRef
from irscope.provenance import chain
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.panels.answers import CompileChoice, answer, compile_choices, compile_named, why_empty

Category = Literal["returned", "kept", "temporary", "borrowed"]


@dataclass(frozen=True)
class MemoryParams:
    """A run and one of its compiles; without it, the compile with the most operations."""

    run: str
    compile: str | None = None


@dataclass(frozen=True)
class MemoryBuffer:
    """A buffer of a memory plan: its bytes, and the steps `first` to `last` in which its memory is held."""

    name: str
    bytes: int
    dtype: str
    category: Category
    """``returned`` to the caller, ``kept`` for the backward, ``temporary``; ``borrowed``: a view, or the memory of an
    input, so that it counts as 0."""
    how: str
    """``allocated``, ``extern``, ``reuse`` or ``view``."""
    of: str
    """The buffer whose memory it takes over or looks at."""
    first: int
    last: int
    kernel: str
    """The call that writes it; empty if it is not known."""
    module: str
    """Path of the ``nn.Module`` that it is made in; empty if it is not known."""
    line: int
    """In the document of the plan."""


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
        compile = compile_named(report, params.compile)
        if compile is None:
            return MemoryResult(report.run, report.pipeline, None, "", (), (), why_empty(report, "memory plan"))
        plans = tuple(_plans(store, report, compile))
        reason = "" if plans else why_empty(report, "memory plan of this compile")
        return MemoryResult(report.run, report.pipeline, compile.id, compile.title, choices, plans, reason)

    return await answer(context, ("memory", params.run, params.compile), params.run, read)


def _plans(store: Store, report: Report, compile: Compile) -> list[MemoryPlan]:
    found = []
    for stage in compile.stages:
        if role_of(stage.name) is not Role.MEMORY:
            continue
        data = store.stage_data(report.run, stage.id)
        try:
            found.append(_plan(store, report, compile, stage, data))
        except (LookupError, TypeError, ValueError, AttributeError):
            continue  # data of another version, or from elsewhere
    return found


def _plan(store: Store, report: Report, compile: Compile, stage: StageRef, data: Any) -> MemoryPlan:
    kept = _kept(store, report.run, compile, stage, data)
    writers = writers_of(store, report.run, compile, stage)
    lines = {
        line.split(maxsplit=1)[0]: number
        for number, line in enumerate(store.stage_text(report.run, stage.id).split("\n"))
        if line[:1].isalpha()
    }
    buffers = []
    own: set[str] = set()
    for buffer in data["buffers"]:  # a buffer comes after the one whose memory it takes
        if buffer["how"] in ("allocated", "extern") or (buffer["how"] == "reuse" and buffer["of"] in own):
            own.add(buffer["name"])
        writer = writers.get(buffer["name"], _UNKNOWN)
        buffers.append(
            MemoryBuffer(
                str(buffer["name"]),
                int(buffer["bytes"]),
                str(buffer["dtype"]),
                _category(buffer, own, kept),
                str(buffer["how"]),
                str(buffer["of"]),
                int(buffer["first"]),
                int(buffer["last"]),
                writer.kernel,
                writer.module,
                lines.get(str(buffer["name"]), 0),
            )
        )
    return MemoryPlan(
        stage.id,
        words.stage_title(stage),
        uri_of_stage(report.run, stage.id, stage.language),
        tuple(str(step["kernel"]) for step in data["steps"]),
        tuple(int(step["live"]) for step in data["steps"]),
        int(data["peak"]["step"]),
        sum(int(size) for _, size in data["inputs"]),
        tuple(buffers),
    )


def _category(buffer: Mapping[str, Any], own: set[str], kept: frozenset[str]) -> Category:
    if buffer["name"] not in own:
        return "borrowed"
    if buffer["name"] in kept:
        return "kept"
    return "returned" if buffer["output"] else "temporary"


@dataclass(frozen=True)
class Writer:
    """What writes a buffer: a node after fusion, its kernel, and the path of the module that it is in."""

    schedule: str
    node: str
    kernel: str
    module: str


_UNKNOWN = Writer("", "", "", "")


def _kept(store: Store, run: str, compile: Compile, stage: StageRef, data: Any) -> frozenset[str]:
    """Buffers that a forward returns for its backward alone: the last of its outputs, one for each saved value."""
    partition = next((one for one in compile.stages if role_of(one.name) is Role.PARTITION), None)
    outputs = data.get("outputs") or ()
    if partition is None or chain.is_backward(stage) or not outputs:
        return frozenset()
    saved = len(store.stage_data(run, partition.id)["saved"])
    theirs = len(outputs) - saved
    of = {str(buffer["name"]): str(buffer["of"]) for buffer in data["buffers"] if buffer["how"] == "view"}
    return frozenset(_behind(outputs[theirs:], of) - _behind(outputs[:theirs], of)) if theirs >= 0 else frozenset()


def _behind(names: Any, of: Mapping[str, str]) -> set[str]:
    """Buffers, and those that the views among them look at."""
    found = set()
    for name in map(str, names):
        while name not in found:
            found.add(name)
            name = of.get(name, name)
    return found


_ROOT = re.compile(r"^[LG]\['(\w+)'\]")
_ITEM = re.compile(r"\._modules\['([^']+)'\]|\['([^']+)'\]")


@functools.lru_cache(maxsize=4096)
def _module_path(path: str) -> str:
    """``model.bert.encoder`` for Dynamo's ``G['model']._modules['bert'].encoder``."""
    return _ITEM.sub(lambda match: f".{match[1] or match[2]}", _ROOT.sub(r"\1", path))


def writers_of(store: Store, run: str, compile: Compile, stage: StageRef) -> dict[str, Writer]:
    """Which node after fusion writes each buffer; one that never leaves its kernel is told before fusion only."""
    side = chain.is_backward(stage)
    mine = [one for one in compile.stages if chain.is_backward(one) == side]
    rows = {
        stage_kind(one.name).is_fused: (one.id, (store.stage_data(run, one.id) or {}).get("nodes") or ())
        for one in mine
        if role_of(one.name) is Role.SCHEDULE
    }
    modules: dict[str, str] = {}
    for one in mine:
        if stage_kind(one.name).is_lowered and not one.passed:
            modules = modules_of(store.stage_data(run, one.id))
    schedule, fused = rows.get(True, ("", ()))
    homes = {str(part): node for node in fused for part in node["parts"]}
    found: dict[str, Writer] = {}
    for node in rows.get(False, ("", ()))[1]:
        home = homes.get(str(node["name"]))
        if home is None:
            continue
        module = next((_module_path(modules[name]) for name in reversed(node["origins"]) if name in modules), "")
        for name, _ in node["writes"]:
            found[str(name)] = Writer(schedule, str(home["name"]), str(home["kernel"]).partition(":")[0], module)
    return found


REQUEST = PanelRequest("irscope/memory", MemoryParams, MemoryResult, memory)
