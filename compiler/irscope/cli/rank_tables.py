"""What the ranks of a job compiled, as tables: one row for each rank, then what the first of them communicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from irscope.cli.tables import table
from irscope.cli.text import Paint, short_path
from irscope.comparing.ranks import columns
from irscope.comparing.ranks.columns import Column
from irscope.comparing.ranks.exposure import collective_rows, exposed_text, overlap_rows
from irscope.protocol import Report
from irscope.vocabulary.visible import printable

_Row = TypeVar("_Row")
_MOST_ROWS = 20


def rank_lines(report: Report, paint: Paint) -> list[str]:
    """The tables, with empty lines after them."""
    lines = [*_table(columns.of_ranks(report.ranks[:_MOST_ROWS], report.world), report.ranks, paint, "more ranks"), ""]
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
    if report.waits:
        lines += [paint("Who waited for whom, until the last rank of a collective arrived:", "dim")]
        lines += [*_table(columns.of_waits(_at), report.waits, paint), ""]
    return lines


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
