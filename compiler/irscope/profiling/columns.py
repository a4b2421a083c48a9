"""Events in columns: some 50 bytes each, and ten times as much as an object.

Several processes may read the parts of one trace; their columns are put together in the order of the parts.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from irscope.ir.kineto import LONGEST_NAME, LONGEST_WORD, MOST_EVENTS, Event, Taker, TraceError, made, row
from irscope.ir.kineto_quick import QuickEvent, quick_events
from irscope.profiling.timeline import DEVICE, HOST, OVERHEAD

NO_ID = -1
IDS = ("correlation", "External id", "Sequence number")
_TEXTS = 1 << 61
"""IDs from this one up are numbers of texts."""
_LONGEST_PATH = 4096
_USED = HOST | DEVICE | {OVERHEAD}
Reader = Callable[[Counter[str], "Taker | None"], Iterator[Event]]
"""Reads the events of a trace or of a part of it: it counts what is left out, and lets a taker have whole blocks."""


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

    def numbers(self, raw: Sequence[Any], value_of: Callable[[Any], Any]) -> list[int]:
        """The numbers of the values that are made of these; each of these only once."""
        numbers = {each: self.number(value_of(each)) for each in set(raw)}
        return [numbers[each] for each in raw]

    def known(self, value: Any) -> int:
        """-1 if it is not there."""
        return self._numbers.get(value, -1)


class EventColumns:
    """The events of a trace that go into a timeline, by their numbers."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.names, self.categories, self.threads, self.files, self._texts = (Table() for _ in range(5))
        self.start, self.seconds = array("d"), array("d")
        self.name, self.file = array("l"), array("l")
        self.category, self.thread = array("l"), array("l")
        self.ids = tuple(array("q") for _ in IDS)
        self._by_key = tuple(zip(IDS, self.ids, strict=True))
        self._add_all(events)

    @classmethod
    def read(cls, reader: Reader, left_out: Counter[str]) -> EventColumns:
        """The columns of what a reader reads, several times faster where msgspec is installed.  Raises what the reader
        raises."""
        found = cls()
        found._add_all(reader(left_out, found._taker()))
        return found

    def __len__(self) -> int:
        return len(self.start)

    def _taker(self) -> Taker | None:
        events = quick_events()
        if events is None:
            return None

        def take(text: str) -> bool:
            try:
                found = events(text)
            except (ValueError, RecursionError):
                return False
            self._take([one for one in found if one.cat in _USED])
            return True

        return take

    def _take(self, events: list[QuickEvent]) -> None:
        args = [event.args for event in events]
        self.start.extend([(event.ts or 0.0) / 1e6 for event in events])
        self.seconds.extend([event.dur / 1e6 for event in events])
        self.name.extend(self.names.numbers([event.name for event in events], lambda name: name[:LONGEST_NAME]))
        self.category.extend(self.categories.numbers([event.cat for event in events], str))
        threads = [(event.pid, event.tid) for event in events]
        self.thread.extend(self.threads.numbers(threads, lambda thread: row(*thread)))
        self._take_files([arg.kernel_file for arg in args])
        correlation, external, sequence = self.ids
        correlation.extend([arg.correlation for arg in args])
        external.extend([arg.external for arg in args])
        sequence.extend([arg.sequence for arg in args])
        if len(self) > MOST_EVENTS:
            raise TraceError(f"The trace has more than {MOST_EVENTS} events.")

    def _take_files(self, files: list[str | None]) -> None:
        numbers = self.files.numbers([file for file in files if file is not None], _path)
        with_file = iter(numbers)
        self.file.extend(
            [-1] * len(files) if not numbers else (-1 if file is None else next(with_file) for file in files)
        )

    def _add_all(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.category in _USED:
                self._add(event)

    def _add(self, event: Event) -> None:
        args = event.args
        self.start.append(event.start)
        self.seconds.append(event.seconds)
        self.name.append(self.names.number(event.name))
        self.category.append(self.categories.number(event.category))
        self.thread.append(self.threads.number(event.thread))
        self.file.append(self.files.number(_path(args["kernel_file"])) if "kernel_file" in args else -1)
        for key, column in self._by_key:
            value = args.get(key, NO_ID)
            if type(value) is not int or not -1 <= value < _TEXTS:
                value = NO_ID if type(value) is not str else _TEXTS + self._texts.number(value[:LONGEST_WORD])
            column.append(value)

    def events(self, which: Sequence[int]) -> list[Event]:
        """Some of them as objects."""
        names, categories, threads = self.names.values, self.categories.values, self.threads.values
        correlation, external, sequence = self.ids
        found = []
        for at in which:
            args: dict[str, Any] = {}
            if (id := correlation[at]) != NO_ID:
                args["correlation"] = id
            if (id := external[at]) != NO_ID:
                args["External id"] = id
            if (id := sequence[at]) != NO_ID:
                args["Sequence number"] = id
            if (file := self.file[at]) >= 0:
                args["kernel_file"] = self.files.values[file]
            found.append(made((names[self.name[at]], categories[self.category[at]], self.start[at], self.seconds[at],
                               threads[self.thread[at]], args)))  # fmt: skip
        return found

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
            if numbers == list(range(len(numbers))):  # as in the first part, and mostly in the others
                mine.extend(their)
                continue
            numbers.append(-1)  # of an event without a file
            mine.extend(map(numbers.__getitem__, their))
        texts = [_TEXTS + self._texts.number(value) for value in other._texts.values]
        for column, their in zip(self.ids, other.ids, strict=True):
            column.extend(their if not texts else (texts[id - _TEXTS] if id >= _TEXTS else id for id in their))


def _path(file: Any) -> str:
    return str(file)[:_LONGEST_PATH]
