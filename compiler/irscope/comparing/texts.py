"""Which line of one text is which of another, and the difference of two texts."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Hashable, Sequence

_MOST_PAIRS = 20_000_000
"""How many pairs of lines of two texts may be alike: difflib looks at each."""


def lines_with_ends(text: str) -> list[str]:
    """The lines of a text with their ends.  `str.splitlines` also splits at form feeds and U+2028, which are in no line count."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def opcodes(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[str, int, int, int, int]]:
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

    def lines(self) -> dict[int, int]:
        """The lines (1-based) of the second text by those of the first, where they are equal or were rewritten one for one."""
        blocks = [block for block in self._blocks if block[0] == "equal" or block[2] - block[1] == block[4] - block[3]]
        return {i + n + 1: k + n + 1 for _, i, j, k, _ in blocks for n in range(j - i)}
