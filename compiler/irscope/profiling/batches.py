"""A large trace in batches of whole steps: its events are kept in columns, and become objects for one batch at a time.

An event is some 50 bytes in columns and ten times as much as an object, with the spans and segments that a timeline makes of it.
So what the reader holds does not grow much with the trace.  A batch begins where nothing goes on: with a step, or, in a trace
without steps, where no thread is in an operator.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from irscope.ir.kineto import Event
from irscope.profiling.timeline import DEVICE, HOST, OVERHEAD, is_step, merged

_NO_ID = -1
_IDS = ("correlation", "External id", "Sequence number")


@dataclass(frozen=True)
class Batch:
    """What a timeline is made of.

    Parameters
    ----------
    busy
        When the device worked while the batch went on, also for launches of other batches.
    number
        Counted from 0.
    begin
        When it begins: where the one before it ends, for a trace without steps.
    """

    events: list[Event]
    busy: list[tuple[float, float]]
    number: int
    begin: float | None


class Columns:
    """The events of a trace that a timeline is made of."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._names = _Table()
        self._categories = _Table()
        self._threads = _Table()
        self._files = _Table()
        self._texts = _Table()
        self._start, self._seconds = array("d"), array("d")
        self._name, self._file = array("l"), array("l")
        self._category, self._thread = array("l"), array("l")
        self._ids = tuple(array("q") for _ in _IDS)
        for event in events:
            if event.category in HOST or event.category in DEVICE or event.category == OVERHEAD:
                self._add(event)

    def __len__(self) -> int:
        return len(self._start)

    def _add(self, event: Event) -> None:
        args = event.args
        self._start.append(event.start)
        self._seconds.append(event.seconds)
        self._name.append(self._names.number(event.name))
        self._category.append(self._categories.number(event.category))
        self._thread.append(self._threads.number(event.thread))
        self._file.append(self._files.number(str(args.get("kernel_file", "")[:4096])) if "kernel_file" in args else -1)
        for key, column in zip(_IDS, self._ids, strict=True):
            value = args.get(key, _NO_ID)
            if type(value) is not int or not -1 <= value < 1 << 61:
                value = _NO_ID if type(value) is not str else (1 << 61) + self._texts.number(value[:80])
            column.append(value)

    def _event(self, at: int) -> Event:
        args: dict[str, Any] = {
            key: column[at] for key, column in zip(_IDS, self._ids, strict=True) if column[at] != _NO_ID
        }
        if self._file[at] >= 0:
            args["kernel_file"] = self._files.values[self._file[at]]
        return Event(
            self._names.values[self._name[at]], self._categories.values[self._category[at]], self._start[at],
            self._seconds[at], self._threads.values[self._thread[at]], args,
        )  # fmt: skip

    def _of(self, categories: Iterable[str]) -> list[int]:
        wanted = {self._categories.known(each) for each in categories}
        return [at for at, category in enumerate(self._category) if category in wanted]

    def batches(self, most: int) -> Iterator[Batch]:
        """All events in batches of about ``most``, or of one step if that has more."""
        host, device = self._of(HOST), self._of(DEVICE)
        overhead = self._of([OVERHEAD])
        host.sort(key=self._start.__getitem__)
        busy = merged((self._start[at], self._start[at] + self._seconds[at]) for at in device)
        cuts, has_steps = self._cuts(host, most)
        batch_of = self._batches_of_ids(host, device, cuts)
        shares: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
        for at in host:
            shares[bisect.bisect_right(cuts, self._start[at])].append(at)
        for at in (*device, *overhead):
            by_time = bisect.bisect_right(cuts, self._start[at])
            shares[batch_of.get(self._id(at), by_time)].append(at)
        for number, share in enumerate(shares):
            begin = cuts[number - 1] if number else float("-inf")
            end = cuts[number] if number < len(cuts) else float("inf")
            inside = busy[
                bisect.bisect_right(busy, begin, key=lambda one: one[1]) : bisect.bisect_left(busy, end, key=lambda one: one[0])
            ]
            share.sort()
            first = None if has_steps or not number else begin
            yield Batch([self._event(at) for at in share], inside, number, first)

    def _cuts(self, host: list[int], most: int) -> tuple[array[float], bool]:
        """Where a batch ends and the next one begins, and whether there are steps."""
        names = {number for number, name in enumerate(self._names.values) if is_step(name)}
        steps = [at for at in host if self._name[at] in names]
        starts = array("d", (self._start[at] for at in host))
        cuts, last, until = array("d"), 0, float("-inf")
        for at in steps or host:
            start = self._start[at]
            if start >= until and (place := bisect.bisect_left(starts, start)) - last >= most:
                cuts.append(start)
                last = place
            until = max(until, start + self._seconds[at])
        return cuts, bool(steps)

    def _batches_of_ids(self, host: list[int], device: list[int], cuts: array[float]) -> dict[int, int]:
        """The batch of a launch, by what the launch and its kernels have in common."""
        if not cuts:
            return {}
        found = dict.fromkeys(map(self._id, device), -1)
        for at in host:
            if (id := self._id(at)) in found:
                found[id] = bisect.bisect_right(cuts, self._start[at])
        return {id: batch for id, batch in found.items() if batch >= 0 and id != _NO_ID}

    def _id(self, at: int) -> int:
        """As the timeline joins them: the correlation, else the external ID."""
        correlation, external = self._ids[0][at], self._ids[1][at]
        return 2 * correlation if correlation != _NO_ID else 2 * external + 1 if external != _NO_ID else _NO_ID


class _Table:
    """Numbers for values that are there often."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found

    def known(self, value: Any) -> int:
        """-1 if it is not there."""
        return self._numbers.get(value, -1)
