"""A job of several ranks: the ranks, what the first communicates, what runs beside that, and who waited for whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from irscope.comparing.ranks import columns
from irscope.comparing.ranks.columns import Column
from irscope.comparing.ranks.exposure import collective_rows, exposed_text, overlap_rows
from irscope.protocol import RankReport, Report
from irscope.reporting.markup import Markup, element, grid
from irscope.reporting.redaction import Redaction

_Row = TypeVar("_Row")
_MOST_ROWS = 200


def job_parts(report: Report, redaction: Redaction) -> Iterator[Markup]:
    """The sections; none for a run that is not a job."""
    if not report.ranks:
        return

    def at(file: str, line: int) -> str:
        return f"{redaction.path(file)}:{line}" if file else ""

    yield element("h2", "Ranks")
    yield from _grid(
        [each for each in columns.of_ranks(report.ranks, report.world) if each.head != "run"], report.ranks
    )
    yield from _communication(report.ranks[0], at)
    if report.waits:
        yield element("h3", "Who waited for whom, until the last rank of a collective arrived")
        yield from _grid(columns.of_waits(at), report.waits)


def _communication(one: RankReport, at: columns.At) -> Iterator[Markup]:
    if one.collectives:
        yield element("h3", f"What rank {one.rank} communicates in one call of everything")
        yield from _grid(columns.of_collectives(at), collective_rows(one.collectives))
    if one.overlaps:
        yield element("h3", f"What rank {one.rank} computes from the start of each to its wait")
        yield from _grid(columns.of_overlaps(at), overlap_rows(one.overlaps))
        yield element("p", f"{exposed_text(one.overlaps)}.")
    if one.buckets:
        yield element("h3", "Buckets of DDP, whose all-reduces are in no graph, and what each can run beside")
        yield from _grid(columns.of_buckets(), one.buckets)
    if one.runtime:
        yield element("h3", f"What PyTorch's runtime issues on rank {one.rank}, between or beside graphs")
        yield from _grid(columns.of_runtime(at), one.runtime)


def _grid(shown: Sequence[Column[_Row]], rows: Sequence[_Row]) -> Iterator[Markup]:
    """Texts first, then numbers."""
    ordered = sorted(shown, key=lambda column: column.is_number)
    texts = sum(not column.is_number for column in ordered)
    yield grid([column.head for column in ordered], columns.cells(ordered, rows[:_MOST_ROWS]), texts)
    if len(rows) > _MOST_ROWS:
        yield element("p", f"{len(rows) - _MOST_ROWS} more are left out.", class_="dim")
