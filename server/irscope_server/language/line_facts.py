"""What the graphs of a run say of the user's lines: the operations that came from each, with what they give.

From the Dynamo graph, which both lanes have: its nodes are still those that the user wrote, and each names its line.
The forward graph of a deep run has the cost of an operation.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from irscope.comparing.ranks.differences import RankRun
from irscope.comparing.ranks.overlaps import overlaps_of
from irscope.ir.graphs import GraphNode, parse_graph
from irscope.ir.nodes import facts_of
from irscope.ir.symbols import symbols_of
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import CollectiveOverlap, Compile, Report
from irscope.protocol.symbols import SymbolFacts
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base.context import ReadContext
from irscope_server.base.texts import FileKey, file_key, lines_by_file
from irscope_server.running.results import Ended, frame_of

T = TypeVar("T")
P = TypeVar("P")

_NEWEST = 4
"""Compiles of one frame that are read: a frame that recompiles a thousand times has a thousand graphs."""

_LARGEST = 48_000_000
"""Characters of graphs that are read of one run."""

_KEPT_RUNS = 6
_ARGUMENT = re.compile(r"^[lL]_(?P<name>\w+)_$")
_SIZES = re.compile(r"^(?P<dtype>\w+)(?P<sizes>\[[^\[\]]*\])(?P<strides>\[[^\[\]]*\])?(?P<device>.*)$")
_SYM = re.compile(r"^Sym\((?P<text>.*)\)$")


@dataclass(frozen=True)
class Op:
    """An operation of a Dynamo graph that came from a line.

    Args:
        detail: What it gives, as printed: ``f32[s77, 64][64, 1]cpu``, ``Sym(s77)``; empty if it is neither.
        line: 1-based line of the user's file.
        inputs: Names of the operations that it uses.
        number: Its place in the graph.
    """

    compile: str
    name: str
    target: str
    detail: str
    line: int
    inputs: tuple[str, ...]
    number: int = 0


@dataclass(frozen=True)
class LineFacts:
    """What is known about the lines of a run's files.

    Args:
        ops: By file and 1-based line, in the order of the graphs, older compiles first.
        arguments: By compile and name of a parameter, what was handed in.
        symbols: By compile and name.
        flops: By file and line: of one call of the newest compile, forward only.  Only lines with some.
        functions: By file, first line and name of each function that was compiled in another, with the compiles.
        texts: By file, its lines as they ran.
        overlaps: By file and line, the collectives that came from it, with what runs beside them.
    """

    ops: Mapping[FileKey, Mapping[int, Sequence[Op]]] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    symbols: Mapping[str, Mapping[str, SymbolFacts]] = field(default_factory=dict)
    flops: Mapping[FileKey, Mapping[int, int]] = field(default_factory=dict)
    functions: Mapping[FileKey, Mapping[tuple[int, str], Sequence[str]]] = field(default_factory=dict)
    texts: Mapping[FileKey, Sequence[str]] = field(default_factory=dict)
    overlaps: Mapping[FileKey, Mapping[int, Sequence[CollectiveOverlap]]] = field(default_factory=dict)


class LineFactsOfRuns:
    """Reads them off the event loop; the last few runs are kept."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._known: OrderedDict[str, asyncio.Future[LineFacts]] = OrderedDict()

    async def of(self, ended: Ended) -> LineFacts:
        """The facts of a run that has ended; none if the store no longer has it."""
        if not ended.run:
            return LineFacts()
        if ended.run not in self._known:
            self._known[ended.run] = asyncio.ensure_future(self._read(ended.full or ended.report))
            while len(self._known) > _KEPT_RUNS:
                self._known.popitem(last=False)
        self._known.move_to_end(ended.run)
        return await asyncio.shield(self._known[ended.run])

    async def _read(self, report: Report) -> LineFacts:
        try:
            texts, functions, sources, overlaps = await self._context.archive.ask(
                lambda store: (
                    _read_texts(store, report),
                    _read_functions(store, report),
                    store.sources(report.run),
                    _read_overlaps(store, report),
                )
            )
        except Exception:  # noqa: BLE001  an unreadable store says so elsewhere; a hint is not a place for it
            return LineFacts()
        return await asyncio.to_thread(facts_of_texts, texts, functions, sources, overlaps)


@dataclass(frozen=True)
class CompileTexts:
    """What is read of a compile: its Dynamo graph, and the data of its symbols and of the graphs that tell costs."""

    compile: Compile
    graph: str
    symbols: Any = None
    costed: tuple[Any, ...] = ()


def _read_texts(store: Store, report: Report) -> list[CompileTexts]:
    """In the order of the report; of each frame the newest compiles that have a graph."""
    chosen: list[Compile] = []
    seen: dict[str, int] = {}
    for compile in reversed(report.compiles):
        if any(stage_kind(stage.name).is_captured for stage in compile.stages):
            seen[frame_of(compile)] = seen.get(frame_of(compile), 0) + 1
            if seen[frame_of(compile)] <= _NEWEST:
                chosen.append(compile)
    texts, read = [], 0
    for compile in chosen:
        graph = [stage for stage in compile.stages if stage_kind(stage.name).is_captured][-1]
        read += graph.bytes
        if read > _LARGEST:
            break
        symbols = [stage for stage in compile.stages if role_of(stage.name) is Role.SYMBOLS]
        costed = [stage for stage in compile.stages if stage_kind(stage.name).takes_costs]
        texts.append(
            CompileTexts(
                compile,
                store.stage_text(report.run, graph.id),
                store.stage_data(report.run, symbols[-1].id) if symbols else None,
                tuple(store.stage_data(report.run, stage.id) for stage in costed),
            )
        )
    return texts[::-1]


def _read_overlaps(store: Store, report: Report) -> list[CollectiveOverlap]:
    """The overlaps of a rank, or of a script that is one itself."""
    world = report.world or store.how_run(report.run)[0].get("world", 0)
    run = RankRun(0, report, lambda id: store.stage_text(report.run, id), lambda id: store.stage_data(report.run, id))
    return overlaps_of(run, world if isinstance(world, int) else 0)


def _read_functions(store: Store, report: Report) -> dict[str, list[tuple[str, int, str]]]:
    """By compile, file, first line and name of the functions in it; of each frame those of the newest compiles."""
    functions: dict[str, list[tuple[str, int, str]]] = {}
    seen: dict[str, int] = {}
    for compile in reversed(report.compiles):
        stages = [stage for stage in compile.stages if role_of(stage.name) is Role.REWRITTEN]
        seen[frame_of(compile)] = seen.get(frame_of(compile), 0) + 1
        if not stages or seen[frame_of(compile)] > _NEWEST:
            continue
        data = store.stage_data(report.run, stages[-1].id)
        if isinstance(data, dict):
            places = data.get("functions", ())
            functions[compile.id] = [(str(file), int(line), str(name)) for file, line, name in places]
    return functions


def facts_of_texts(
    texts: Sequence[CompileTexts],
    functions: Mapping[str, Sequence[tuple[str, int, str]]] | None = None,
    sources: Mapping[str, str] | None = None,
    overlaps: Sequence[CollectiveOverlap] = (),
) -> LineFacts:
    """The facts of a run's compiles, given in their order."""
    ops: dict[FileKey, dict[int, list[Op]]] = {}
    compiles: dict[FileKey, dict[tuple[int, str], list[str]]] = {}
    collectives: dict[FileKey, dict[int, list[CollectiveOverlap]]] = {}
    arguments: dict[str, dict[str, str]] = {}
    symbols: dict[str, dict[str, SymbolFacts]] = {}
    flops: dict[FileKey, dict[int, int]] = {}
    for compiled in texts:
        try:
            nodes = parse_graph(compiled.graph).nodes
        except ValueError:
            continue
        name = compiled.compile.id
        symbols[name] = symbols_of(compiled.symbols)
        for number, node in enumerate(nodes):
            if node.op == "placeholder" and (match := _ARGUMENT.match(node.name)) and node.detail:
                arguments.setdefault(name, {})[match["name"]] = node.detail
            elif node.origin is not None and node.op == "call":
                _append(ops, node.origin.file, node.origin.line, _op(name, node, number))
        for key, costs in _flops(compiled.costed).items():
            flops.setdefault(key, {}).update(costs)
    for compile, walked in (functions or {}).items():
        for file, first_line, function in walked:
            _append(compiles, file, (first_line, function), compile)
    for overlap in overlaps:
        if overlap.file:
            _append(collectives, overlap.file, overlap.line, overlap)
    return LineFacts(ops, arguments, symbols, flops, compiles, lines_by_file(sources or {}), collectives)


def _append(files: dict[FileKey, dict[P, list[T]]], file: str, place: P, fact: T) -> None:
    files.setdefault(file_key(file), {}).setdefault(place, []).append(fact)


def _op(compile: str, node: GraphNode, number: int) -> Op:
    assert node.origin is not None
    return Op(compile, node.name, node.target, node.detail, node.origin.line, node.inputs, number)


def _flops(costed: Sequence[Any]) -> dict[FileKey, dict[int, int]]:
    """By file and line, of one compile."""
    files: dict[FileKey, dict[int, int]] = {}
    for data in costed:
        for node in facts_of(data):
            if node.flops and node.stack and not node.is_backward:
                frame = node.stack[-1]
                lines = files.setdefault(file_key(frame.file), {})
                lines[frame.line] = lines.get(frame.line, 0) + node.flops
    return files


def type_text(detail: str) -> str:
    """``f32[s77, 64]`` of ``f32[s77, 64][64, 1]cpu``; a device other than the CPU is told.  ``s77`` of ``Sym(s77)``."""
    if match := _SYM.match(detail):
        return match["text"]
    if match := _SIZES.match(detail):
        device = match["device"].strip()
        return match["dtype"] + match["sizes"] + (f" {device}" if device and device != "cpu" else "")
    return detail


def layout_text(detail: str) -> str:
    """``strides [64, 1], cpu`` of ``f32[s77, 64][64, 1]cpu``; empty if it is not a tensor."""
    match = _SIZES.match(detail)
    if match is None:
        return ""
    strides = f"strides {match['strides']}" if match["strides"] not in (None, "[]") else ""
    return ", ".join(part for part in (strides, match["device"].strip()) if part)


def short_target(target: str) -> str:
    """``linear`` of ``torch._C._nn.linear``, ``mm`` of ``torch.ops.aten.mm.default``."""
    parts = [part for part in target.split(".") if part]
    if len(parts) > 2 and parts[-1] in ("default", "Tensor", "Scalar", "int", "dim", "out") and "ops" in parts:
        parts.pop()
    return parts[-1] if parts else target
