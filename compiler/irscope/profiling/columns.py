"""Events in columns: some 50 bytes each, and ten times as much as an object.

Several processes may read the parts of one trace; their columns are put together in the order of the parts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from irscope.ir.kineto import Event
from irscope.profiling.timeline import DEVICE, HOST, OVERHEAD

NO_ID = -1
IDS = ("correlation", "External id", "Sequence number")
_TEXTS = 1 << 61
"""IDs from here on are numbers of texts."""
_USED = HOST | DEVICE | {OVERHEAD}


class Table:
    """Numbers for values that are there often."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The same number for the same value."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found

    def known(self, value: Any) -> int:
        """-1 if it is not there."""
        return self._numbers.get(value, -1)


class EventColumns:
    """The events of a trace that a timeline is made of, by their numbers."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.names, self.categories, self.threads, self.files, self._texts = (Table() for _ in range(5))
        self.start, self.seconds = array("d"), array("d")
        self.name, self.file = array("l"), array("l")
        self.category, self.thread = array("l"), array("l")
        self.ids = tuple(array("q") for _ in IDS)
        self._by_key = tuple(zip(IDS, self.ids, strict=True))
        for event in events:
            if event.category in _USED:
                self._add(event)

    def __len__(self) -> int:
        return len(self.start)

    def _add(self, event: Event) -> None:
        args = event.args
        self.start.append(event.start)
        self.seconds.append(event.seconds)
        self.name.append(self.names.number(event.name))
        self.category.append(self.categories.number(event.category))
        self.thread.append(self.threads.number(event.thread))
        self.file.append(self.files.number(str(args["kernel_file"])[:4096]) if "kernel_file" in args else -1)
        for key, column in self._by_key:
            value = args.get(key, NO_ID)
            if type(value) is not int or not -1 <= value < _TEXTS:
                value = NO_ID if type(value) is not str else _TEXTS + self._texts.number(value[:80])
            column.append(value)

    def event(self, at: int) -> Event:
        """One of them as an object."""
        args: dict[str, Any] = {}
        for key, column in self._by_key:
            if (id := column[at]) != NO_ID:
                args[key] = id
        if self.file[at] >= 0:
            args["kernel_file"] = self.files.values[self.file[at]]
        return Event(
            self.names.values[self.name[at]], self.categories.values[self.category[at]], self.start[at],
            self.seconds[at], self.threads.values[self.thread[at]], args,
        )  # fmt: skip

    def extend(self, other: EventColumns) -> None:
        """With the events of the next part of the same trace."""
        self.start.extend(other.start)
        self.seconds.extend(other.seconds)
        for mine, table, their, their_table in (
            (self.name, self.names, other.name, other.names),
            (self.category, self.categories, other.category, other.categories),
            (self.thread, self.threads, other.thread, other.threads),
            (self.file, self.files, other.file, other.files),
        ):
            numbers = [table.number(value) for value in their_table.values]
            numbers.append(-1)  # of an event without a file
            mine.extend(map(numbers.__getitem__, their))
        texts = [_TEXTS + self._texts.number(value) for value in other._texts.values]
        for column, their in zip(self.ids, other.ids, strict=True):
            column.extend(their if not texts else (texts[id - _TEXTS] if id >= _TEXTS else id for id in their))
