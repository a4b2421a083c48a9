"""What one rank computes while its collectives run, and how that changed on the way down to output code.

The order of the output code is what counts, since the scheduler of Inductor has the last word.  If it is missing (the
fast lane, a trace that is cut), it is that of the lowest graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from irscope.comparing.ranks.differences import RankRun, line_of
from irscope.comparing.ranks.normalized import RankNode, normalized
from irscope.comparing.ranks.order import MOST_COLLECTIVES, Span, Step, spans_of_code, spans_of_graph
from irscope.comparing.ranks.parts import Part, parts_of, tops_of
from irscope.comparing.ranks.traffic import bytes_given, bytes_of
from irscope.protocol import CollectiveOverlap, Origin, OverlapMove, StageRef
from irscope.vocabulary.records import dataclass

_MOST_NAMED = 30
_MOST_VERSIONS = 60
"""Graphs after passes that are read for one part of a compile."""
_MARKS = ("c10d", "symm_mem")
_DEFAULT_GROUP = "0"
_NO_GROUPS: Mapping[str, int] = {}


def overlaps_of(run: RankRun, world: int = 0, groups: Mapping[str, int] = _NO_GROUPS) -> list[CollectiveOverlap]:
    """The collectives of one call of everything that a rank compiled, each with what is computed beside it.

    Args:
        world: Ranks of the whole job, which are those of its first group; 0 if it is not known.
        groups: Ranks of the groups that the rank was seen to have, by name.  For other groups, the operations that name
            a size tell it.
    """
    found: list[CollectiveOverlap] = []
    for compile in run.report.compiles:
        if not any(_communicates(run.text(stage.id)) for stage in tops_of(compile.stages)):
            continue  # no pass makes a collective of anything else
        for part in parts_of(compile.stages, run.text):
            found += _of_part(run, compile.id, part)
            if len(found) >= MOST_COLLECTIVES:
                break
    sizes = {**groups, **{one.group: one.group_size for one in found if one.group_size is not None}}
    if world:
        sizes.setdefault(_DEFAULT_GROUP, world)  # PyTorch numbers groups, and the first is that of all ranks
    return [replace(one, group_size=one.group_size or sizes.get(one.group)) for one in found[:MOST_COLLECTIVES]]


def _of_part(run: RankRun, compile: str, part: Part) -> Iterator[CollectiveOverlap]:
    graphs = [graph for stage in part.graphs if (graph := _read(run, stage)) is not None]
    lowest = graphs[-1] if graphs else None
    code = _spans(run, part.code, spans_of_code) if part.code is not None else []
    if part.code is not None and code:
        pairs: Iterable[tuple[Span, str]] = _named(code, run.data(part.code.id), lowest)
        stage = part.code.id
    elif lowest is not None:  # no code, or code in another language
        pairs, stage = [(span, span.node) for span in lowest.spans.values()], lowest.stage.id
    else:
        return
    for span, node in pairs:
        moves = _moves(graphs, node)
        yield _overlap(compile, stage, span, lowest.facts(node) if lowest is not None else _NOTHING, moves)


@dataclass(frozen=True)
class _Facts:
    origin: Origin | None
    sent: int | None
    received: int | None


_NOTHING = _Facts(None, None, None)


class _Graph:
    """A graph of a part, with its collectives by the names of their nodes."""

    def __init__(self, run: RankRun, stage: StageRef, spans: Sequence[Span]) -> None:
        self._run, self.stage = run, stage
        self.spans: Mapping[str, Span] = {span.node: span for span in spans}

    def facts(self, name: str) -> _Facts:
        nodes = self._nodes
        if (at := self._places.get(name)) is None:
            return _NOTHING
        given = bytes_given(nodes[at].node, self._by_name)
        return _Facts(line_of(nodes, at), given, bytes_of(nodes[at].node.detail))

    @cached_property
    def _nodes(self) -> Sequence[RankNode]:
        return normalized(self._run.text(self.stage.id), self._run.data(self.stage.id))

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {each.node.name: at for at, each in enumerate(self._nodes)}

    @cached_property
    def _by_name(self) -> Mapping[str, RankNode]:
        return {each.node.name: each for each in self._nodes}


def _read(run: RankRun, stage: StageRef) -> _Graph | None:
    """A graph that communicates; None for any other, and for a text that is cut or of another version."""
    spans = _spans(run, stage, spans_of_graph)
    return _Graph(run, stage, spans) if spans else None


def _spans(run: RankRun, stage: StageRef, read: Callable[[str, Any], list[Span]]) -> list[Span]:
    text = run.text(stage.id)
    if not _communicates(text):
        return []
    try:
        return read(text, run.data(stage.id))
    except ValueError:
        return []


def _communicates(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


def _named(spans: Sequence[Span], data: Any, graph: _Graph | None) -> Iterator[tuple[Span, str]]:
    """The collectives of output code, each with its node in the graph that was lowered; empty if that is not known."""
    told = _origins(data)
    left: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for span in graph.spans.values() if graph is not None else ():
        left[span.operation, span.reduction, span.group].append(span.node)
    for number, span in enumerate(spans):
        names = left[span.operation, span.reduction, span.group]
        mine = told[number] if len(told) == len(spans) else ()
        name = next((name for name in mine if name in names), names[0] if names else "")
        if name:
            names.remove(name)
        yield span, name


def _origins(data: Any) -> list[Sequence[str]]:
    """The nodes of each collective that output code starts, in its order, from what is kept beside the code."""
    calls = data.get("calls") if isinstance(data, dict) else None
    found: list[Sequence[str]] = []
    for call in calls if isinstance(calls, list) else ():
        kernel, origins = (call.get("kernel"), call.get("origins")) if isinstance(call, dict) else (None, None)
        if isinstance(kernel, str) and any(mark in kernel for mark in _MARKS) and "wait_tensor" not in kernel:
            found.append([name for name in origins if isinstance(name, str)] if isinstance(origins, list) else [])
    return found


def _moves(graphs: Sequence[_Graph], node: str) -> Iterator[OverlapMove]:
    last: int | None = None
    for graph in graphs[:_MOST_VERSIONS]:
        span = graph.spans.get(node)
        if span is not None and span.steps is not None and len(span.steps) != last:
            last = len(span.steps)
            yield OverlapMove(graph.stage.id, graph.stage.passed, last)


def _overlap(compile: str, stage: str, span: Span, facts: _Facts, moves: Iterator[OverlapMove]) -> CollectiveOverlap:
    moved, flops = costs_of(span.steps or ())
    return CollectiveOverlap(
        compile=compile,
        stage=stage,
        start=span.start,
        wait=span.wait,
        operation=span.operation,
        reduction=span.reduction,
        group=span.group,
        group_size=span.group_size,
        sent_bytes=facts.sent,
        received_bytes=facts.received,
        file=facts.origin.file if facts.origin else "",
        line=facts.origin.line if facts.origin else 0,
        operations=None if span.steps is None else len(span.steps),
        work=tuple(step.name for step in (span.steps or ())[:_MOST_NAMED]),
        moved_bytes=moved,
        flops=flops,
        moves=tuple(moves),
    )


def costs_of(steps: Sequence[Step]) -> tuple[int | None, int | None]:
    """Bytes that they move together, and their operations; None if that is not known."""
    moved = [step.moved for step in steps]
    flops = [step.flops for step in steps if step.flops is not None]
    return None if None in moved else sum(each or 0 for each in moved), sum(flops) if flops else None
