"""Tables that fit the terminal: long names are cut in their middle, and a row that is still too wide takes several
lines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from irscope.cli.text import Paint, width_of

_GAP = 2
_SHORTEST = 12
"""Columns that are left of a long name at least; if there is less room, the row is folded."""
_INDENT = 4
"""The indent of the second line of a row that is folded."""
_PAINTED = re.compile(r"(\x1b\[[\d;]*m)(.*)(\x1b\[0m)", re.DOTALL)


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    paint: Paint,
    right: frozenset[int] = frozenset(),
    whole: frozenset[int] = frozenset(),
) -> list[str]:
    """Lines of a table with two spaces between columns; the columns of ``right`` (indices) are set flush right.

    On a terminal it is as wide as that.  Names are cut first; numbers (``right``) and IDs (``whole``), which are typed
    again, are not, unless an ID alone takes half of the terminal.  Where that is too little, a row takes two lines or more.
    """
    shown = [[paint.shown(cell) for cell in row] for row in rows]
    heads = [paint.shown(cell) for cell in head]
    widths = [max(width_of(row[i]) for row in [heads, *shown]) for i in range(len(heads))]
    groups = [list(range(len(heads)))]
    if paint.columns is not None and shown:
        groups, widths = _fitted(heads, widths, right | whole, paint.columns)
    mark = paint.shown("…")

    def lines(row: Sequence[str]) -> list[str]:
        found = [
            " " * (_INDENT * bool(number))
            + (" " * _GAP).join(_cell(row[i], widths[i], i in right, mark) for i in group).rstrip()
            for number, group in enumerate(groups)
        ]
        return [line for number, line in enumerate(found) if not number or line.strip()]

    return [*(paint(line, "dim") for line in lines(heads)), *(line for row in shown for line in lines(row))]


def listed_in(facts: Sequence[str], columns: int | None) -> list[str]:
    """The facts with commas between them, in as many lines as they need."""
    lines = [""]
    for number, fact in enumerate(facts):
        fact += "," if number < len(facts) - 1 else ""
        if lines[-1] and columns is not None and width_of(lines[-1]) + 1 + width_of(fact) > columns:
            lines.append(fact)
        else:
            lines[-1] += (" " if lines[-1] else "") + fact
    return lines


def middle_cut(text: str, width: int, mark: str = "…") -> str:
    """The text in at most this many columns: of a longer one the beginning and the end, which tells paths apart."""
    if width_of(text) <= width:
        return text
    if painted := _PAINTED.fullmatch(text):
        return painted[1] + middle_cut(painted[2], width, mark) + painted[3]
    room = max(width - width_of(mark), 0)
    return _first(text, room // 2) + mark + _first(text[::-1], room - room // 2)[::-1]


def _first(text: str, width: int) -> str:
    taken = 0
    for i, character in enumerate(text):
        taken += width_of(character)
        if taken > width:
            return text[:i]
    return text


def _cell(text: str, width: int, is_right: bool, mark: str) -> str:
    text = middle_cut(text, width, mark)
    gap = " " * (width - width_of(text))
    return gap + text if is_right else text + gap


def _fitted(
    heads: Sequence[str], widths: Sequence[int], fixed: frozenset[int], columns: int
) -> tuple[list[list[int]], list[int]]:
    """The columns of each line of a row, and the width of each column."""
    least = [
        min(width, max(_SHORTEST, width_of(heads[i]), columns // 2 if i in fixed else 0))
        for i, width in enumerate(widths)
    ]
    groups = _groups(widths, least, columns)
    fitted = list(widths)
    for number, group in enumerate(groups):
        while (excess := _total(fitted, group) - _room(columns, number)) > 0:
            longest = max(group, key=lambda i: fitted[i] - least[i])
            if fitted[longest] <= least[longest]:  # one column that is wider than the terminal
                longest = max(group, key=lambda i: fitted[i])
                fitted[longest] = max(fitted[longest] - excess, 1)
                break
            fitted[longest] -= 1
    return groups, fitted


def _groups(widths: Sequence[int], least: Sequence[int], columns: int) -> list[list[int]]:
    """The columns of each line: as few lines as can be, unless most of the names would be cut off; of the ways to fold
    the row, the one that cuts least."""
    count = len(widths)
    cuttable = sum(min(width, columns) for width, short in zip(widths, least, strict=True) if short < width)
    fallback = [[i] for i in range(count)]
    for lines in range(1, count):
        if (best := _least_cut(widths, least, columns, lines)) is None:
            continue
        cut, groups = best
        if cut <= cuttable / 2:
            return groups
        if len(fallback) == count:
            fallback = groups
    return fallback


def _least_cut(
    widths: Sequence[int], least: Sequence[int], columns: int, lines: int
) -> tuple[int, list[list[int]]] | None:
    """The way to fold a row into so many lines that cuts least, and how much; None if it cannot be folded so."""
    best: tuple[int, list[list[int]]] | None = None
    wished = [min(width, columns) for width in widths]
    for breaks in itertools.combinations(range(len(widths) - 1, 0, -1), lines - 1):
        groups = [list(range(a, b)) for a, b in itertools.pairwise([0, *reversed(breaks), len(widths)])]
        if any(_total(least, group) > _room(columns, number) for number, group in enumerate(groups)):
            continue
        cut = sum(max(_total(wished, group) - _room(columns, number), 0) for number, group in enumerate(groups))
        if best is None or cut < best[0]:
            best = cut, groups
    return best


def _room(columns: int, number: int) -> int:
    return columns - _INDENT * bool(number)


def _total(widths: Sequence[int], group: Sequence[int]) -> int:
    return sum(widths[i] for i in group) + _GAP * (len(group) - 1)
