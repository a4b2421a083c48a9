"""Bytes over the time of a step, with as many points as a picture needs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

MOST_POINTS = 400


class Curve:
    """A curve with few points: the most bytes of each piece of time.

    Args:
        whole: Nanoseconds and bytes, in their order.
    """

    def __init__(self, whole: Sequence[tuple[int, int]]) -> None:
        self._start, self._end = whole[0][0], whole[-1][0]
        pieces: dict[int, tuple[float, int]] = {}
        for time, bytes in whole:
            piece, part = self._piece(time)
            if piece not in pieces or bytes > pieces[piece][1]:
                pieces[piece] = part, bytes
        self._pieces = sorted(pieces)
        self.points = [pieces[piece] for piece in self._pieces]

    def piece(self, time: int) -> int:
        """The number of the point of a time."""
        return bisect_left(self._pieces, self._piece(time)[0], hi=len(self._pieces) - 1)

    def _piece(self, time: int) -> tuple[int, float]:
        part = (time - self._start) / (self._end - self._start or 1)
        return min(MOST_POINTS - 1, int(part * MOST_POINTS)), part
