"""Two graphs of a job's ranks, statement by statement, with what differs marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.comparing.ranks.normalized import RankNode, normalized
from irscope.comparing.texts import opcodes

_AROUND = 2
"""Statements that are alike, shown before and after those that differ."""
_MOST_CHARACTERS, _MOST_LINES = 400, 50
"""The most characters and lines of a statement."""

Sign = Literal["", "changed", "left", "right", "skipped"]


@dataclass(frozen=True)
class RankStatement:
    """A statement of two graphs: in both, changed, in one of them only, or a number of them that are alike and left out.

    Lines are those of the stages' documents, 0-based.
    """

    sign: Sign
    left: str
    right: str
    left_line: int
    right_line: int


def rows_of(left: str, right: str) -> Iterator[RankStatement]:
    """Two printed graphs, statement by statement; empty if they differ only as the ranks of any job do.

    Raises ValueError for any other text.
    """
    sides = normalized(left), normalized(right)
    lines = left.split("\n"), right.split("\n")
    blocks = opcodes([_key(one) for one in sides[0]], [_key(one) for one in sides[1]])
    if all(tag == "equal" for tag, *_ in blocks):
        return

    def row(sign: Sign, a: int | None, b: int | None) -> RankStatement:
        texts, at = ["", ""], [0, 0]
        for side, index in enumerate((a, b)):
            if index is not None:
                at[side] = max(0, sides[side][index].node.line - 1)
                texts[side] = _statement(lines[side], at[side])
        return RankStatement(sign, texts[0], texts[1], at[0], at[1])

    for number, (tag, a, a_end, b, b_end) in enumerate(blocks):
        if tag == "equal":
            before = _AROUND if number else 0
            after = _AROUND if number + 1 < len(blocks) else 0
            yield from _alike(row, a, b, a_end - a, before, after)
            continue
        both = min(a_end - a, b_end - b)
        yield from (row("changed", a + i, b + i) for i in range(both))
        yield from (row("left", i, None) for i in range(a + both, a_end))
        yield from (row("right", None, i) for i in range(b + both, b_end))


def _alike(row: object, a: int, b: int, length: int, before: int, after: int) -> Iterator[RankStatement]:
    assert callable(row)
    if length <= before + after + 1:
        yield from (row("", a + i, b + i) for i in range(length))
        return
    yield from (row("", a + i, b + i) for i in range(before))
    yield RankStatement("skipped", str(length - before - after), "", 0, 0)
    yield from (row("", a + i, b + i) for i in range(length - after, length))


def _key(one: RankNode) -> tuple[str, str, str, str]:
    """Inputs are numbered by their place, which shifts: what is computed counts."""
    return one.operation, _without_places(one.value), one.detail, one.collective


def _without_places(value: str) -> str:
    parts = value.split("$")
    return "$".join([parts[0], *(part.lstrip("0123456789") for part in parts[1:])])


def _statement(lines: Sequence[str], at: int) -> str:
    """Without its comments, and without what is deleted after it; one over several lines, as a return can be, in one."""
    text = _bare(lines[at]) if at < len(lines) else ""
    if not text.endswith("("):
        return text[:_MOST_CHARACTERS]
    parts: list[str] = []
    for line in lines[at + 1 : at + _MOST_LINES]:
        parts.append(_bare(line))
        if line.strip().startswith(")"):
            break
    return (text + " ".join(parts).replace(", )", ",)").replace(" )", ")"))[:_MOST_CHARACTERS]


def _bare(line: str) -> str:
    return line.strip().split(";  ", 1)[0].split("  #", 1)[0]
