"""The columns of the tables of a job: the terminal and the page of a run show the same, each in its own order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from irscope.comparing.ranks.exposure import CollectiveRow, OverlapRow, beside, beside_bucket, bytes_text, sent_by, way
from irscope.comparing.ranks.runtime import beside_of_runtime, operation_and_peer
from irscope.protocol import BucketSplit, CollectiveWait, RankReport, RuntimeCollective
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import duration, size, spans

_Row = TypeVar("_Row")
At = Callable[[str, int], str]
"""A place of the user's, from its file and its line, as the reader is to see it."""
_MOST_WAITING = 3
_NONE = "–"


@dataclass(frozen=True)
class Column(Generic[_Row]):
    """A column: its head, and its text in a row.

    Args:
        is_id: People type it again.
    """

    head: str
    text: Callable[[_Row], str]
    is_number: bool = False
    is_id: bool = False


def cells(columns: Sequence[Column[_Row]], rows: Sequence[_Row]) -> list[list[str]]:
    """The texts of all rows."""
    return [[column.text(row) for column in columns] for row in rows]


def of_ranks(ranks: Sequence[RankReport], world: int) -> list[Column[RankReport]]:
    """One row for each rank, or each process of a script; *alike* only where a run stands for others."""
    is_started = any(one.process for one in ranks)
    found = [
        Column[RankReport](
            "process" if is_started else "rank",
            lambda one: f"{one.rank} of {world}" if world else str(one.rank),
            is_id=True,
        ),
        Column("run", lambda one: one.run, is_id=True),
        Column("outcome", lambda one: one.outcome.kind.value),
        Column("compiles", lambda one: str(one.compiles), is_number=True),
        Column("kernels", lambda one: str(one.kernels), is_number=True),
        Column("collectives", lambda one: str(len(one.collectives)), is_number=True),
        Column("sends", lambda one: bytes_text(sent_by(one.collectives)), is_number=True),
        Column("holds", lambda one: _NONE if one.memory is None else size(one.memory), is_number=True),
    ]
    if is_started:
        found.insert(1, Column("which", lambda one: one.process))
    alike = Column[RankReport]("alike", lambda one: spans(one.alike) or _NONE)
    return [*found, alike] if any(one.alike for one in ranks) else found


def of_collectives(at: At) -> list[Column[CollectiveRow]]:
    """What a rank communicates."""
    return [
        Column("collective", lambda row: row.title),
        Column("calls", lambda row: str(row.calls), is_number=True),
        Column("gives", lambda row: row.first.tensor or _NONE),
        Column("sends", lambda row: bytes_text(row.sent), is_number=True),
        Column("from", lambda row: at(row.first.file, row.first.line)),
    ]


def of_overlaps(at: At) -> list[Column[OverlapRow]]:
    """What runs beside each collective."""
    return [
        Column("collective", lambda row: row.title),
        Column("calls", lambda row: str(row.calls), is_number=True),
        Column("ranks", lambda row: str(row.first.group_size or _NONE), is_number=True),
        Column("sends", lambda row: bytes_text(row.sent), is_number=True),
        Column("beside it", lambda row: beside(row.first)),
        Column("on the way down", lambda row: way(row.first) or _NONE),
        Column("from", lambda row: at(row.first.file, row.first.line)),
    ]


def of_buckets() -> list[Column[BucketSplit]]:
    """Buckets of DDP."""
    return [
        Column("compile", lambda one: one.compile),
        Column("bucket", lambda one: str(one.number), is_number=True),
        Column("part", lambda one: one.name),
        Column("parameters", lambda one: str(one.parameters), is_number=True),
        Column("sends", lambda one: bytes_text(one.bytes), is_number=True),
        Column("beside it", beside_bucket),
    ]


def of_runtime(at: At) -> list[Column[RuntimeCollective]]:
    """Collectives that PyTorch's runtime issues."""
    return [
        Column("issued by", lambda one: one.issuer),
        Column("collective", operation_and_peer),
        Column("for", lambda one: one.module or _NONE),
        Column("calls", lambda one: str(one.calls), is_number=True),
        Column("bytes", lambda one: bytes_text(one.bytes), is_number=True),
        Column("beside it", beside_of_runtime),
        Column("from", lambda one: at(one.file, one.line)),
    ]


def of_waits(at: At) -> list[Column[CollectiveWait]]:
    """Who waited for whom."""
    return [
        Column("collective", lambda one: one.operation),
        Column("calls", lambda one: str(one.calls), is_number=True),
        Column("waited", lambda one: duration(one.seconds), is_number=True),
        Column("longest", lambda one: duration(one.longest), is_number=True),
        Column("last to arrive", lambda one: f"rank {one.late} ({one.late_calls} of {one.calls})"),
        Column("typically", lambda one: duration(one.typical), is_number=True),
        Column("it was in", lambda one: at(one.before_file, one.before_line) or _NONE),
        Column("who waited", _who),
        Column("from", lambda one: at(one.file, one.line)),
    ]


def _who(one: CollectiveWait) -> str:
    pairs = sorted(zip(one.ranks, one.waited, strict=True), key=lambda pair: -pair[1])
    shown = [f"rank {rank} {duration(seconds)}" for rank, seconds in pairs[:_MOST_WAITING] if seconds > 0]
    return ", ".join(shown) + (", …" if len(pairs) > _MOST_WAITING else "")
