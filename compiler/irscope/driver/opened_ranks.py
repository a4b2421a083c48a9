"""Opens the traces of all ranks of a job.  One rank of each group that compiled the same is opened; the others are read once,
as a stream, and belong to it: so a job of thousands of ranks takes the room of a few."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence

from irscope.driver.merging import RankDone, keep_alone, merge
from irscope.opening.rank_logs import RankLog, has_ranks, rank_logs
from irscope.opening.trace_run import TraceSpec, open_rank, open_trace
from irscope.opening.warnings import Warnings
from irscope.protocol import CaptureGap, Message
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.units import count, ranks_named
from irscope.vocabulary.visible import bounded

MOST_OPENED = 8
"""Ranks that are opened as runs; each takes about a second, and its place in the store."""


@dataclass(frozen=True)
class Chosen:
    """A rank that is opened, and the others that it stands for."""

    log: RankLog
    alike: tuple[int, ...]


def open_traces(spec: TraceSpec, store: Store, on_message: Callable[[Message], None] = lambda message: None) -> str:
    """Opens what is at a path: one log, or those of all ranks, which are merged and compared; returns the run's id.

    If there are several ranks, it is the run of the first.  With ``spec.log`` or ``spec.compile`` one log is opened.

    Raises:
        TraceError: It is not a trace, or something is wrong and ``spec.strict``.  Nothing is left in the store.
        OSError: It cannot be read.
    """
    if spec.log or spec.compile or not has_ranks(spec.path):
        return _alone(spec, store, on_message)
    warnings = Warnings(spec.strict)
    logs = rank_logs(spec.path, warnings)
    if len(logs) < 2:
        return _alone(spec, store, on_message)
    world = logs[-1].rank + 1
    chosen, left = chosen_of(logs)
    done: list[RankDone] = []
    try:
        for one in chosen:
            own = dataclasses.replace(spec, log=one.log.name, world=world, rank=one.log.rank)
            run = open_trace(own, store, on_message)
            done.append(RankDone(one.log.rank, run, store.report(run, sizes=False).outcome))
        merge(store, world, done, {one.log.rank: one.alike for one in chosen})
        for gap in [*warnings.gaps(), *_gaps(spec, logs, chosen, left)]:
            store.put_gap(done[0].run, CaptureGap(bounded(gap.what), bounded(gap.why)))
    except BaseException:
        for each in done:
            store.delete(each.run)
        raise
    return done[0].run


def _alone(spec: TraceSpec, store: Store, on_message: Callable[[Message], None]) -> str:
    """Opens one log; of a job's rank also what it communicates is kept."""
    run, rank = open_rank(spec, store, on_message)
    if rank is not None:
        keep_alone(store, run, rank)
    return run


def chosen_of(logs: Sequence[RankLog]) -> tuple[list[Chosen], list[RankLog]]:
    """The ranks to open, the first rank first, and one of each group that is left out.

    One stands for all that compiled the same.  One rank stands for all that differ from the first rank only in numbers
    of their graphs.  Any other group has one, too, with all that differ from it in numbers.
    """
    groups: dict[bytes, list[RankLog]] = defaultdict(list)
    for log in logs:
        own = log.exact if log.shape == logs[0].shape and log.exact == logs[0].exact else b""
        groups[log.shape + own].append(log)
    mine, *others = groups.values()
    made = [Chosen(each[0], tuple(log.rank for log in each[1:])) for each in (mine, *others)]
    return made[:MOST_OPENED], [one.log for one in made[MOST_OPENED:]]


def _gaps(
    spec: TraceSpec, logs: Sequence[RankLog], chosen: Sequence[Chosen], left: Sequence[RankLog]
) -> list[CaptureGap]:
    found = []
    ranks = {log.rank for log in logs}
    if missing := sorted(set(range(min(logs[-1].rank + 1, 1 << 20))) - ranks):
        why = f"No log was found for {ranks_named(missing)}."
        found.append(CaptureGap(f"the trace of {count(len(missing), 'rank')}", why))
    if left:
        name = listed([log.name for log in left])
        why = f"At most {MOST_OPENED} are opened. One of each other group: --log NAME ({name})."
        found.append(CaptureGap(f"{count(len(left), 'more group')} of ranks that compiled something else", why))
    others = len(logs) - len(chosen)
    if others:
        why = "They compiled the same as one that is, by their graphs, breaks and cache hits. --log NAME opens one."
        found.append(CaptureGap(f"the stages of {count(others, 'rank')}, which are not opened", why))
    return found
