"""What was wrong with a trace: counted by sort, or an error where the reader wants none."""

from __future__ import annotations

from irscope.protocol import CaptureGap
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import bounded


class TraceError(Exception):
    """A trace cannot be opened; the message says why."""


class Warnings:
    """Counts what is wrong with a trace.

    Args:
        strict: Whether the first one is raised as a `TraceError`.
    """

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict
        self._counts: dict[str, int] = {}
        self._firsts: dict[str, str] = {}

    def add(self, what: str, where: str) -> None:
        """One more of a sort, such as ``a record without its end``; ``where`` is kept of the first one."""
        where = bounded(where, 500)
        if self._strict:
            raise TraceError(f"{where}: {what}.")
        self._counts[what] = self._counts.get(what, 0) + 1
        self._firsts.setdefault(what, where)

    def gaps(self) -> list[CaptureGap]:
        """One for each sort, with the number and the place of the first."""
        return [
            CaptureGap(f"{count(number, 'part')} of the trace", f"{what}. The first one: {self._firsts[what]}.")
            for what, number in self._counts.items()
        ]

    @property
    def total(self) -> int:
        """How many there are, of all sorts."""
        return sum(self._counts.values())
