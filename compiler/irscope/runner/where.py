"""Where the main thread of a rank was, some hundred times a second: what a rank did before it came late to a collective."""

from __future__ import annotations

import _thread
import threading
import time
from bisect import bisect_right
from collections import Counter, deque

from irscope.internals.stacks import place_in

_PAUSE = 0.0025
"""Seconds between two looks: a look takes some 10 µs."""
_MOST = 50_000
"""Looks that are kept, the last ones, where the line changes with each of them."""


class Whereabouts:
    """Looks from `start` to `stop`."""

    def __init__(self) -> None:
        self._ends = False
        self._looks: deque[tuple[int, str, int]] = deque(maxlen=_MOST)

    def start(self) -> None:
        """In a thread that is not one of the script's `threading` threads."""
        main = threading.main_thread().ident or 0
        _thread.start_new_thread(self._look, (main,))

    def stop(self) -> None:
        """Also in a fork, which does not have the thread."""
        self._ends = True

    def _look(self, main: int) -> None:
        before: tuple[str, int] | None = None
        while not self._ends:
            time.sleep(_PAUSE)
            place = place_in(main)
            if place != before:
                self._looks.append((time.time_ns(), *place))
                before = place

    def at(self, time: int) -> tuple[str, int]:
        """The user's line in which the main thread was at a time; an empty file if it is not known."""
        place = ("", 0)
        for since, file, line in list(self._looks):
            if since > time:
                break
            place = file, line
        return place

    def longest_between(self, begin: int, end: int, but: tuple[str, int]) -> tuple[str, int]:
        """The user's line in which the main thread was longest between two times, in nanoseconds since the epoch.

        Parameters
        ----------
        but
            The line of the collective itself, in which the rank also is while it waits.

        An empty file if it was seen nowhere else.
        """
        looks = list(self._looks)
        spent: Counter[tuple[str, int]] = Counter()
        at = max(0, bisect_right(looks, begin, key=lambda look: look[0]) - 1)
        for number in range(at, len(looks)):
            since, file, line = looks[number]
            if since >= end:
                break
            until = looks[number + 1][0] if number + 1 < len(looks) else end
            if file and (file, line) != but:
                spent[file, line] += min(until, end) - max(since, begin)
        found = spent.most_common(1)
        return found[0][0] if found else ("", 0)
