"""A text with edits applied, and which line of one text is which of another."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence

from irscope.protocol import Edit, Position, Range

_MOST_PAIRS = 20_000_000
"""Of lines of two texts that are alike: difflib looks at each."""


def applied(text: str, edits: Sequence[Edit]) -> str:
    """A text with edits applied; those at one place in the order given.

    Raises ValueError for edits that overlap or are outside of the text.
    """
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def offset(place: Position) -> int:
        if not 1 <= place.line < len(starts) + 1:
            raise ValueError("an edit is outside of the text")
        return min(starts[place.line - 1] + place.column, len(text))

    spans = [(offset(edit.range.start), offset(edit.range.end), n, edit.text) for n, edit in enumerate(edits)]
    parts, at = list[str](), 0
    for start, end, _, new in sorted(spans):
        if start < at or end < start:
            raise ValueError("edits overlap")
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def without_gaps(edits: Sequence[Edit]) -> list[Edit]:
    """Edits of one text, without the blank line between single lines that several of them add at one place."""
    made: list[Edit] = []
    last: dict[Position, int] = {}
    for edit in edits:
        where = edit.range.start
        is_line = where == edit.range.end and edit.text.startswith("\n") and edit.text.strip("\n").count("\n") == 0
        before = last.get(where)
        if is_line and before is not None:
            made[before] = Edit(edit.range, made[before].text.rstrip("\n") + "\n")
            edit = Edit(edit.range, edit.text[1:])
        if is_line:
            last[where] = len(made)
        made.append(edit)
    return made


def lines_with_ends(text: str) -> list[str]:
    """The lines of a text with their ends.  `str.splitlines` also splits at form feeds and U+2028, which are in no line count."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """As `difflib.SequenceMatcher.get_opcodes`, in bounded time: where too many lines are alike, one block is all that is
    between the first and the last difference."""
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    alike, counts = Counter(before), Counter(after)
    if sum(number * counts[line] for line, number in alike.items()) > _MOST_PAIRS:
        inner = [("replace", 0, len(before), 0, len(after))]
    else:
        inner = list(difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes())
    blocks = [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in inner]
    first = [("equal", 0, head, 0, head)] if head else []
    last = [("equal", len(old) - tail, len(old), len(new) - tail, len(new))] if tail else []
    return [*first, *blocks, *last]


def edits_between(old: str, new: str) -> tuple[Edit, ...]:
    """The lines that make one text the other."""
    before, after = lines_with_ends(old), lines_with_ends(new)
    blocks = opcodes(before, after)
    lines = old.split("\n")
    end = Position(len(lines), len(lines[-1]))
    return tuple(
        Edit(Range(min(Position(i + 1, 0), end), min(Position(j + 1, 0), end)), "".join(after[k:m]))
        for tag, i, j, k, m in blocks
        if tag != "equal"
    )


def diff_of(old: str, new: str, name: str) -> list[str]:
    """The lines of a unified diff as ``git apply`` takes it."""
    made: list[str] = []
    for line in difflib.unified_diff(lines_with_ends(old), lines_with_ends(new), f"a/{name}", f"b/{name}"):
        made += [line[:-1]] if line.endswith("\n") else [line, "\\ No newline at end of file"]
    return made


class LineMatch:
    """Which lines of two texts are the same; lines that were replaced are those that replaced them."""

    def __init__(self, old: str, new: str) -> None:
        self._blocks = opcodes(old.split("\n"), new.split("\n"))

    def same(self, old: int, new: int) -> bool:
        """Whether line ``new`` (1-based) of the second text is, or is in the place of, line ``old`` of the first."""
        for tag, i, j, k, m in self._blocks:
            if i < old <= j:
                return new - k == old - i if tag == "equal" else k < new <= m
        return False

    def stays(self, old: int) -> bool:
        """Whether line ``old`` (1-based) of the first text is in the second, too."""
        return any(tag == "equal" and i < old <= j for tag, i, j, _, _ in self._blocks)
