"""Who waited for whom: when the ranks arrived at a collective, and which was the last.

A collective begins when its last rank arrives; the others wait until then.  Times of one machine are comparable; clocks of
several machines are not, so only ranks of one machine are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.protocol import CollectiveWait

_MOST_ROWS = 200


def waits_of(arrivals: Mapping[int, Sequence[Any]]) -> tuple[CollectiveWait, ...]:
    """The waits of all ranks, one row for each collective of the user's code, the longest first.

    Parameters
    ----------
    arrivals
        By rank what `irscope.internals.flight_recorder.arrivals` returned; rows of another form are passed over.
    """
    at: dict[tuple[str, int, str], dict[int, tuple[int, str, int]]] = defaultdict(dict)
    for rank, rows in arrivals.items():
        for row in rows if isinstance(rows, (list, tuple)) else ():
            if _is_arrival(row):
                group, number, operation, time, file, line = row
                at[group, number, operation][rank] = time, file, line
    totals: dict[tuple[str, str, int], _Total] = defaultdict(_Total)
    for (_, _, operation), ranks in at.items():
        if len(ranks) > 1:
            _, file, line = ranks[min(ranks)]
            totals[operation, file, line].add({rank: time for rank, (time, _, _) in ranks.items()})
    found = [total.row(*key) for key, total in totals.items()]
    return tuple(sorted(found, key=lambda one: -one.seconds)[:_MOST_ROWS])


def _is_arrival(row: object) -> bool:
    kinds = (str, int, str, int, str, int)
    return isinstance(row, (list, tuple)) and len(row) == len(kinds) and all(map(isinstance, row, kinds))


class _Total:
    """All calls of one collective."""

    def __init__(self) -> None:
        self.calls, self.longest = 0, 0.0
        self.late: Counter[int] = Counter()
        self.waited: dict[int, float] = defaultdict(float)

    def add(self, times: Mapping[int, int]) -> None:
        """One call, with the nanoseconds at which each rank arrived."""
        last = max(times, key=lambda rank: times[rank])
        self.calls += 1
        self.late[last] += 1
        for rank, time in times.items():
            seconds = (times[last] - time) / 1e9
            self.waited[rank] += seconds
            self.longest = max(self.longest, seconds)

    def row(self, operation: str, file: str, line: int) -> CollectiveWait:
        """Their sum."""
        (late, times), *_ = self.late.most_common(1)
        return CollectiveWait(
            operation=operation, file=file, line=line, calls=self.calls, seconds=sum(self.waited.values()),
            longest=self.longest, late=late, late_calls=times, ranks=tuple(sorted(self.waited)),
            waited=tuple(self.waited[rank] for rank in sorted(self.waited)),
        )  # fmt: skip
