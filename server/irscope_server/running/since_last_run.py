"""What a run changed since the run before it, in one line for the status item: ``1 new break · 2 recompiles fixed``.

What is new comes first, and is never left out.

It is what the panel *Changes* shows in full (`panels/changes.py`), without findings that the user does not want to see.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence

from irscope.comparing.runs import RunDiff, diff_runs
from irscope.findings.registry import kind_of
from irscope.protocol import Finding, Kernel, Lane, Report, RunSummary
from irscope.store.store import StoreError
from irscope.vocabulary import units

from irscope_server.base.context import ReadContext
from irscope_server.base.results import Changed
from irscope_server.base.texts import split_lines
from irscope_server.running.results import Ended, Results

Hidden = Container[tuple[object, ...]]

log = logging.getLogger(__name__)

_MOST_PARTS = 4
_RUNS = 50
"""How many runs of a script are looked at for one to compare with: this is asked for at each save."""
_LEAST_SECONDS = 0.1
_LEAST_SHARE = 0.1
"""Less than a tenth of the compile time is what two runs of one script differ by anyway."""
_LEAST_SECONDS_ALONE = 1.0
_LEAST_SHARE_ALONE = 0.5
"""If nothing else has changed: more than other work on the machine takes away."""


def run_before(runs: Sequence[RunSummary], run: str, lane: Lane) -> RunSummary | None:
    """The run to compare with unless another one is named, from the runs of an entry, the newest first."""
    mine = next((one for one in runs if one.run == run), None)
    older = [
        one
        for one in runs
        if mine and one.lane is lane and one.pipeline == mine.pipeline
        if one.outcome is not None and one.started < mine.started
    ]
    compiled = [one for one in older if one.compiles]
    return next(filter(ran_whole, compiled), next(iter(compiled or older), None))


def ran_whole(run: RunSummary) -> bool:
    """Whether what a run did not find is not there."""
    return run.outcome is not None and run.outcome.is_whole


def in_short(diff: RunDiff, hidden_before: Hidden = (), hidden: Hidden = (), is_alike: bool = True) -> str:
    """The difference in a few words; empty if none is relevant.

    Args:
        hidden_before, hidden: Causes of findings that the user does not want to see, of the older run and of the newer
            one.
        is_alike: Whether both were profiled, or none: a profile compiles under other conditions, which change its time.
    """
    worse = _by_kind(diff.findings_new, hidden, "new ")
    parts = [f"{count} fixed" for count in _by_kind(diff.findings_gone, hidden_before)]
    new, gone = (_kernels(kernels) for kernels in (diff.kernels_new, diff.kernels_gone))
    changed = (new & gone).total()
    kernels = [(new.total() - changed, "gained"), (gone.total() - changed, "lost"), (changed, "changed")]
    parts += [f"{units.count(number, 'kernel')} {what}" for number, what in kernels if number]
    most = max(_MOST_PARTS - len(worse), 1)  # what is new is said in any case
    if len(parts) > most:
        parts = [*parts[: most - 1], units.count(len(parts) - most + 1, "other change" if most > 1 else "change")]
    parts = [*worse, *parts]
    before, after = diff.compile_seconds.before, diff.compile_seconds.after
    by = after - before
    least, share = (_LEAST_SECONDS, _LEAST_SHARE) if parts else (_LEAST_SECONDS_ALONE, _LEAST_SHARE_ALONE)
    if is_alike and before and after and abs(by) >= max(least, share * before):
        parts.append(f"{'−' if by < 0 else '+'}{units.duration(abs(by))}")
    return " · ".join(parts)


def _kernels(kernels: Sequence[Kernel]) -> Counter[tuple[str, str]]:
    return Counter((one.compile, one.name) for one in kernels if one.is_generated)


def _by_kind(findings: Sequence[Finding], hidden: Hidden, before: str = "") -> list[str]:
    """How many findings of each kind, as in ``2 breaks``; ``before`` goes between the number and the noun."""
    counts = Counter(finding.kind for finding in findings if finding.cause not in hidden)
    return [
        units.count(number, *(f"{before}{noun}" for noun in kind_of(kind).short)) for kind, number in counts.items()
    ]


HiddenIn = Callable[[Report, Lane, Mapping[str, list[str]]], Hidden]
"""Gives the causes of findings that the user does not want to see: of a report, its lane and the texts that ran."""


class SinceLastRun:
    """The newest comparison of each entry.  Belongs to the event loop."""

    def __init__(self, context: ReadContext, results: Results, hidden_in: HiddenIn) -> None:
        self._context, self._results, self._hidden_in = context, results, hidden_in
        self._known: dict[str, Changed] = {}

    def of(self, key: str) -> Changed | None:
        """What changed for an entry by its key; None if its last run was the first, failed, or changed nothing."""
        return self._known.get(key)

    async def look(self, key: str, raw: Ended) -> None:
        """Compares a run that has ended with the one before it."""
        try:
            changed = await self._compare(raw)
        except (StoreError, LookupError, ValueError, sqlite3.Error) as error:
            log.info("The run %s cannot be compared with the one before it: %s", raw.run, error)
            changed = None
        newest = self._results.newest(key)
        if newest is not None and newest.run != raw.run:
            return  # a newer one has ended meanwhile, and tells for itself
        if changed is None:
            self._known.pop(key, None)
        else:
            self._known[key] = changed

    async def _compare(self, ended: Ended) -> Changed | None:
        if not ended.run or not ended.report.outcome.is_whole:
            return None
        context = self._context
        runs = await context.archive.ask(lambda store: store.runs(_RUNS, ended.report.script))
        before = run_before(runs, ended.run, ended.lane)
        if before is None or not ran_whole(before):
            return None
        older = await context.archive.report(before.run)
        sources = await context.archive.ask(lambda store: store.sources(before.run))
        texts_before = {file: split_lines(text) for file, text in sources.items()}
        texts: dict[str, list[str]] = {file: list(lines) for file, lines in ended.texts.items()}
        hidden_before = self._hidden_in(older, ended.lane, texts_before)
        hidden = self._hidden_in(ended.report, ended.lane, texts)
        is_alike = bool(older.step_seconds) is bool(ended.report.step_seconds)
        text = await context.archive.ask_aside(
            lambda store: in_short(diff_runs(store, before.run, ended.run), hidden_before, hidden, is_alike)
        )
        return Changed(ended.run, before.run, text) if text else None
