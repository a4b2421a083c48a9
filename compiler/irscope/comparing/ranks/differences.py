"""The first place at which two ranks of a job compiled something else.

Compiles are matched as the n-th of their function.  Names the first node that differs between two graphs, and the kind
of difference; its consequences are not named.
"""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irscope.comparing.ranks.normalized import RankNode, normalized, numbers_in
from irscope.comparing.ranks.words import Size, sizes_of, with_sizes
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, CompileOutcome, Finding, Origin, Report, StageRef
from irscope.vocabulary.function_names import RESUME_PREFIX, plain_name
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role
from irscope.vocabulary.units import count


class What(str, enum.Enum):
    """How two ranks differ."""

    CONSTANT = "constant"
    """The graphs are the same but for numbers."""
    COLLECTIVE = "collective"
    """Other collectives, in another order, or of another size: the job hangs, or its numbers are wrong."""
    SHAPE = "shape"
    GRAPH = "graph"
    """Other operations."""
    BREAK = "break"
    """A graph break in one of them."""
    COUNT = "count"
    """One of them compiled a function more often."""
    MISSING = "missing"
    """One of them did not compile a function at all."""
    ORDER = "order"
    CACHE = "cache"
    """The cache has the graph of one of them only, so that the other compiles while the first waits."""


@dataclass(frozen=True)
class RankRun:
    """The run of one rank.

    Args:
        text, data: Return the text of a stage by its ID, and what is kept beside it.
    """

    rank: int
    report: Report
    text: Callable[[str], str]
    data: Callable[[str], Any] = lambda stage: None


@dataclass(frozen=True)
class Difference:
    """One difference between the first rank and another one.

    Args:
        compile: The compile of the first rank that it is in; of the other rank if the first has none.
        origin: The user's line; None if only the compile's function is known.
        first, other: What the two ranks have there, in words or as a statement of the graph.
        finding: The finding of one of the ranks that tells the place.
        is_captured: Whether it is in the graph that was traced from the user's code already.
        stage: ID of the stage in which it is seen first.
    """

    what: What
    ranks: tuple[int, int]
    compile: Compile
    first: str
    other: str
    origin: Origin | None = None
    finding: Finding | None = None
    is_captured: bool = False
    stage: str = ""


def differences(first: RankRun, other: RankRun) -> list[Difference]:
    """All differences of two ranks, one for each function at most."""
    pairs, more, fewer = matched(first, other)
    found: list[Difference] = []
    told: set[str] = set()  # functions in which a difference was named already

    def tell(difference: Difference | None) -> bool:
        if difference is None or (name := _function(difference.compile)) in told:
            return False
        told.add(name)
        found.append(difference)
        return True

    for mine, theirs in pairs:
        tell(
            _broken(first, other, mine, theirs)
            or _graphs(first, other, mine, theirs)
            or _cached(first, other, mine, theirs)
        )
    for run, against, compiles in ((first, other, fewer), (other, first, more)):
        for compile in compiles:
            if against.report.outcome.is_whole:  # else it only did not come so far
                tell(_not_there(first, other, run, compile))
    if not found:
        tell(_order(first, other))
    return found


def _function(compile: Compile) -> str:
    """The user's function, resume functions included."""
    return f"{compile.file}:{compile.qualified or plain_name(compile.function)}"


def _key(compile: Compile) -> tuple[str, str, int]:
    name = re.sub(rf"({RESUME_PREFIX}.*?)_at_\d+", r"\1", compile.function)
    return name, compile.file, compile.line


def matched(first: RankRun, other: RankRun) -> tuple[list[tuple[Compile, Compile]], list[Compile], list[Compile]]:
    """The compiles of two ranks: pairs, what only the other rank has, and what only the first has."""
    left: dict[tuple[str, str, int], list[Compile]] = defaultdict(list)
    for compile in other.report.compiles:
        left[_key(compile)].append(compile)
    pairs, fewer = [], []
    for compile in first.report.compiles:
        same = left.get(_key(compile))
        if same:
            pairs.append((compile, same.pop(0)))
        else:
            fewer.append(compile)
    rest = {compile.id for compiles in left.values() for compile in compiles}
    return pairs, [compile for compile in other.report.compiles if compile.id in rest], fewer


# --- compiles ---------------------------------------------------------------------------------------------------------


def _finding_in(run: RankRun, against: RankRun, compile: Compile, kinds: Sequence[str] = ()) -> Finding | None:
    """A finding of a compile that the other rank does not have."""
    theirs = {finding.cause for finding in against.report.findings}
    return next(
        (
            finding
            for finding in run.report.findings
            if compile.id in finding.compiles and finding.cause not in theirs and (not kinds or finding.kind in kinds)
        ),
        None,
    )


def _broken(first: RankRun, other: RankRun, mine: Compile, theirs: Compile) -> Difference | None:
    """A graph break, an error or a skipped frame of one of the two."""
    if mine.outcome is theirs.outcome or CompileOutcome.RUNNING in (mine.outcome, theirs.outcome):
        return None
    finding = _finding_in(first, other, mine) or _finding_in(other, first, theirs)
    said = mine.outcome.value, theirs.outcome.value
    return Difference(What.BREAK, (first.rank, other.rank), mine, *said, finding=finding)


def _not_there(first: RankRun, other: RankRun, run: RankRun, compile: Compile) -> Difference:
    """A compile that only ``run`` has."""
    against = other if run is first else first
    counts = [sum(_key(one) == _key(compile) for one in each.report.compiles) for each in (first, other)]
    finding = _finding_in(run, against, compile)
    what = What.COUNT if all(counts) else What.MISSING
    mine, theirs = (count(number, "compile") for number in counts)
    return Difference(what, (first.rank, other.rank), compile, mine, theirs, finding=finding)


def _order(first: RankRun, other: RankRun) -> Difference | None:
    pairs = zip(first.report.compiles, other.report.compiles, strict=False)
    for mine, theirs in pairs:
        if _key(mine) != _key(theirs):
            return Difference(What.ORDER, (first.rank, other.rank), mine, f"`{mine.title}`", f"`{theirs.title}`")
    return None


# --- graphs -----------------------------------------------------------------------------------------------------------


def _graphs(first: RankRun, other: RankRun, mine: Compile, theirs: Compile) -> Difference | None:
    """The first difference of the graphs of two compiles, from the captured one down."""
    for stage, twin in graph_pairs(mine, theirs):
        texts = first.text(stage.id), other.text(twin.id)
        if texts[0] == texts[1]:
            continue
        try:
            found = first_difference(
                normalized(texts[0], first.data(stage.id)), normalized(texts[1], other.data(twin.id))
            )
        except ValueError:
            continue  # a text that is cut, or of another version
        if found is not None:
            what, (here, there), origin = found
            captured = stage_kind(stage.name).is_captured
            ranks = (first.rank, other.rank)
            said = with_sizes(here, _sizes(first, mine)), with_sizes(there, _sizes(other, theirs))
            return Difference(what, ranks, mine, *said, origin=origin, is_captured=captured, stage=stage.id)
    return None


def _sizes(run: RankRun, compile: Compile) -> dict[str, Size]:
    stage = next((stage for stage in compile.stages if role_of(stage.name) is Role.SYMBOLS), None)
    return sizes_of(run.data(stage.id)) if stage is not None else {}


def graph_pairs(mine: Compile, theirs: Compile) -> Iterator[tuple[StageRef, StageRef]]:
    """The graphs that two compiles both have, from the captured one down."""
    there = {_side(stage): stage for stage in _compared(theirs)}
    for stage in _compared(mine):
        if (twin := there.get(_side(stage))) is not None:
            yield stage, twin


def _cached(first: RankRun, other: RankRun, mine: Compile, theirs: Compile) -> Difference | None:
    """The cache has the graph of one of the ranks, and not that of the other."""
    there = {_side(stage): stage for stage in theirs.stages}
    for stage in mine.stages:
        twin = there.get(_side(stage))
        if role_of(stage.name) is not Role.FACTS or twin is None:
            continue
        found = _found(first.data(stage.id)), _found(other.data(twin.id))
        if set(found) == {"hit", "miss"}:
            ranks, (a, b) = (first.rank, other.rank), found
            return Difference(What.CACHE, ranks, mine, f"a {a}", f"a {b}", stage=stage.id)
    return None


def _found(data: Any) -> str:
    """What a cache had for a graph; empty if it is not known."""
    told = data.get("found") if isinstance(data, dict) else None
    return told if isinstance(told, str) else ""


def _compared(compile: Compile) -> Iterator[StageRef]:
    for stage in compile.stages:
        kind = stage_kind(stage.name)
        if kind.is_compared and kind.is_graph and not stage.passed:
            yield stage


def _side(stage: StageRef) -> str:
    """The stage without its compile: ``forward-graph``."""
    return stage.id.rpartition("/")[2]


Found = tuple[What, tuple[str, str], "Origin | None"]


def first_difference(first: Sequence[RankNode], other: Sequence[RankNode]) -> Found | None:
    """What differs first between two graphs: how, the statements, and the user's line.

    Another sequence of collectives counts before anything else, since the job hangs there.  Numbers count last: only
    where nothing else differs.
    """
    if (found := _collectives(first, other)) is not None:
        return found
    constant: Found | None = None
    for at, (mine, theirs) in enumerate(zip(first, other, strict=False)):
        said = _statement(mine), _statement(theirs)
        if mine.operation != theirs.operation or mine.shape != theirs.shape:
            return What.GRAPH, said, line_of(first, at) or line_of(other, at)
        if mine.detail != theirs.detail:
            place = _first_user(first, at)
            return What.SHAPE, (mine.detail, theirs.detail), line_of(first, place)
        if mine.value != theirs.value and constant is None:
            constant = What.CONSTANT, _constants(mine, theirs), line_of(first, at)
    if len(first) != len(other):
        longer = first if len(first) > len(other) else other
        at = min(len(first), len(other))
        extra = _statement(longer[at])
        said = (extra, "nothing") if longer is first else ("nothing", extra)
        return What.GRAPH, said, line_of(longer, at)
    return constant


def _collectives(first: Sequence[RankNode], other: Sequence[RankNode]) -> Found | None:
    mine = [(at, node) for at, node in enumerate(first) if node.collective]
    theirs = [(at, node) for at, node in enumerate(other) if node.collective]
    for (at, a), (at_b, b) in zip(mine, theirs, strict=False):
        if (a.collective, _arguments(a), a.detail) != (b.collective, _arguments(b), b.detail):
            said = (f"{a.collective} of {a.detail}", f"{b.collective} of {b.detail}")
            if a.detail == b.detail:
                said = _statement(a), _statement(b)
            return What.COLLECTIVE, said, line_of(first, at) or line_of(other, at_b)
    if len(mine) == len(theirs):
        return None
    graph, (at, node) = (first, mine[len(theirs)]) if len(mine) > len(theirs) else (other, theirs[len(mine)])
    extra = f"{node.collective} of {node.detail}"
    said = (extra, "no collective") if graph is first else ("no collective", extra)
    return What.COLLECTIVE, said, line_of(graph, at)


def _arguments(node: RankNode) -> str:
    """Without the inputs, whose numbers shift with what is before."""
    return re.sub(r"\$\d+", "$", node.value)


def _statement(node: RankNode) -> str:
    if node.operation == "placeholder":
        return f"an input {node.detail}".strip()
    return f"return {node.said}" if node.operation == "output" else node.said


def _constants(mine: RankNode, theirs: RankNode) -> tuple[str, str]:
    """The first number that is not the same."""
    pairs = zip(numbers_in(mine.value), numbers_in(theirs.value), strict=False)
    return next(((a, b) for a, b in pairs if a != b), (mine.said, theirs.said))


def _first_user(nodes: Sequence[RankNode], at: int) -> int:
    """For an input: the node that uses it first; any other node itself."""
    if nodes[at].operation != "placeholder":
        return at
    name = nodes[at].node.name
    return next((i for i in range(at + 1, len(nodes)) if name in nodes[i].node.inputs), at)


def line_of(nodes: Sequence[RankNode], at: int) -> Origin | None:
    """The user's line that a node came from.

    If a node has none (those that a pass or autograd made), it is that of the nearest node that computes what it takes,
    else of the nearest that takes what it computes.
    """
    if nodes[at].origin is not None:
        return nodes[at].origin
    by_name = {each.node.name: each for each in nodes}
    start = nodes[at].node
    users: dict[str, list[str]] = defaultdict(list)
    for each in nodes:
        for name in each.node.inputs:
            users[name].append(each.node.name)
    for way in (lambda name: by_name[name].node.inputs, lambda name: users[name]):
        queue, seen = [start.name], {start.name}
        while queue:
            name = queue.pop(0)
            node = by_name[name]
            if node.origin is not None:
                return node.origin
            for near in way(name):
                if near in by_name and near not in seen:
                    seen.add(near)
                    queue.append(near)
    return None
