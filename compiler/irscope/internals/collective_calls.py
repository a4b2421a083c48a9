"""The calls of a collective that PyTorch's runtime issues, counted and timed."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

_MOST_TIMED = 1000
"""Calls of one collective whose times are kept, the last ones."""

Row = list[Any]
"""``[issuer, operation, module, peer, bytes, file, line, calls, calls beside, nanoseconds beside, nanoseconds on the
device]``: bytes that the rank gives into one call, -1 if they are not known; calls after which the rank went on, and for how
long until it waited, both -1 if that is not known; what these calls took on the device, -1 if it has not timed them."""


class Call:
    """A call on a device: nanoseconds that it took there, and those that the stream of computations waited for it."""

    def __init__(self, took: int = 0, waited: int | None = None, begin: int = 0, end: int = 0) -> None:
        self.took, self._waited = took, waited
        self.begin, self.end = begin, end
        """When the host issued it, in nanoseconds since the epoch."""

    def waits(self, passed: int) -> None:
        """So long once more."""
        self._waited = (self._waited or 0) + passed

    @property
    def is_known(self) -> bool:
        """Whether the recorder timed it, and a wait for it was seen: without one nobody knows what the stream did."""
        return self.took > 0 and self._waited is not None

    @property
    def beside(self) -> int:
        """Nanoseconds in which the stream went on."""
        return max(0, self.took - (self._waited or 0))


class Calls:
    """All calls of one collective from one line."""

    def __init__(self) -> None:
        self.calls = self.beside = self.beside_ns = 0
        self.on_device: deque[Call] = deque(maxlen=_MOST_TIMED)

    def went_on(self, passed: int) -> None:
        """A call, by the clock of the host."""
        self.beside += 1
        self.beside_ns += passed

    def is_not_known(self) -> None:
        """Whether the rank went on."""
        self.beside = self.beside_ns = -1

    def row(self) -> list[int]:
        """As the end of a `Row`.  The first of several calls is left out: a rank may wait for the compile of another."""
        if not self.on_device:
            return [self.calls, self.beside, self.beside_ns, -1]
        timed = [call for call in self.on_device if call.is_known]
        timed = timed[1:] or timed
        if not timed:
            return [self.calls, -1, -1, -1]
        return [self.calls, len(timed), sum(call.beside for call in timed), sum(call.took for call in timed)]


def take_durations(calls: Iterable[Call], recorded: Sequence[dict[str, Any]]) -> None:
    """Gives each call the time that NCCL's kernels took, from the flight recorder's entries that were made while the host
    issued it: those of a batch of sends are one, others follow each other."""
    entries = sorted(
        (int(entry["time_created_ns"]), bool(entry.get("is_p2p")), int(entry["duration_ms"] * 1e6))
        for entry in recorded
        if entry.get("duration_ms")
    )
    for call in calls:
        first, last = (bisect_left(entries, (at,)) for at in (call.begin, call.end))
        mine = entries[first:last]
        batch = max((took for _, is_p2p, took in mine if is_p2p), default=0)
        call.took = max(batch, sum(took for _, is_p2p, took in mine if not is_p2p))
