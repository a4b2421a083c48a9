"""Of a job of several ranks: the ranks, what the first communicates, what runs beside that, and who waited for whom."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.comparing.ranks.exposure import (
    beside,
    beside_bucket,
    bytes_text,
    collective_rows,
    exposed_text,
    overlap_rows,
    sent_by,
    way,
)
from irscope.protocol import RankReport, Report
from irscope.reporting.markup import Markup, element, grid
from irscope.reporting.redaction import Redaction
from irscope.vocabulary.units import duration, size, spans

_MOST_ROWS = 200


def job_parts(report: Report, redaction: Redaction) -> Iterator[Markup]:
    """The sections; none for a run that is not a job."""
    if not report.ranks:
        return
    first = report.ranks[0]
    yield element("h2", "Ranks")
    rows = [
        [
            f"{one.rank} of {report.world}" if report.world else str(one.rank), one.outcome.kind.value, spans(one.alike),
            str(one.compiles), str(one.kernels), str(len(one.collectives)), bytes_text(sent_by(one.collectives)),
            "" if one.memory is None else size(one.memory),
        ]
        for one in report.ranks
    ]  # fmt: skip
    head = ["rank", "outcome", "alike", "compiles", "kernels", "collectives", "sends", "holds"]
    yield from _grid(head, rows, 3)
    yield from _communication(first, redaction)
    if report.waits:
        yield element("h3", "Who waited for whom, until the last rank of a collective arrived")
        waits = [
            [
                one.operation, f"rank {one.late} ({one.late_calls} of {one.calls})", _at(redaction, one.file, one.line),
                str(one.calls), duration(one.seconds), duration(one.longest),
            ]
            for one in report.waits
        ]  # fmt: skip
        yield from _grid(["collective", "last to arrive", "from", "calls", "waited", "longest"], waits, 3)


def _communication(one: RankReport, redaction: Redaction) -> Iterator[Markup]:
    if one.collectives:
        yield element("h3", f"What rank {one.rank} communicates in one call of everything")
        sent = [
            [
                row.title, row.first.tensor, _at(redaction, row.first.file, row.first.line), str(row.calls),
                bytes_text(row.sent),
            ]
            for row in collective_rows(one.collectives)
        ]  # fmt: skip
        yield from _grid(["collective", "gives", "from", "calls", "sends"], sent, 3)
    if one.overlaps:
        yield element("h3", f"What rank {one.rank} computes from the start of each to its wait")
        found = [
            [
                row.title, beside(row.first), way(row.first), _at(redaction, row.first.file, row.first.line),
                str(row.calls), str(row.first.group_size or ""), bytes_text(row.sent),
            ]
            for row in overlap_rows(one.overlaps)
        ]  # fmt: skip
        head = ["collective", "beside it", "on the way down", "from", "calls", "ranks", "sends"]
        yield from _grid(head, found, 4)
        yield element("p", f"{exposed_text(one.overlaps)}.")
    if one.buckets:
        yield element("h3", "Buckets of DDP, whose all-reduces are in no graph, and what each can run beside")
        buckets = [
            [
                each.compile,
                each.name,
                beside_bucket(each),
                str(each.number),
                str(each.parameters),
                bytes_text(each.bytes),
            ]
            for each in one.buckets
        ]
        yield from _grid(["compile", "part", "beside it", "bucket", "parameters", "sends"], buckets, 3)


def _grid(head: list[str], rows: list[list[str]], texts: int) -> Iterator[Markup]:
    yield grid(head, rows[:_MOST_ROWS], texts)
    if len(rows) > _MOST_ROWS:
        yield element("p", f"{len(rows) - _MOST_ROWS} more are left out.", class_="dim")


def _at(redaction: Redaction, file: str, line: int) -> str:
    return f"{redaction.path(file)}:{line}" if file else ""
