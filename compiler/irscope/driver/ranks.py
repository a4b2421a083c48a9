"""Runs some ranks of a job, each in its own process, and merges what they compiled.

With the fake group the job does not exist: each rank has PyTorch's fake process group, which answers as if the others
were there.  So two ranks of 1,024 need two processes.  Without it all ranks of the job run on this machine, and
communicate as the script says.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from irscope.comparing.ranks.buckets import buckets_of
from irscope.comparing.ranks.differences import RankRun, differences
from irscope.comparing.ranks.overlaps import overlaps_of
from irscope.comparing.ranks.traffic import collectives_of, peak_of, unseen_collectives
from irscope.comparing.ranks.waiting import waits_of
from irscope.driver.driver import RunSpec, execute
from irscope.driver.rank_places import at_user_lines
from irscope.findings.kinds import rank_divergence
from irscope.internals.flight_recorder import ENTRIES, VARIABLE
from irscope.protocol import Finding, Outcome, OutcomeKind, RankReport, Report
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.worker.client import Worker

RANKS_PER_MACHINE = 8
MOST_RANKS = 256
"""That are run; each takes a process, and seconds."""
_PORT = "29500"
"""A port on which nobody listens."""
_GRACE_SECONDS = 10.0
"""For the other ranks to notice that one has failed, and to say so themselves."""


@dataclass(frozen=True)
class RankDone:
    """A rank whose process has ended."""

    rank: int
    run: str
    outcome: Outcome


def ranks_of(given: str, world: int) -> tuple[int, ...]:
    """The ranks of ``0,37`` or ``0-3,37``; of an empty text the first and the last.

    Raises LookupError with a message for the user.
    """
    if not given.strip():
        return tuple(dict.fromkeys((0, world - 1)))
    found: dict[int, None] = {}
    for part in given.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or int(high or low) < int(low):
            raise LookupError(f"--ranks {given}: {part.strip()!r} is not a rank. Write ranks with commas, as in 0,37.")
        if int(high or low) >= world:
            raise LookupError(f"--ranks {given}: the ranks of --world {world} are 0 to {world - 1}.")
        if int(high or low) - int(low) >= MOST_RANKS or len(found) > MOST_RANKS:
            raise LookupError(f"--ranks {given}: at most {MOST_RANKS} ranks can be run. Choose some that differ.")
        found.update(dict.fromkeys(range(int(low), int(high or low) + 1)))
    return tuple(found)


def ranks_on_this_machine(number: int) -> int:
    """The same number.  Raises LookupError with a message for the user if it is too large for one machine."""
    if number > MOST_RANKS:
        raise LookupError(f"--nproc-per-node {number}: at most {MOST_RANKS} ranks can be run on one machine.")
    return number


def rank_spec(spec: RunSpec, world: int, rank: int, per_machine: int = 0) -> RunSpec:
    """The run of one rank under the fake group, with the variables that torchrun would set.

    Parameters
    ----------
    per_machine
        How many ranks each machine has; 0: eight, as most have GPUs.
    """
    return _rank_spec(spec, world, rank, min(world, per_machine or RANKS_PER_MACHINE), _PORT, fake=True)


def real_specs(spec: RunSpec, world: int) -> list[RunSpec]:
    """The runs of all ranks of a job on this machine."""
    with socket.socket() as free:  # torchrun takes a free port in the same way
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    return [_rank_spec(spec, world, rank, world, port, fake=False) for rank in range(world)]


def _rank_spec(spec: RunSpec, world: int, rank: int, local_world: int, port: str, fake: bool) -> RunSpec:
    variables = {
        "RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank % local_world, "LOCAL_WORLD_SIZE": local_world,
        "GROUP_RANK": rank // local_world, "GROUP_WORLD_SIZE": -(-world // local_world),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
    }  # fmt: skip
    recorder = {} if fake else {VARIABLE: str(ENTRIES)}
    env = {**recorder, **(spec.env or {}), **{name: str(value) for name, value in variables.items()}}
    return dataclasses.replace(
        spec, env=env, world=world, rank=rank, local_rank=rank % local_world, local_world=local_world, fake_group=fake
    )


def run_ranks(
    specs: Sequence[RunSpec],
    store: str,
    *,
    on_bytes: Callable[[int, str, bytes], None] = lambda rank, stream, data: None,
    on_end: Callable[[int, Outcome], None] = lambda rank, outcome: None,
    cancel: threading.Event | None = None,
    worker: Worker | None = None,
) -> list[RankDone]:
    """Runs ranks; in their order when all have ended.

    Under the fake group as many at a time as there are processors.  Ranks that communicate run all at a time, and if
    one of them fails, the others are stopped, since they may wait for it.

    Parameters
    ----------
    specs
        One for each rank, from `rank_spec`.
    store
        Path of the run store.
    on_bytes, on_end
        Called by several threads: with what a rank has printed, and when it has ended.
    cancel
        Set by another thread to stop all of them.
    """
    stop = cancel or threading.Event()

    def one(spec: RunSpec) -> RankDone:
        with Store(store) as own:
            run, outcome = execute(
                spec, own, on_bytes=lambda stream, data: on_bytes(spec.rank, stream, data), cancel=stop, worker=worker
            )
        on_end(spec.rank, outcome)
        if not spec.fake_group and outcome.kind is not OutcomeKind.COMPLETED:
            timer = threading.Timer(_GRACE_SECONDS, stop.set)
            timer.daemon = True
            timer.start()
        return RankDone(spec.rank, run, outcome)

    at_a_time = min(len(specs), os.cpu_count() or 1) if specs[0].fake_group else len(specs)
    with ThreadPoolExecutor(at_a_time, "irscope-rank") as pool:
        try:
            return [future.result() for future in [pool.submit(one, spec) for spec in specs]]
        except BaseException:  # Ctrl-C as well: the processes must not outlive this one
            stop.set()
            raise


def merge(
    store: Store, world: int, done: Sequence[RankDone], alike: Mapping[int, Sequence[int]] | None = None
) -> Report:
    """What the ranks compiled as one report, which is kept with the run of the first rank.

    Findings that several ranks have are there once, with their ranks; where ranks differ is another finding.

    Parameters
    ----------
    alike
        By rank other ranks that compiled the same, and have no run of their own.
    """
    alike = alike or {}
    runs = [_rank_run(store, one) for one in done]
    findings = [dataclasses.replace(one, ranks=_with_alike(one.ranks, alike)) for one in merged_findings(runs)]
    added: dict[tuple[object, ...], Finding] = {}
    for run in runs[1:]:
        for difference in differences(runs[0], run):
            found = rank_divergence.finding_of(difference, _has_one_rank(store, runs[0].report.run))
            ranks = (runs[0].rank, *_with_alike((run.rank,), alike))
            before = added.get(found.cause)
            if before is not None:
                found = dataclasses.replace(before, count=before.count + 1)
                ranks = (*before.ranks, *ranks)
            added[found.cause] = dataclasses.replace(found, ranks=tuple(sorted(set(ranks))))
    reports = tuple(
        _rank_report(run, world, tuple(alike.get(run.rank, ())), _groups(store, run.report.run)) for run in runs
    )
    waits = waits_of({run.rank: _arrivals(store, run.report) for run in runs})
    first = runs[0].report.run
    unseen = next(filter(None, map(unseen_collectives, runs)), None)
    gaps = runs[0].report.capture_gaps
    with contextlib.suppress(LookupError):  # a run that never began is not kept
        if unseen is not None:
            gaps = (*gaps, unseen)
            store.put_gap(first, unseen)
        for finding in (*findings, *added.values()):
            store.put_finding(first, finding)
        store.put_ranks(first, world, reports, waits)
    return dataclasses.replace(
        runs[0].report,
        findings=(*findings, *added.values()),
        world=world,
        ranks=reports,
        waits=waits,
        capture_gaps=gaps,
        outcome=_outcome(done),
    )


def keep_alone(store: Store, run: str, rank: int) -> None:
    """Keeps what one rank communicates, if it does; nothing else is known about its job."""
    report = store.report(run, sizes=False)
    found = _rank_report(_rank_run(store, RankDone(rank, run, report.outcome)), 0, (), {})
    if found.collectives or found.buckets:
        store.put_ranks(run, 0, (found,))


def _arrivals(store: Store, report: Report) -> list[Any]:
    """When a rank arrived at its collectives; none under the fake group."""
    with contextlib.suppress(LookupError):
        found = store.how_run(report.run)[0].get("arrivals")
        return at_user_lines(store, report, found) if isinstance(found, list) else []
    return []


def _rank_run(store: Store, one: RankDone) -> RankRun:
    report = dataclasses.replace(store.report(one.run, sizes=False), outcome=one.outcome)
    return RankRun(
        one.rank,
        report,
        lambda stage: store.stage_text(one.run, stage),
        lambda stage: store.stage_data(one.run, stage),
    )


def merged_findings(runs: Iterable[RankRun]) -> list[Finding]:
    """Each finding once, with the ranks that have it."""
    found: dict[tuple[object, ...], Finding] = {}
    for run in runs:
        for finding in run.report.findings:
            before = found.get(finding.cause)
            ranks = (run.rank,) if before is None else tuple(sorted({*before.ranks, run.rank}))
            found[finding.cause] = dataclasses.replace(before or finding, ranks=ranks)
    return list(found.values())


def _with_alike(ranks: Iterable[int], alike: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    return tuple(sorted({each for rank in ranks for each in (rank, *alike.get(rank, ()))}))


def _rank_report(run: RankRun, world: int, alike: tuple[int, ...], groups: Mapping[str, int]) -> RankReport:
    report = run.report
    return RankReport(
        run.rank,
        report.run,
        report.outcome,
        len(report.compiles),
        sum(kernel.is_generated for kernel in report.kernels),
        tuple(collectives_of(run)),
        peak_of(run),
        alike,
        tuple(overlaps_of(run, world, groups)),
        tuple(buckets_of(run)),
    )


def _groups(store: Store, run: str) -> dict[str, int]:
    """How many ranks each process group has, as the run of a rank kept it; of an opened trace nothing is known."""
    with contextlib.suppress(LookupError):
        found = store.how_run(run)[0].get("groups")
        if isinstance(found, dict):
            return {name: size for name, size in found.items() if isinstance(size, int)}
    return {}


def _has_one_rank(store: Store, run: str) -> bool:
    return store.how_run(run)[0].get("compile_on_one_rank") is False


def _outcome(done: Sequence[RankDone]) -> Outcome:
    """The outcome of the first rank that did not come to its end, with its number; else that of the first."""
    failed = next((one for one in done if one.outcome.kind is not OutcomeKind.COMPLETED), None)
    if failed is None:
        return done[0].outcome
    return dataclasses.replace(failed.outcome, message=f"Rank {failed.rank}: {failed.outcome.message}")
