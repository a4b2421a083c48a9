"""The memory that a graph plans: its buffers with what writes each, and the bytes at the peak by module."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from irscope.ir.nodes import modules_of
from irscope.measures.compiled import module_parts
from irscope.measures.tree import Measure, Path, PathPart, PathTree, tree_of
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, Report, StageRef
from irscope.provenance import chain
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

MEASURES = (Measure("at the peak", "bytes"), Measure("allocated", "bytes"), Measure("buffers", "count"))
Category = Literal["returned", "kept", "temporary", "borrowed", "parameters", "gradients", "optimizer", "inputs"]


@dataclass(frozen=True)
class Buffer:
    """A buffer of a memory plan: its bytes, and the steps `first` to `last` in which its memory is held."""

    name: str
    bytes: int
    dtype: str
    category: Category
    """``returned`` to the caller, ``kept`` for the backward, ``temporary``; ``borrowed``: a view, or the memory of an
    input, so that it counts as 0.  The others are of a measured step."""
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


def buffers_of(store: Store, run: str, compile: Compile, stage: StageRef) -> Iterator[Buffer]:
    """The buffers of a plan in its order.  Raises LookupError, TypeError, ValueError or AttributeError for data of another
    version, or from elsewhere."""
    data = store.stage_data(run, stage.id)
    kept = _kept(store, run, compile, stage, data)
    writers = writers_of(store, run, compile, stage)
    own: set[str] = set()
    for buffer in data["buffers"]:  # a buffer comes after the one whose memory it takes
        name, how, of = str(buffer["name"]), str(buffer["how"]), str(buffer["of"])
        if how in ("allocated", "extern") or (how == "reuse" and of in own):
            own.add(name)
        writer = writers.get(name, _UNKNOWN)
        span = int(buffer["first"]), int(buffer["last"])
        category = "borrowed" if name not in own else "kept" if name in kept else _category(buffer)
        yield Buffer(
            name, int(buffer["bytes"]), str(buffer["dtype"]), category, how, of, *span, writer.kernel, writer.module
        )


def _category(buffer: Mapping[str, Any]) -> Category:
    return "returned" if buffer["output"] else "temporary"


def memory_tree(store: Store, report: Report) -> PathTree:
    """The bytes that are planned in all graphs, by what was compiled, by graph and by module.

    The graphs of a run need not have their peaks at the same time, so the whole is their sum, and no memory of the run.
    """
    values: dict[Path, list[float]] = {}
    for compile in report.compiles:
        for stage in compile.stages:
            if role_of(stage.name) is not Role.MEMORY:
                continue
            try:
                peak = int(store.stage_data(report.run, stage.id)["peak"]["step"])
                buffers = list(buffers_of(store, report.run, compile, stage))
            except (LookupError, TypeError, ValueError, OverflowError, AttributeError):
                continue  # data of another version, or from elsewhere
            title = PathPart(compile.title, compile.id, compile.file, compile.line)
            graph = title, PathPart("backward" if chain.is_backward(stage) else "forward")
            values.update((graph + path, row) for path, row in by_module(buffers, peak).items())
    return tree_of("this run", MEASURES, values)


def by_module(buffers: Iterable[Buffer], peak: int) -> dict[Path, list[float]]:
    """The measures of the buffers that have memory of their own, by the path of the module that each is made in.

    Args:
        peak: The step at which most memory is held.
    """
    values: dict[Path, list[float]] = {}
    for buffer in buffers:
        if buffer.category == "borrowed":
            continue
        row = values.setdefault(tuple(module_parts(buffer.module)), [0.0, 0.0, 0.0])
        row[0] += buffer.bytes if buffer.first <= peak <= buffer.last else 0
        row[1] += 0 if buffer.how == "reuse" else buffer.bytes
        row[2] += 1
    return values


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


@dataclass(frozen=True)
class Writer:
    """What writes a buffer: a node after fusion, its kernel, the path of the module that it is in, and its nodes of the
    last graph."""

    schedule: str
    node: str
    kernel: str
    module: str
    origins: tuple[str, ...] = ()


_UNKNOWN = Writer("", "", "", "")
_ROOT = re.compile(r"^[LG]\['(\w+)'\]")
_ITEM = re.compile(r"\._modules\['([^']+)'\]|\['([^']+)'\]")


@functools.lru_cache(maxsize=4096)
def _module_path(path: str) -> str:
    """``model.bert.encoder`` for Dynamo's ``G['model']._modules['bert'].encoder``; without ``self``, which is compiled."""
    named = _ITEM.sub(lambda match: f".{match[1] or match[2]}", _ROOT.sub(r"\1", path))
    return named.removeprefix("self").lstrip(".") if named.startswith("self.") else named


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
            kernel, origins = str(home["kernel"]).partition(":")[0], tuple(map(str, node["origins"]))
            found[str(name)] = Writer(schedule, str(home["name"]), kernel, module, origins)
    return found
