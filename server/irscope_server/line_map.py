"""Where the lines of a text that ran are in the text as it is now."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_LARGEST_DIFF = 4_000_000
"""Product of line counts above which the changed part is not compared line by line: difflib is quadratic."""


class LineMap:
    """Maps 0-based lines of an older text to a newer one."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
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
        """The line's new number, or nothing where it was changed or deleted."""
        for old_start, old_end, new_start, _, equal in self._blocks:
            if old_start <= line < old_end:
                return new_start + line - old_start if equal else None
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
