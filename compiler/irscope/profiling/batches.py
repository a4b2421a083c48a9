"""A large trace in batches of whole steps: its events are kept in columns, and become objects for one batch at a time.

An event is some 50 bytes in columns and ten times as much as an object, with the spans and segments that a timeline makes of it.
So what the reader holds does not grow much with the trace.  A batch begins where nothing goes on: with a step, or, in a trace
without steps, where no thread is in an operator.
"""

from __future__ import annotations

import bisect
import itertools
from array import array
from collections.abc import Iterable
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
    has_device
        Whether the trace has a device.
    begin
        When it begins, in a trace without steps: where the one before it ends.
    has_picture
        Whether the step that a picture shows is in it.
    typical
        Seconds of that step; None in a trace without steps.
    """

    events: list[Event]
    busy: list[tuple[float, float]]
    has_device: bool
    begin: float | None
    has_picture: bool
    typical: float | None


@dataclass(frozen=True)
class _Plan:
    """How the events are divided: where a batch ends and the next one begins, and the numbers of the events of each."""

    cuts: array[float]
    ends: array[float]
    """When the last span before a cut ends."""
    shares: list[array[int]]
    busy: list[tuple[float, float]]
    picture: int
    typical: float | None
    steps: int
    threads: int


class Columns:
    """The events of a trace that a timeline is made of.

    Parameters
    ----------
    most
        Events of a batch.
    """

    def __init__(self, events: Iterable[Event], most: int) -> None:
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
        self._plan = self._planned(most)

    def __len__(self) -> int:
        return len(self._start)

    def _add(self, event: Event) -> None:
        args = event.args
        self._start.append(event.start)
        self._seconds.append(event.seconds)
        self._name.append(self._names.number(event.name))
        self._category.append(self._categories.number(event.category))
        self._thread.append(self._threads.number(event.thread))
        self._file.append(self._files.number(str(args["kernel_file"])[:4096]) if "kernel_file" in args else -1)
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

    def _of(self, categories: Iterable[str]) -> array[int]:
        wanted = {self._categories.known(each) for each in categories}
        return array("q", (at for at, category in enumerate(self._category) if category in wanted))

    def _planned(self, most: int) -> _Plan:
        host, device, overhead = self._of(HOST), self._of(DEVICE), self._of([OVERHEAD])
        host = array("q", sorted(host, key=self._start.__getitem__))
        steps = self._steps(host)
        cuts, ends = self._cuts(host, steps, most)
        shares = [array("q") for _ in range(len(cuts) + 1)]
        for at in host:
            shares[bisect.bisect_right(cuts, self._start[at])].append(at)
        batch_of = self._batches_of_ids(host, device, cuts)
        for at in itertools.chain(device, overhead):
            by_time = bisect.bisect_right(cuts, self._start[at])
            shares[batch_of.get(self._id(at), by_time)].append(at)
        typical = sorted(steps, key=self._seconds.__getitem__)[len(steps) // 2] if steps else None
        return _Plan(
            cuts,
            ends,
            shares,
            merged((self._start[at], self._start[at] + self._seconds[at]) for at in device),
            0 if typical is None else bisect.bisect_right(cuts, self._start[typical]),
            None if typical is None else self._seconds[typical],
            len(steps),
            len({self._thread[at] for at in host}),
        )

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return len(self._plan.shares)

    @property
    def steps(self) -> int:
        """How many steps there are; without steps each thread is one."""
        return self._plan.steps or self._plan.threads

    def batch(self, number: int) -> Batch:
        """One of them, counted from 0."""
        plan = self._plan
        begin = plan.ends[number - 1] if number else float("-inf")
        end = plan.cuts[number] if number < len(plan.cuts) else float("inf")
        first = bisect.bisect_right(plan.busy, begin, key=lambda one: one[1])
        last = bisect.bisect_left(plan.busy, end, key=lambda one: one[0])
        return Batch(
            [self._event(at) for at in sorted(plan.shares[number])],
            plan.busy[first:last],
            bool(plan.busy),
            plan.ends[number - 1] if number and not plan.steps else None,
            number == plan.picture,
            plan.typical,
        )

    def _steps(self, host: array[int]) -> list[int]:
        names = {number for number, name in enumerate(self._names.values) if is_step(name)}
        return [at for at in host if self._name[at] in names] if names else []

    def _cuts(self, host: array[int], steps: list[int], most: int) -> tuple[array[float], array[float]]:
        """Where a batch ends and the next one begins, and when the last span before that ends."""
        starts = array("d", (self._start[at] for at in host))
        cuts, ends, last, until = array("d"), array("d"), 0, float("-inf")
        for at in steps or host:
            start = self._start[at]
            if start >= until and (place := bisect.bisect_left(starts, start)) - last >= most:
                cuts.append(start)
                ends.append(until)
                last = place
            until = max(until, start + self._seconds[at])
        return cuts, ends

    def _batches_of_ids(self, host: array[int], device: array[int], cuts: array[float]) -> dict[int, int]:
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
