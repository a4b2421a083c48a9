"""What the ranks of a job compiled, as tables: one row for each rank, then what the first of them communicates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TypeVar

from irscope.cli.tables import table
from irscope.cli.text import Paint, print_json, short_path, to_stdout
from irscope.comparing.ranks import columns
from irscope.comparing.ranks.columns import Column
from irscope.comparing.ranks.exposure import collective_rows, exposed_text, overlap_rows
from irscope.comparing.ranks.folded import folded
from irscope.protocol import Report, to_json
from irscope.vocabulary.units import ranks_named
from irscope.vocabulary.visible import bounded, printable

_Row = TypeVar("_Row")
_MOST_ROWS = 20
_LONGEST_MESSAGE = 400


def rank_lines(report: Report, paint: Paint) -> list[str]:
    """The tables, with empty lines after them."""
    rows = folded(report.ranks, report.findings)
    lines = [*_table(columns.of_ranks(rows[:_MOST_ROWS], report.world), rows, paint, f"more {report.members[1]}"), ""]
    first = report.ranks[0]
    if first.collectives:
        lines += [paint(f"What rank {first.rank} communicates in one call of everything:", "dim")]
        lines += [*_table(columns.of_collectives(_at), collective_rows(first.collectives), paint), ""]
    if first.overlaps:
        lines += [paint(f"What rank {first.rank} computes from the start of each to its wait:", "dim")]
        lines += _table(columns.of_overlaps(_at), overlap_rows(first.overlaps), paint)
        lines += [f"{exposed_text(first.overlaps)}.", ""]
    if first.buckets:
        lines += [paint("Buckets of DDP, whose all-reduces are in no graph, and what each can run beside:", "dim")]
        lines += [*_table(columns.of_buckets(), first.buckets, paint), ""]
    if first.runtime:
        lines += [paint(f"What PyTorch's runtime issues on rank {first.rank}, between or beside graphs:", "dim")]
        lines += [*_table(columns.of_runtime(_at), first.runtime, paint), ""]
    if report.waits:
        lines += [paint("Who waited for whom, until the last rank of a collective arrived:", "dim")]
        lines += [*_table(columns.of_waits(_at), report.waits, paint), ""]
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
    """The findings of the fewest ranks come first: what all ranks have does not tell them apart."""
    lines = [
        printable(
            f"{short_path(one.file)}:{one.range.start.line}: {one.kind} {one.code} on {ranks_named(one.ranks, *report.members)}: "
            f"{bounded(one.message, _LONGEST_MESSAGE)}"
        )
        for one in sorted(report.findings, key=lambda finding: len(finding.ranks)) if one.ranks
    ]  # fmt: skip
    return [*lines, ""] if lines else []


def _table(shown: Sequence[Column[_Row]], rows: Sequence[_Row], paint: Paint, rest: str = "more") -> list[str]:
    """The first rows, and how many more there are."""
    texts = [[printable(cell) for cell in row] for row in columns.cells(shown, rows[:_MOST_ROWS])]
    numbers = frozenset(at for at, column in enumerate(shown) if column.is_number)
    ids = frozenset(at for at, column in enumerate(shown) if column.is_id)
    lines = table([column.head for column in shown], texts, paint, right=numbers, whole=ids)
    left = len(rows) - len(texts)
    return [*lines, paint(f"and {left} {rest}", "dim")] if left else lines


def _at(file: str, line: int) -> str:
    return f"{short_path(file)}:{line}" if file else ""
