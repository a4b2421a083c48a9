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
    """The parts of a timeline.

    Args:
        busy: When the device worked while the batch went on, also for launches of other batches.
        has_device: Whether the trace has a device.
        begin: When it begins, in a trace without steps: where the one before it ends.
        has_picture: Whether the step that a picture shows is in it.
        typical: Seconds of that step; None in a trace without steps.
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
    """The events of a trace that go into a timeline.

    Args:
        most: Events of a batch.
    """

    def __init__(self, events: EventColumns, most: int) -> None:
        self._events = events
        self._plan = self._planned(most)

    def _of(self, categories: Iterable[str]) -> array[int]:
        is_wanted = [value in categories for value in self._events.categories.values]
        return array("q", itertools.compress(itertools.count(), map(is_wanted.__getitem__, self._events.category)))

    def _planned(self, most: int) -> _Plan:
        events = self._events
        host, device, overhead = self._of(HOST), self._of(DEVICE), self._of([OVERHEAD])
        host = array("q", sorted(host, key=events.start.__getitem__))
        starts = array("d", map(events.start.__getitem__, host))
        steps = self._steps(host)
        cuts, ends = self._cuts(host, starts, steps, most)
        places = [0, *(bisect.bisect_left(starts, cut) for cut in cuts), len(host)]
        shares = [host[begin:end] for begin, end in itertools.pairwise(places)]
        ids = self._ids()
        batch_of = self._batches_of_ids(ids, shares, device)
        for at in itertools.chain(device, overhead):
            batch = batch_of.get(ids[at])
            shares[bisect.bisect_right(cuts, events.start[at]) if batch is None else batch].append(at)
        typical = sorted(steps, key=events.seconds.__getitem__)[len(steps) // 2] if steps else None
        return _Plan(
            cuts,
            ends,
            shares,
            merged((events.start[at], events.start[at] + events.seconds[at]) for at in device),
            0 if typical is None else bisect.bisect_right(cuts, events.start[typical]),
            None if typical is None else events.seconds[typical],
            len(steps),
            len(set(map(events.thread.__getitem__, host))),
        )

    @property
    def names(self) -> list[str]:
        """The names of the events, each once."""
        return self._events.names.values

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
            self._events.events(sorted(plan.shares[number])),
            plan.busy[first:last],
            bool(plan.busy),
            plan.ends[number - 1] if number and not plan.steps else None,
            number == plan.picture,
            plan.typical,
        )

    def _steps(self, host: array[int]) -> list[int]:
        is_one = [is_step(name) for name in self._events.names.values]
        if not any(is_one):
            return []
        return list(itertools.compress(host, map(is_one.__getitem__, map(self._events.name.__getitem__, host))))

    def _cuts(
        self, host: array[int], starts: array[float], steps: list[int], most: int
    ) -> tuple[array[float], array[float]]:
        """Where a batch ends and the next one begins, and when the last span before that ends."""
        cuts, ends, last, until = array("d"), array("d"), 0, float("-inf")
        for at in steps or host:
            start = self._events.start[at]
            if start >= until and (place := bisect.bisect_left(starts, start)) - last >= most:
                cuts.append(start)
                ends.append(until)
                last = place
            until = max(until, start + self._events.seconds[at])
        return cuts, ends

    def _ids(self) -> array[int]:
        """The ID by which the timeline joins each event: the correlation, else the external ID."""
        correlation, external, _ = self._events.ids
        return array("q", [2 * a if a != NO_ID else NO_ID if b == NO_ID else 2 * b + 1
                           for a, b in zip(correlation, external, strict=True)])  # fmt: skip

    def _batches_of_ids(self, ids: array[int], shares: list[array[int]], device: array[int]) -> dict[int, int]:
        """The batch of a launch, by what the launch and its kernels have in common."""
        if len(shares) < 2:
            return {}
        of_device = set(map(ids.__getitem__, device)) - {NO_ID}
        found: dict[int, int] = {}
        for batch, share in enumerate(shares):
            found.update(dict.fromkeys(of_device.intersection(map(ids.__getitem__, share)), batch))
        return found
