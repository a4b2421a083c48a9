"""A deep run that nobody asked for, when the user has paused: the setting ``run.deepWhenIdle``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from irscope.protocol import Lane, OutcomeKind

from irscope_server.results import Ended
from irscope_server.runs import Run

if TYPE_CHECKING:
    from irscope_server.server import IrscopeServer

_TOLD = (OutcomeKind.COMPLETED, OutcomeKind.BUDGET)
"""Outcomes of a fast run after which a deep one is worth its time."""


class DeepWhenIdle:
    """Waits after each fast run that nothing is typed for a while, and then runs the whole pipeline.

    A save meanwhile starts a fast run, which takes the place of the deep one that is going on.
    """

    def __init__(self, server: IrscopeServer) -> None:
        self._server = server
        self._waiting: dict[str, tuple[Run, asyncio.TimerHandle]] = {}

    def ended(self, run: Run, ended: Ended) -> None:
        """A run ended that no other took the place of."""
        self._stop(run.key)
        seconds = run.plan.settings.deep_when_idle
        if seconds and run.live.lane is Lane.FAST and ended.report.outcome.kind in _TOLD and ended.report.compiles:
            self._wait(run, seconds)

    def typed(self) -> None:
        """A text changed: the user is not idle."""
        for run, _ in list(self._waiting.values()):
            self._stop(run.key)
            self._wait(run, run.plan.settings.deep_when_idle)

    def close(self) -> None:
        for key in list(self._waiting):
            self._stop(key)

    def _wait(self, run: Run, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._idle, run)
        self._waiting[run.key] = (run, timer)

    def _stop(self, key: str) -> None:
        if known := self._waiting.pop(key, None):
            known[1].cancel()

    def _idle(self, run: Run) -> None:
        """Nothing was typed for long.  An edit that was not saved is not run: its save will be."""
        self._stop(run.key)
        server = self._server
        newest = server.results.newest(run.key)
        wanted = run.key in {server.key_of(path) for path, _ in server.open_files()}
        if not wanted or not server.trusted or server.runs.current(run.key) is not None or newest is None:
            return
        deep = server.results.deep(run.key)
        if server.views.is_stale(newest.texts) or (deep is not None and deep.source == newest.source):
            return
        server.activity.start_deep(run)
