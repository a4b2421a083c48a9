"""Whether a newer run of the same script is kept: said in every view that shows one run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from irscope.protocol import Lane, RunSummary
from irscope.store.store import StoreError

from irscope_server.base.archive import Archive

_MOST_RUNS = 1000


@dataclass(frozen=True)
class RunAge:
    """What a view of a run says about its age; empty for the newest run of its script, and for one that is gone."""

    text: str = ""
    """``Older run: deep, 09:59. Newest: fast, 10:15.``"""
    newest: str = ""
    """The newest run of the script that has ended."""


async def age_of(archive: Archive, run: str) -> RunAge:
    """The age of a run; never raises for one that is gone, since its view says so itself."""
    try:
        script = (await archive.report(run)).script
        runs = await archive.runs(_MOST_RUNS, script)
    except (LookupError, StoreError):
        return RunAge()
    shown = next((one for one in runs if one.run == run), None)
    newest = next((one for one in runs if one.outcome is not None and _replaces(one, shown)), None)
    if shown is None or newest is None or runs.index(newest) >= runs.index(shown):
        return RunAge()
    old, new = (_named(shown, "%H:%M"), _named(newest, "%H:%M"))
    if old == new:
        old, new = (_named(shown, "%H:%M:%S"), _named(newest, "%H:%M:%S"))
    return RunAge(f"Older run: {old}. Newest: {new}.", newest.run)


def _replaces(newer: RunSummary, shown: RunSummary | None) -> bool:
    """Whether a run shows newly what another one shows: a run through one pipeline makes none of another old."""
    return shown is None or Lane.FAST in (newer.lane, shown.lane) or newer.pipeline == shown.pipeline


def _named(run: RunSummary, clock: str) -> str:
    when = time.localtime(run.started)
    is_today = when[:3] == time.localtime()[:3]
    return f"{run.lane.value}, {time.strftime(clock if is_today else f'%Y-%m-%d {clock}', when)}"
