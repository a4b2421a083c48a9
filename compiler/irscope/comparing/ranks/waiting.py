"""Who waited for whom: which rank was the last to come to a collective, how long the others waited, and what it did before.

On a CPU a collective begins when its last rank arrives, and the others wait until then.  A GPU's host only enqueues it:
there its duration on each rank's device is the wait and the transfer, and the least of them is the transfer.  So

    wait of a rank = its duration - the least duration of all ranks     (NCCL)
    wait of a rank = arrival of the last rank - its arrival             (others)

Durations need no common clock.  Arrivals of one machine are comparable; clocks of several machines are not, so only ranks
of one machine are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from irscope.protocol import CaptureGap, CollectiveWait
from irscope.vocabulary.records import dataclass

Place = tuple[str, int]
_MOST_ROWS = 200
_KINDS = (str, int, str, int, str, int)
_MORE_KINDS = (int, list)
"""Runs of older versions of irscope do not have them."""
_PLACE = (str, int, int)
NO_DURATIONS = CaptureGap(
    "who waited for whom in collectives of NCCL",
    "PyTorch recorded no durations of them. Do not set TORCH_NCCL_ENABLE_TIMING=0 or TORCH_FR_BUFFER_SIZE=0; collectives of"
    " CUDA graphs have none",
)


@dataclass(frozen=True)
class _Arrival:
    """A rank at one collective."""

    time: int
    file: str
    line: int
    device: int
    before: Mapping[Place, int]
    """The lines that the rank was in before, with how often it was seen there."""


def waits_of(arrivals: Mapping[int, Sequence[Any]]) -> tuple[CollectiveWait, ...]:
    """The waits of all ranks, one row for each collective of the user's code, the longest first.

    Args:
        arrivals: By rank what `irscope.internals.flight_recorder.arrivals` returned; rows of another form are passed
            over.
    """
    totals: dict[tuple[str, str, int], _Total] = defaultdict(_Total)
    for (_, _, operation), ranks in _calls(arrivals).items():
        if len(ranks) > 1 and (waits := _waits(ranks)) is not None:
            first = ranks[min(ranks)]
            totals[operation, first.file, first.line].add(waits, ranks)
    found = [total.row(*key) for key, total in totals.items()]
    return tuple(sorted(found, key=lambda one: -one.seconds)[:_MOST_ROWS])


def unknown_waits(arrivals: Mapping[int, Sequence[Any]]) -> CaptureGap | None:
    """Where collectives of several ranks have no durations; None if there are none."""
    calls = [ranks for ranks in _calls(arrivals).values() if len(ranks) > 1]
    return NO_DURATIONS if any(_waits(ranks) is None for ranks in calls) else None


def _calls(arrivals: Mapping[int, Sequence[Any]]) -> dict[tuple[str, int, str], dict[int, _Arrival]]:
    found: dict[tuple[str, int, str], dict[int, _Arrival]] = defaultdict(dict)
    for rank, rows in arrivals.items():
        for row in rows if isinstance(rows, (list, tuple)) else ():
            if _is_arrival(row):
                group, number, operation, time, file, line, device, before = (*row, 0, [])[:8]
                found[group, number, operation][rank] = _Arrival(time, file, line, device, dict(_places(before)))
    return found


def _places(before: Sequence[Any]) -> Iterator[tuple[Place, int]]:
    for row in before:
        if isinstance(row, (list, tuple)) and len(row) == len(_PLACE) and all(map(isinstance, row, _PLACE)):
            yield (row[0], row[1]), row[2]


def _is_arrival(row: object) -> bool:
    if not isinstance(row, (list, tuple)) or len(row) not in (len(_KINDS), len(_KINDS) + len(_MORE_KINDS)):
        return False
    return all(map(isinstance, row, (*_KINDS, *_MORE_KINDS)))


def _waits(ranks: Mapping[int, _Arrival]) -> dict[int, int] | None:
    """The nanoseconds that each rank waits in one call; None if they are not known."""
    durations = {rank: one.device for rank, one in ranks.items()}
    if any(duration < 0 for duration in durations.values()):
        return None
    if any(durations.values()):
        least = min(durations.values())
        return {rank: duration - least for rank, duration in durations.items()}
    last = max(one.time for one in ranks.values())
    return {rank: last - one.time for rank, one in ranks.items()}


class _Total:
    """All calls of one collective."""

    def __init__(self) -> None:
        self.calls, self.longest = 0, 0.0
        self.waited: dict[int, float] = defaultdict(float)
        self.behind: list[tuple[int, Mapping[Place, float], float]] = []
        """The last rank of each call, how much more often than the others it was in a line before, and their wait."""

    def add(self, waits: Mapping[int, int], ranks: Mapping[int, _Arrival]) -> None:
        """One call."""
        last = min(waits, key=lambda rank: waits[rank])
        seconds = {rank: wait / 1e9 for rank, wait in waits.items()}
        others = median(wait for rank, wait in seconds.items() if rank != last)
        self.calls += 1
        self.behind.append((last, _excess(last, ranks), others))
        self.longest = max(self.longest, *seconds.values())
        for rank, wait in seconds.items():
            self.waited[rank] += wait

    def row(self, operation: str, file: str, line: int) -> CollectiveWait:
        """Their sum."""
        # The first tenth is left out, since the longest waits of a job are those of its start.
        late, place, typical = _costliest(self.behind[self.calls // 10 :])
        times = sum(last == late for last, _, _ in self.behind)
        return CollectiveWait(
            operation=operation, file=file, line=line, calls=self.calls, seconds=sum(self.waited.values()),
            longest=self.longest, late=late, late_calls=times, ranks=tuple(sorted(self.waited)),
            waited=tuple(self.waited[rank] for rank in sorted(self.waited)), typical=typical,
            before_file=place[0], before_line=place[1],
        )  # fmt: skip


def _excess(last: int, ranks: Mapping[int, _Arrival]) -> dict[Place, float]:
    """How much more often the last rank was seen in a line than the others were: where all of them compute, none is late."""
    others = [one.before for rank, one in ranks.items() if rank != last]
    return {
        place: seen - sum(one.get(place, 0) for one in others) / len(others)
        for place, seen in ranks[last].before.items()
    }


def _costliest(calls: Sequence[tuple[int, Mapping[Place, float], float]]) -> tuple[int, Place, float]:
    """The rank and line that cost most, and the usual wait for that.

    By the usual wait times how much more often the rank was there than the others: a step may have several of these calls
    of which one is waited in.  Without looks, by the usual wait times the calls.
    """
    seen: dict[tuple[int, Place], float] = defaultdict(float)
    waits: dict[tuple[int, Place], list[float]] = defaultdict(list)
    for last, places, seconds in calls:
        for place, excess in places.items() or [(("", 0), 0.0)]:
            seen[last, place] += excess
            waits[last, place].append(seconds)
    late, place = max(
        waits, key=lambda key: (median(waits[key]) * max(0.0, seen[key]), median(waits[key]) * len(waits[key]))
    )
    return late, place, median(waits[late, place])
