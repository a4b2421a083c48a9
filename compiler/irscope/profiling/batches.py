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

from irscope.ir.kineto import Event
from irscope.profiling.columns import NO_ID, EventColumns
from irscope.profiling.timeline import DEVICE, HOST, OVERHEAD, is_step, merged


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

    def __init__(self, events: EventColumns, most: int) -> None:
        self._events = events
        self._plan = self._planned(most)

    def _of(self, categories: Iterable[str]) -> array[int]:
        wanted = {self._events.categories.known(each) for each in categories}
        return array("q", (at for at, category in enumerate(self._events.category) if category in wanted))

    def _planned(self, most: int) -> _Plan:
        host, device, overhead = self._of(HOST), self._of(DEVICE), self._of([OVERHEAD])
        host = array("q", sorted(host, key=self._events.start.__getitem__))
        steps = self._steps(host)
        cuts, ends = self._cuts(host, steps, most)
        shares = [array("q") for _ in range(len(cuts) + 1)]
        for at in host:
            shares[bisect.bisect_right(cuts, self._events.start[at])].append(at)
        batch_of = self._batches_of_ids(host, device, cuts)
        for at in itertools.chain(device, overhead):
            by_time = bisect.bisect_right(cuts, self._events.start[at])
            shares[batch_of.get(self._id(at), by_time)].append(at)
        typical = sorted(steps, key=self._events.seconds.__getitem__)[len(steps) // 2] if steps else None
        return _Plan(
            cuts,
            ends,
            shares,
            merged((self._events.start[at], self._events.start[at] + self._events.seconds[at]) for at in device),
            0 if typical is None else bisect.bisect_right(cuts, self._events.start[typical]),
            None if typical is None else self._events.seconds[typical],
            len(steps),
            len({self._events.thread[at] for at in host}),
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
            [self._events.event(at) for at in sorted(plan.shares[number])],
            plan.busy[first:last],
            bool(plan.busy),
            plan.ends[number - 1] if number and not plan.steps else None,
            number == plan.picture,
            plan.typical,
        )

    def _steps(self, host: array[int]) -> list[int]:
        names = {number for number, name in enumerate(self._events.names.values) if is_step(name)}
        return [at for at in host if self._events.name[at] in names] if names else []

    def _cuts(self, host: array[int], steps: list[int], most: int) -> tuple[array[float], array[float]]:
        """Where a batch ends and the next one begins, and when the last span before that ends."""
        starts = array("d", (self._events.start[at] for at in host))
        cuts, ends, last, until = array("d"), array("d"), 0, float("-inf")
        for at in steps or host:
            start = self._events.start[at]
            if start >= until and (place := bisect.bisect_left(starts, start)) - last >= most:
                cuts.append(start)
                ends.append(until)
                last = place
            until = max(until, start + self._events.seconds[at])
        return cuts, ends

    def _batches_of_ids(self, host: array[int], device: array[int], cuts: array[float]) -> dict[int, int]:
        """The batch of a launch, by what the launch and its kernels have in common."""
        if not cuts:
            return {}
        found = dict.fromkeys(map(self._id, device), -1)
        for at in host:
            if (id := self._id(at)) in found:
                found[id] = bisect.bisect_right(cuts, self._events.start[at])
        return {id: batch for id, batch in found.items() if batch >= 0 and id != NO_ID}

    def _id(self, at: int) -> int:
        """As the timeline joins them: the correlation, else the external ID."""
        correlation, external = self._events.ids[0][at], self._events.ids[1][at]
        return 2 * correlation if correlation != NO_ID else 2 * external + 1 if external != NO_ID else NO_ID
