"""Where the main thread of a rank was: what a rank did before it came late to a collective.

A thread looks, but only while there is a process group: about a hundred times a second for half a minute, so that short
jobs have enough looks, and then 16 times.  The pause is random, so that looks do not keep step with the script.  Calls of a
collective repeat, so few looks are enough.
"""

from __future__ import annotations

import _thread
import functools
import random
import threading
import time
import types
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from itertools import count
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute
from irscope.internals.stacks import place_in

_PAUSES, _LATER_PAUSES = (0.005, 0.015), (0.03, 0.09)
"""The least and the most seconds between two looks."""
_FIRST = 3000
"""Looks with the shorter pauses."""
_MOST = 20_000
"""Looks and changes that are kept, the last ones."""
_MOST_LINES = 5

Place = tuple[str, int]


class Whereabouts:
    """Looks while its hooks are in place and the script has a process group."""

    def __init__(self) -> None:
        self._looking: object | None = None
        self._looks: deque[tuple[int, str, int]] = deque(maxlen=_MOST)
        self._backwards: deque[tuple[int, str, int]] = deque(maxlen=_MOST)
        """From when on the main thread is in a backward of this line; an empty file: in none."""

    def hooks(self) -> list[Hook]:
        """What begins and ends it."""
        return [
            Hook(
                "what the last rank of a collective did before",
                "torch.distributed.distributed_c10d",
                "2.11 to 2.13",
                self._see_groups,
            ),
            Hook("the line of a GPU's backward", "torch.autograd", "2.11 and 2.13", self._see_backwards),
        ]

    @property
    def is_looking(self) -> bool:
        """Whether its thread runs."""
        return self._looking is not None

    def stop(self) -> None:
        """Also in a fork, which does not have the thread."""
        self._looking = None

    def _see_groups(self, module: types.ModuleType) -> Undo:
        update: Any = vars(module)["_update_default_pg"]

        @functools.wraps(update)
        def _update_default_pg(group: Any) -> None:
            """PyTorch calls it for the first group, and with None when all are destroyed."""
            update(group)
            if group is None:
                self.stop()
            elif self._looking is None:
                self._start()

        put_back = replace_attribute(module, "_update_default_pg", _update_default_pg)

        def undo() -> None:
            put_back()
            self.stop()

        return undo

    def _start(self) -> None:
        """In a thread that is not one of the script's `threading` threads."""
        self._looking = looking = object()
        _thread.start_new_thread(self._look, (threading.main_thread().ident or 0, looking))

    def _look(self, main: int, looking: object) -> None:
        pause = random.Random(0).uniform  # the script's own numbers stay as they are
        for number in count():
            time.sleep(pause(*(_PAUSES if number < _FIRST else _LATER_PAUSES)))
            if self._looking is not looking:
                return
            self._looks.append((time.time_ns(), *place_in(main)))

    def _see_backwards(self, autograd: types.ModuleType) -> Undo:
        run: Any = vars(autograd)["_engine_run_backward"]

        @functools.wraps(run)
        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            if self._looking is None or threading.current_thread() is not threading.main_thread():
                return run(*args, **kwargs)
            before = self._backwards[-1][1:] if self._backwards else ("", 0)
            self._backwards.append((time.time_ns(), *place_in(threading.get_ident())))
            try:
                return run(*args, **kwargs)
            finally:
                self._backwards.append((time.time_ns(), *before))

        return replace_attribute(autograd, "_engine_run_backward", _engine_run_backward)

    def at(self, time: int) -> Place:
        """The user's line whose backward ran at a time; an empty file if none ran."""
        changes = list(self._backwards)
        number = bisect_right(changes, time, key=lambda change: change[0]) - 1
        return changes[number][1:] if number >= 0 else ("", 0)

    def between(self, begin: int, end: int, but: Place) -> list[list[Any]]:
        """The user's lines in which looks between two times found the main thread, in nanoseconds since the epoch.

        Args:
            but: The line of the collective itself, in which the rank also is while it waits: given if all looks found
                it there.

        Returns
        -------
        ``[file, line, looks]`` of the lines with most looks.
        """
        looks = list(self._looks)
        first, last = (bisect_left(looks, at, key=lambda look: look[0]) for at in (begin, end))
        found = Counter((file, line) for _, file, line in looks[first:last] if file)
        there = found.pop(but, 0)
        return [
            [*place, number]
            for place, number in (found or Counter({but: there} if there else {})).most_common(_MOST_LINES)
        ]
