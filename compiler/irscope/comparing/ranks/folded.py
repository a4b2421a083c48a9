"""The ranks of a large job in few rows: those that compiled and communicate the same are one row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from irscope.protocol import Finding, RankReport

_MOST_UNFOLDED = 16


def _of_runtime(rank: RankReport) -> list[object]:
    """What it is, without how long it took; a peer of a pipeline is another for each rank."""
    return [(one.issuer, one.operation, one.module, one.bytes, one.calls) for one in rank.runtime]


def folded(ranks: Sequence[RankReport], findings: Sequence[Finding] = ()) -> list[RankReport]:
    """The first rank of each group that is equal in everything but its number and its run, with the others as *alike*.

    Ranks of a divergence are in groups of their own.  A few ranks are left as they are.
    """
    if len(ranks) <= _MOST_UNFOLDED:
        return list(ranks)
    diverging: dict[int, list[int]] = defaultdict(list)
    for number, finding in enumerate(findings):
        for rank in finding.ranks if len(finding.ranks) < len(ranks) else ():
            diverging[rank].append(number)
    groups: dict[tuple[object, ...], list[RankReport]] = defaultdict(list)
    for one in ranks:
        outcome = one.outcome.kind, one.outcome.exit_code
        what = (
            one.compiles,
            one.kernels,
            one.memory,
            one.collectives,
            one.overlaps,
            one.buckets,
            *_of_runtime(one),
            bool(one.process),
        )
        groups[outcome, what, tuple(diverging[one.rank])].append(one)
    return [
        replace(first, alike=tuple(sorted({*first.alike, *(rank for one in rest for rank in (one.rank, *one.alike))})))
        for first, *rest in groups.values()
    ]
