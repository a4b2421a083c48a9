"""Where the lines of a text that ran are in the text as it is now."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_LARGEST_DIFF = 4_000_000
"""Product of line counts above which the changed part is not compared line by line: difflib is quadratic."""

_MOST_CANDIDATES = 50
"""Lines among which an edited line is looked for."""


class LineMap:
    """Maps 0-based lines of an older text to a newer one."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old, self._new = old, new
        self._blocks: list[tuple[int, int, int, int, bool]] = []
        """(old start, old end, new start, new end, equal), in order, covering both texts."""
        if old is new or old == new:
            self._blocks.append((0, len(old), 0, len(new), True))
            return
        shorter = min(len(old), len(new))
        head = 0
        while head < shorter and old[head] == new[head]:
            head += 1
        tail = 0
        while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        old_end, new_end = len(old) - tail, len(new) - tail
        self._blocks.append((0, head, 0, head, True))
        if (old_end - head) * (new_end - head) > _LARGEST_DIFF:
            self._blocks.append((head, old_end, head, new_end, False))
        else:
            matcher = difflib.SequenceMatcher(None, old[head:old_end], new[head:new_end], autojunk=False)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes():
                self._blocks.append((head + i1, head + i2, head + j1, head + j2, tag == "equal"))
        self._blocks.append((old_end, len(old), new_end, len(new), True))

    def exact(self, line: int) -> int | None:
        """The line's new number, or None if it was changed or deleted."""
        for old_start, old_end, new_start, _, equal in self._blocks:
            if old_start <= line < old_end:
                return new_start + line - old_start if equal else None
        return None

    def span(self, line: int, start: int, end: int) -> tuple[int, int] | None:
        """Where a piece of a line is now: its new line and its first column; None if its text was edited.

        Args:
            start, end: Columns of the old line.
        """
        exact = self.exact(line)
        if exact is not None:
            return exact, start
        block = next((block for block in self._blocks if block[0] <= line < block[1]), None)
        if block is None or not self._old[line][start:end].strip():
            return None
        old_start, _, new_start, new_end, _ = block
        if new_end - new_start > _MOST_CANDIDATES:
            return None
        expected = new_start + line - old_start
        for candidate in sorted(range(new_start, new_end), key=lambda number: abs(number - expected)):
            column = _column_of(self._old[line], start, end, self._new[candidate])
            if column is not None:
                return candidate, column
        return None

    def near(self, line: int) -> int:
        """The line's new number, or the place where it was."""
        last = 0
        for old_start, old_end, new_start, new_end, equal in self._blocks:
            if old_start <= line < old_end:
                offset = line - old_start
                return new_start + (offset if equal else max(0, min(offset, new_end - new_start - 1)))
            last = new_end
        return max(0, last - 1)


def _column_of(old: str, start: int, end: int, new: str) -> int | None:
    """Where a piece of a line is in a line that was made of it by an edit beside the piece.

    The line counts as made of the old one where most of what was around the piece is still there.
    """
    piece, before, after = old[start:end], old[:start].strip(), old[end:].strip()
    columns = [match.start() for match in re.finditer(re.escape(piece), new)]
    if not columns:
        return None
    column = min(columns, key=lambda at: abs(at - start))
    kept = sum(
        match.size
        for left, right in ((before, new[:column].strip()), (after, new[column + len(piece) :].strip()))
        for match in difflib.SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    )
    whole = len(piece.strip()) + len(before) + len(after)
    return column if 2 * (kept + len(piece.strip())) >= whole else None
