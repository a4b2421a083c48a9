"""What repetitions say: their spread, and whether two sides differ by more than noise."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from irscope.vocabulary.units import duration

GROUPS = 6
"""Repetitions are compared by the medians of so many groups in their order: single calls that follow each other are alike."""
LEAST_CHANGE = 0.03
"""Two processes of one script differ by about so much, by where their memory happens to be; repetitions do not see that."""
SURE = 0.01


@dataclass(frozen=True)
class Spread:
    """Quartiles of single calls, in seconds, and how many calls there were."""

    low: float
    median: float
    high: float
    calls: int

    @property
    def words(self) -> str:
        """``38.4 µs (quartiles 37.9 µs to 41.0 µs)``."""
        return f"{duration(self.median)} (quartiles {duration(self.low)} to {duration(self.high)})"


def spread_of(samples: Sequence[float]) -> Spread | None:
    """The spread of seconds of single calls; None if there are fewer than four."""
    if len(samples) < 4:
        return None
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Spread(low, median, high, len(samples))


def is_clear(a: Sequence[float], b: Sequence[float]) -> bool | None:
    """Whether two sides of repetitions differ by more than noise; None if there are too few to say."""
    mine, other = groups(a), groups(b)
    if not mine or not other:
        return None
    before, after = statistics.median(a), statistics.median(b)
    return chance(mine, other) <= SURE and abs(after - before) >= LEAST_CHANGE * before


def groups(samples: Sequence[float]) -> list[float]:
    """Medians of groups of repetitions; empty if there are too few."""
    if len(samples) < GROUPS:
        return []
    return [
        statistics.median(samples[len(samples) * n // GROUPS : len(samples) * (n + 1) // GROUPS]) for n in range(GROUPS)
    ]


def chance(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided probability of ranks as far apart (Mann–Whitney, exact), over all ways to divide the values in two."""
    values = sorted([*a, *b])
    middle = len(a) * (len(values) + 1) / 2

    def rank(value: float) -> float:
        """Equal values share their ranks."""
        return values.index(value) + (values.count(value) + 1) / 2

    seen = abs(sum(map(rank, a)) - middle)
    ranks = [rank(value) for value in values]
    ways = [abs(sum(one) - middle) for one in itertools.combinations(ranks, len(a))]
    return sum(one >= seen - 1e-9 for one in ways) / len(ways)
