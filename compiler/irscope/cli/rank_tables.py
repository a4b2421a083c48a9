"""What the ranks of a job compiled, as tables: one row for each rank, then what the first of them communicates."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from irscope.cli.tables import table
from irscope.cli.text import Paint, print_json, short_path, to_stdout
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
from irscope.protocol import BucketSplit, CollectiveOverlap, CollectiveWait, RankReport, Report, to_json
from irscope.vocabulary.units import duration, ranks_named, size, spans
from irscope.vocabulary.visible import bounded, printable

_MOST_ROWS = 20
_MOST_WAITING = 3
_LONGEST_MESSAGE = 400


def rank_lines(report: Report, paint: Paint) -> list[str]:
    """The tables, with empty lines after them."""
    lines = [*_ranks(report, paint), ""]
    first = report.ranks[0]
    if first.collectives:
        lines += [paint(f"What rank {first.rank} communicates in one call of everything:", "dim")]
        lines += [*_collectives(first, paint), ""]
    if first.overlaps:
        lines += [paint(f"What rank {first.rank} computes from the start of each to its wait:", "dim")]
        lines += [*_overlaps(first.overlaps, paint), f"{exposed_text(first.overlaps)}.", ""]
    if first.buckets:
        lines += [paint("Buckets of DDP, whose all-reduces are in no graph, and what each can run beside:", "dim")]
        lines += [*_buckets(first.buckets, paint), ""]
    if report.waits:
        lines += [paint("Who waited for whom, until the last rank of a collective arrived:", "dim")]
        lines += [*_waits(report.waits, paint), ""]
    return lines


def show_ranks(report: Report, *, as_json: bool) -> int:
    """Prints the ranks of a stored run, and a line for each finding with the ranks that have it."""
    if as_json:
        found = [finding for finding in report.findings if finding.ranks]
        ranks = {"ranks": report.ranks, "waits": report.waits, "findings": found}
        print_json({"run": report.run, "world": report.world, **{name: to_json(one) for name, one in ranks.items()}})
        return 0
    if not report.ranks:
        print(f"Run {report.run} is not one of several ranks. `irscope run --world N` runs ranks of a job.")
        return 0
    to_stdout([*_by_rank(report), *rank_lines(report, Paint(sys.stdout))])
    return 0


def _by_rank(report: Report) -> list[str]:
    """Those of the fewest ranks first: what all have does not tell them apart."""
    lines = [
        printable(
            f"{short_path(one.file)}:{one.range.start.line}: {one.kind} {one.code} on {ranks_named(one.ranks)}: "
            f"{bounded(one.message, _LONGEST_MESSAGE)}"
        )
        for one in sorted(report.findings, key=lambda finding: len(finding.ranks)) if one.ranks
    ]  # fmt: skip
    return [*lines, ""] if lines else []


def _ranks(report: Report, paint: Paint) -> list[str]:
    shown = report.ranks[:_MOST_ROWS]
    has_alike = any(one.alike for one in shown)
    rows = [
        [
            f"{one.rank} of {report.world}" if report.world else str(one.rank), printable(one.run), one.outcome.kind.value, str(one.compiles),
            str(one.kernels), str(len(one.collectives)), bytes_text(sent_by(one.collectives)),
            size(one.memory) if one.memory is not None else "–", *([spans(one.alike) or "–"] if has_alike else []),
        ]
        for one in shown
    ]  # fmt: skip
    head = [
        "rank",
        "run",
        "outcome",
        "compiles",
        "kernels",
        "collectives",
        "sends",
        "holds",
        *(["alike"] if has_alike else []),
    ]
    lines = table(head, rows, paint, right=frozenset({3, 4, 5, 6, 7}), whole=frozenset({0, 1}))
    rest = len(report.ranks) - len(shown)
    return [*lines, paint(f"and {rest} more ranks", "dim")] if rest else lines


def _waits(waits: Sequence[CollectiveWait], paint: Paint) -> list[str]:
    rows = [
        [
            one.operation, str(one.calls), duration(one.seconds), duration(one.longest),
            f"rank {one.late} ({one.late_calls} of {one.calls})", _who(one),
            f"{short_path(one.file)}:{one.line}" if one.file else "–",
        ]
        for one in waits[:_MOST_ROWS]
    ]  # fmt: skip
    head = ["collective", "calls", "waited", "longest", "last to arrive", "who waited", "from"]
    return table(head, rows, paint, right=frozenset({1, 2, 3}), whole=frozenset({0}))


def _who(one: CollectiveWait) -> str:
    pairs = sorted(zip(one.ranks, one.waited, strict=True), key=lambda pair: -pair[1])
    shown = [f"rank {rank} {duration(seconds)}" for rank, seconds in pairs[:_MOST_WAITING] if seconds > 0]
    return ", ".join(shown) + (", …" if len(pairs) > _MOST_WAITING else "")


def _overlaps(overlaps: Sequence[CollectiveOverlap], paint: Paint) -> list[str]:
    found = overlap_rows(overlaps)
    rows = [
        [
            row.first.operation,
            str(row.calls),
            "–" if row.first.group_size is None else str(row.first.group_size),
            bytes_text(row.sent),
            printable(beside(row.first)),
            printable(way(row.first)) or "–",
            f"{short_path(row.first.file)}:{row.first.line}" if row.first.file else "",
        ]
        for row in found[:_MOST_ROWS]
    ]
    head = ["collective", "calls", "ranks", "sends", "beside it", "on the way down", "from"]
    lines = table(head, rows, paint, right=frozenset({1, 2, 3}))
    rest = len(found) - len(rows)
    return [*lines, paint(f"and {rest} more", "dim")] if rest else lines


def _buckets(buckets: Sequence[BucketSplit], paint: Paint) -> list[str]:
    rows = [
        [one.compile, str(one.number), one.name, str(one.parameters), bytes_text(one.bytes), beside_bucket(one)]
        for one in buckets[:_MOST_ROWS]
    ]
    lines = table(
        ["compile", "bucket", "part", "parameters", "sends", "beside it"], rows, paint, right=frozenset({1, 3, 4})
    )
    rest = len(buckets) - len(rows)
    return [*lines, paint(f"and {rest} more", "dim")] if rest else lines


def _collectives(one: RankReport, paint: Paint) -> list[str]:
    """Alike ones in one row; those that send most first."""
    found = collective_rows(one.collectives)
    rows = [
        [
            row.title, str(row.calls), printable(row.first.tensor) or "–", bytes_text(row.sent),
            f"{short_path(row.first.file)}:{row.first.line}" if row.first.file else "",
        ]
        for row in found[:_MOST_ROWS]
    ]  # fmt: skip
    lines = table(["collective", "calls", "gives", "sends", "from"], rows, paint, right=frozenset({1, 3}))
    rest = len(found) - len(rows)
    return [*lines, paint(f"and {rest} more", "dim")] if rest else lines
