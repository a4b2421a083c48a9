"""The parts of a symbolic trace's data: whether its numbers are what they should be, and what appears as it goes on."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

_MOST = 2**53


def check_numbers(data: dict[str, Any]) -> None:
    """Checks what is read only at its step: a trace may come from elsewhere.

    Raises LookupError or TypeError if it is not a number, or points at nothing.
    """
    steps, strings, codes, instructions = data["steps"], data["strings"], data["codes"], data["instructions"]
    if not set(map(type, strings)) <= {str}:
        raise TypeError("not a text")
    texts = len(strings)
    _check_code(codes, instructions, texts)
    _within(steps["frame"], 0, len(data["frames"]))
    _within(steps["instruction"], 0, len(instructions))
    _within(steps["caller"], -1, _MOST)
    _within(steps["kept"], 0, _MOST)
    _within(steps["pushes"], 0, _MOST)
    _within(steps["pushed"], 0, texts)
    for row in data["locals"]:
        _within(row[1::2], 0, texts)
        _within(row[2::2], -1, texts)
        if len(row) % 2 == 0:
            raise LookupError("a local without a text")
    for column in ("nodes", "gone", "guards", "guards_gone"):
        _within([number for row in data[column] for number in row[:2]], -1, _MOST)
    listings = data.get("listings") or []
    if len(listings) > len(codes):
        raise LookupError("more listings than code objects")
    for listing in listings:
        _within(listing, 0, len(instructions))


def _check_code(codes: list[list[int]], instructions: list[list[int]], texts: int) -> None:
    for file, function, line in codes:
        _within([file, function], 0, texts)
        _within([line], -1, _MOST)
    _within([row[0] for row in instructions], 0, len(codes))
    _within([text for row in instructions for text in row[2:4]], 0, texts)
    _within([number for row in instructions for number in row[1:]], -1, _MOST)
    if any(len(row) != 8 for row in instructions):
        raise LookupError("an instruction without a place")


def _within(numbers: Sequence[int], least: int, below: int) -> None:
    """Raises TypeError or LookupError if it is not a number, or out of bounds."""
    if not set(map(type, numbers)) <= {int}:
        raise TypeError("not a number")
    if numbers and not least <= min(numbers) <= max(numbers) < below:
        raise LookupError(f"a number that is not from {least} to {below - 1}")


def without(texts: tuple[str, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    """Each text that is gone takes away the first one like it."""
    if not gone:
        return texts
    left = Counter(gone)
    kept = []
    for text in texts:
        if left[text]:
            left[text] -= 1
        else:
            kept.append(text)
    return tuple(kept)


class Events:
    """Texts that appear one after the other, each brought about by a step."""

    def __init__(self, rows: list[list[Any]]) -> None:
        self._when = [row[0] for row in rows]
        self._upto: list[int] = []
        self._texts: list[str] = []
        self._of: dict[int, list[str]] = {}
        self._owner: dict[str, int] = {}
        for _, step, texts in rows:
            self._texts += texts
            self._upto.append(len(self._texts))
            self._of.setdefault(step, []).extend(texts)
            for text in texts:
                self._owner.setdefault(text, step)

    def of(self, step: int) -> tuple[str, ...]:
        """The texts that a step brought about, in order."""
        return tuple(self._of.get(step, ()))

    def until(self, step: int) -> tuple[str, ...]:
        """The items that were there before ``step`` began."""
        rows = bisect_right(self._when, step)
        return tuple(self._texts[: self._upto[rows - 1]]) if rows else ()

    def owner(self, text: str) -> int | None:
        """The first step that brought about a text; None if none did."""
        return self._owner.get(text)
