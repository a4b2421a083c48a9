"""``irscope/ranks``: what the ranks of a job compiled, and two of them side by side with what differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irscope.comparing.ranks.differences import RankRun, graph_pairs, matched
from irscope.comparing.ranks.exposure import OverlapRow, beside, beside_bucket, exposed_text, overlap_rows, way
from irscope.comparing.ranks.folded import folded
from irscope.comparing.ranks.runtime import beside_of_runtime, operation_and_peer
from irscope.comparing.ranks.traffic import UNSEEN
from irscope.findings.kinds.rank_divergence import KIND
from irscope.protocol import (
    BucketSplit,
    CollectiveWait,
    Compile,
    Finding,
    RankReport,
    Report,
    RuntimeCollective,
    StageRef,
)
from irscope.store.store import Store
from irscope.vocabulary.units import spans

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.panels.answers import answer, place_uri
from irscope_server.panels.rank_rows import RankStatement, rows_of
from irscope_server.stages.tree import UriOf

_MOST_RANKS = 256
_MOST_COMPILES = 200
_MOST_ROWS = 200
"""The most rows of one graph."""
_MOST_OVERLAPS = 200
_CODE = "python"
"""The language of output code and of graphs."""
_NONE = "This run has one process. Run several ranks with irscope run --nproc-per-node 2, or open a folder with the traces of all ranks."


@dataclass(frozen=True)
class RanksParams:
    """A run of several ranks, and the number of the rank to compare with the first; empty: the first one that differs."""

    run: str
    other: str = ""


@dataclass(frozen=True)
class RankItem:
    """One rank that has its own run."""

    rank: int
    run: str
    outcome: str
    compiles: int
    kernels: int
    collectives: int
    sent_bytes: int | None
    """In one call of everything; null if a size is symbolic."""
    memory: int | None
    """Bytes at the peak of its largest program; null without a memory plan."""
    alike: str
    """Other ranks that compiled the same, as ``1-22, 24-39``; empty for none."""
    others: int
    """How many those are."""
    process: str
    """For the processes of one script, which have numbers and no ranks: which one it is."""


@dataclass(frozen=True)
class RankDivergence:
    """A finding about ranks that differ; `ranks` as ``0, 37``."""

    code: str
    message: str
    place: Place
    ranks: str


@dataclass(frozen=True)
class RankStage:
    """A graph of two ranks; `rows` are empty if it is the same on both."""

    title: str
    left: str
    right: str
    same: bool
    rows: tuple[RankStatement, ...]
    more: int
    """Rows that are left out at the end."""


@dataclass(frozen=True)
class RankCompile:
    """A compile of two ranks; an empty id if one of them has none."""

    function: str
    place: Place
    left: str
    right: str
    outcome: str
    """Where it is not the same: ``compiled, graph-break``."""
    stages: tuple[RankStage, ...]


@dataclass(frozen=True)
class RankWait:
    """How long ranks waited in one collective, and for whom."""

    operation: str
    place: Place
    calls: int
    seconds: float
    longest: float
    late: int
    late_calls: int
    typical: float
    """The median of the calls in which that rank was the last."""
    before: Place
    """Where it was longest before; an empty URI if that is not known."""


@dataclass(frozen=True)
class RankRuntime:
    """Collectives that PyTorch's runtime issues on the first rank, from one line."""

    issuer: str
    operation: str
    """With the rank at the other end, if there is one."""
    module: str
    place: Place
    calls: int
    bytes: int | None
    """Given into one call; null if that is not known."""
    beside: str
    """For how long the rank goes on meanwhile, in words."""


@dataclass(frozen=True)
class RankOverlap:
    """Collectives of the first rank that run beside the same, from one line."""

    operation: str
    place: Place
    calls: int
    ranks: int | None
    """In their group."""
    sent_bytes: int | None
    exposed: bool
    """Whether the rank computes nothing until they have ended."""
    beside: str
    """What it computes meanwhile, in words."""
    way: str
    """How many operations were beside it on the way down; empty if they stayed as many."""
    code: Place
    """Where the first of them starts in the output code, or in the graph."""


@dataclass(frozen=True)
class RankBucket:
    """A part of a graph that DDP's buckets cut, and what its all-reduce can run beside."""

    compile: str
    number: int
    """In the order of the backward, from 1."""
    part: str
    parameters: int
    bytes: int | None
    exposed: bool
    beside: str
    code: Place
    """Its backward."""


@dataclass(frozen=True)
class RanksResult:
    """The ranks of a job; `reason` says in words why there are none.

    Ranks and compiles beyond a bound are left out, and counted.
    """

    run: str
    world: int
    ranks: tuple[RankItem, ...]
    more_ranks: int
    first: int
    other: int | None
    divergences: tuple[RankDivergence, ...]
    compiles: tuple[RankCompile, ...]
    """The compiles of both ranks; those that differ come first."""
    more_compiles: int
    waits: tuple[RankWait, ...]
    overlaps: tuple[RankOverlap, ...]
    """The collectives that run beside nothing come first."""
    more_overlaps: int
    overlap_text: str
    """How many of all run beside nothing; empty without collectives."""
    buckets: tuple[RankBucket, ...]
    runtime: tuple[RankRuntime, ...]
    unseen: str
    """Which collectives are not counted, and why; empty if all are."""
    reason: str


async def ranks(context: ReadContext, params: RanksParams) -> Encoded:
    """Raises LookupError for an unknown run, or a rank without a run."""

    def read(store: Store, report: Report) -> RanksResult:
        if not report.ranks:
            return RanksResult(
                report.run, 0, (), 0, 0, None, (), (), 0, (), (), 0, "", (), (), "", _why_none(store, report.run)
            )
        found = [one for one in report.findings if one.kind == KIND.id]
        shown = folded(report.ranks, report.findings)
        first, other = report.ranks[0], None if report.ranks[0].process else _other(report, found, params.other)
        rows = overlap_rows(first.overlaps)
        compiles, more_compiles = _compiles(store, report, other, context.uri_of) if other is not None else ([], 0)
        return RanksResult(
            report.run,
            report.world,
            tuple(map(_item, shown[:_MOST_RANKS])),
            max(0, len(shown) - _MOST_RANKS),
            first.rank,
            None if other is None else other.rank,
            tuple(_divergence(one, context.uri_of) for one in found),
            tuple(compiles),
            more_compiles,
            tuple(_wait(one, context.uri_of) for one in report.waits),
            tuple(_overlap(one, first.run, context.uri_of) for one in rows[:_MOST_OVERLAPS]),
            max(0, len(rows) - _MOST_OVERLAPS),
            f"{exposed_text(first.overlaps)}." if rows else "",
            tuple(_bucket(one, first.run) for one in first.buckets[:_MOST_OVERLAPS]),
            tuple(_runtime(one, context.uri_of) for one in first.runtime[:_MOST_OVERLAPS]),
            next((f"Not counted: {gap.what}. {gap.why}." for gap in report.capture_gaps if gap == UNSEEN), ""),
            "",
        )

    return await answer(context, ("ranks", params.run, params.other), params.run, read)


def _why_none(store: Store, run: str) -> str:
    how, _ = store.how_run(run)
    if how.get("world"):
        return f"This run is rank {how.get('rank')} of {how['world']}. The run of the first rank has them all."
    return _NONE


def _other(report: Report, found: Sequence[Finding], wanted: str) -> RankReport | None:
    by_rank = {one.rank: one for one in report.ranks[1:]}
    if wanted:
        chosen = next((one for one in by_rank.values() if str(one.rank) == wanted), None)
        if chosen is None:
            raise LookupError(f"Rank {wanted[:20]} has no run of its own beside the first.")
        return chosen
    differs = next((by_rank[rank] for one in found for rank in one.ranks if rank in by_rank), None)
    return differs or next(iter(by_rank.values()), None)


def _item(one: RankReport) -> RankItem:
    sizes = [each.sent_bytes for each in one.collectives]
    sent = None if None in sizes else sum(size or 0 for size in sizes)
    return RankItem(
        one.rank,
        one.run,
        one.outcome.kind.value,
        one.compiles,
        one.kernels,
        len(sizes),
        sent,
        one.memory,
        spans(one.alike),
        len(one.alike),
        one.process,
    )


def _overlap(row: OverlapRow, run: str, uri_of: UriOf) -> RankOverlap:
    one = row.first
    return RankOverlap(
        row.title,
        Place(place_uri(uri_of, one.file), max(0, one.line - 1)),
        row.calls,
        one.group_size,
        row.sent,
        one.operations == 0,
        beside(one),
        way(one),
        Place(uri_of_stage(run, one.stage, _CODE), max(0, one.start - 1)),
    )


def _bucket(one: BucketSplit, run: str) -> RankBucket:
    code = uri_of_stage(run, one.backward, _CODE) if one.backward else ""
    return RankBucket(
        one.compile, one.number, one.name, one.parameters, one.bytes, not one.beside, beside_bucket(one), Place(code, 0)
    )


def _runtime(one: RuntimeCollective, uri_of: UriOf) -> RankRuntime:
    place = Place(place_uri(uri_of, one.file), max(0, one.line - 1))
    return RankRuntime(
        one.issuer, operation_and_peer(one), one.module, place, one.calls, one.bytes, beside_of_runtime(one)
    )


def _wait(one: CollectiveWait, uri_of: UriOf) -> RankWait:
    return RankWait(
        one.operation,
        Place(place_uri(uri_of, one.file), max(0, one.line - 1)),
        one.calls,
        one.seconds,
        one.longest,
        one.late,
        one.late_calls,
        one.typical,
        Place(place_uri(uri_of, one.before_file) if one.before_file else "", max(0, one.before_line - 1)),
    )


def _divergence(one: Finding, uri_of: UriOf) -> RankDivergence:
    place = Place(place_uri(uri_of, one.file), max(0, one.range.start.line - 1))
    return RankDivergence(one.code, one.message, place, spans(one.ranks))


# --- side by side -----------------------------------------------------------------------------------------------------


def _compiles(store: Store, report: Report, other: RankReport, uri_of: UriOf) -> tuple[list[RankCompile], int]:
    """The compiles of the first rank, whose run has the report of the job, and of another, and how many are left out."""
    mine = _rank_run(store, report.ranks[0].rank, report)  # to read it again takes long for many ranks
    theirs = _rank_run(store, other.rank, store.report(other.run, sizes=False))
    pairs, more, fewer = matched(mine, theirs)
    made = [_pair(mine, theirs, a, b, uri_of) for a, b in pairs[:_MOST_COMPILES]]
    made += [_compile(one, one.id, "", uri_of) for one in fewer[:_MOST_COMPILES]]
    made += [_compile(one, "", one.id, uri_of) for one in more[:_MOST_COMPILES]]
    made.sort(
        key=lambda one: all(stage.same for stage in one.stages) and bool(one.left and one.right and not one.outcome)
    )
    return made, sum(max(0, len(each) - _MOST_COMPILES) for each in (pairs, more, fewer))


def _rank_run(store: Store, rank: int, report: Report) -> RankRun:
    return RankRun(rank, report, lambda stage: store.stage_text(report.run, stage))


def _compile(
    one: Compile, left: str, right: str, uri_of: UriOf, outcome: str = "", stages: tuple[RankStage, ...] = ()
) -> RankCompile:
    return RankCompile(
        one.title, Place(place_uri(uri_of, one.file), max(0, one.line - 1)), left, right, outcome, stages
    )


def _pair(mine: RankRun, theirs: RankRun, a: Compile, b: Compile, uri_of: UriOf) -> RankCompile:
    outcome = "" if a.outcome is b.outcome else f"{a.outcome.value}, {b.outcome.value}"
    stages = tuple(_stage(mine, theirs, left, right) for left, right in graph_pairs(a, b))
    return _compile(a, a.id, b.id, uri_of, outcome, stages)


def _stage(mine: RankRun, theirs: RankRun, left: StageRef, right: StageRef) -> RankStage:
    texts = mine.text(left.id), theirs.text(right.id)
    rows: list[RankStatement] = []
    if texts[0] != texts[1]:
        try:
            rows = list(rows_of(*texts))
        except ValueError:  # a text that is cut, or of another version
            rows = [RankStatement("changed", "(not a graph that can be read)", "(not a graph that can be read)", 0, 0)]
    left_uri = uri_of_stage(mine.report.run, left.id, left.language)
    right_uri = uri_of_stage(theirs.report.run, right.id, right.language)
    more = max(0, len(rows) - _MOST_ROWS)
    return RankStage(words.stage_title(left), left_uri, right_uri, not rows, tuple(rows[:_MOST_ROWS]), more)


def all_ranks(reports: Iterable[RankReport]) -> set[int]:
    """The ranks that were run or opened, and those that they stand for."""
    return {rank for one in reports for rank in (one.rank, *one.alike)}


REQUEST = PanelRequest("irscope/ranks", RanksParams, RanksResult, ranks)
