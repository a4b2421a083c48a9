"""What the processes of a job compiled, merged: the ranks of a job, or a script and the processes that it starts."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irscope.comparing.ranks.buckets import buckets_of
from irscope.comparing.ranks.differences import RankRun, differences
from irscope.comparing.ranks.overlaps import overlaps_of
from irscope.comparing.ranks.runtime import runtime_of
from irscope.comparing.ranks.traffic import collectives_of, peak_of, unseen_collectives
from irscope.comparing.ranks.waiting import unknown_waits, waits_of
from irscope.driver.rank_places import at_user_lines
from irscope.findings.kinds import rank_divergence
from irscope.protocol import Finding, Outcome, OutcomeKind, RankReport, Report
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class RankDone:
    """A process of a job that has ended: a rank, or the n-th process of a script.

    Args:
        process: Which process it is, in words; empty for a rank.
    """

    rank: int
    run: str
    outcome: Outcome
    process: str = ""


def merge_processes(store: Store, done: Sequence[RankDone]) -> list[Finding]:
    """Keeps with the run of a script, the first, what the processes compiled that it started; returns their findings.

    A finding that several have is there once, with the numbers of these processes.
    """
    runs = [_rank_run(store, one) for one in done]
    findings, first = merged_findings(runs), done[0].run
    for finding in findings:
        store.put_finding(first, finding)
    reports = [_rank_report(store, run, 0, (), {}, one.process) for run, one in zip(runs, done, strict=True)]
    for one in reversed(done[1:]):
        store.make_newest(one.run)
    store.put_ranks(first, 0, reports)
    return [finding for finding in findings if finding.ranks != (0,)]


def merge(
    store: Store, world: int, done: Sequence[RankDone], alike: Mapping[int, Sequence[int]] | None = None
) -> Report:
    """What the ranks compiled as one report, which is kept with the run of the first rank.

    Findings that several ranks have are there once, with their ranks; where ranks differ is another finding.

    Args:
        alike: By rank other ranks that compiled the same, and have no run of their own.
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
        _rank_report(store, run, world, tuple(alike.get(run.rank, ())), _groups(store, run.report.run)) for run in runs
    )
    arrivals = {run.rank: _arrivals(store, run.report) for run in runs}
    waits = waits_of(arrivals)
    first = runs[0].report.run
    not_known = [next(filter(None, map(unseen_collectives, runs)), None), unknown_waits(arrivals)]
    gaps = runs[0].report.capture_gaps
    with contextlib.suppress(LookupError):  # a run that never began is not kept
        for gap in filter(None, not_known):
            gaps = (*gaps, gap)
            store.put_gap(first, gap)
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
    found = _rank_report(store, _rank_run(store, RankDone(rank, run, report.outcome)), 0, (), {})
    if found.collectives or found.buckets:
        store.put_ranks(run, 0, (found,))


def _arrivals(store: Store, report: Report) -> list[Any]:
    """When a rank arrived at its collectives; none under the fake group."""
    return at_user_lines(store, report, _fact(store, report.run, "arrivals"))


def _fact(store: Store, run: str, name: str) -> list[Any]:
    """A fact that the run of a rank kept as a list; empty if it did not."""
    with contextlib.suppress(LookupError):
        found = store.how_run(run)[0].get(name)
        return found if isinstance(found, list) else []
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


def _rank_report(
    store: Store, run: RankRun, world: int, alike: tuple[int, ...], groups: Mapping[str, int], process: str = ""
) -> RankReport:
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
        runtime_of(_fact(store, report.run, "runtime_collectives")),
        process,
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
