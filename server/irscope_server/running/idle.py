"""An automatic deep run when the user has paused: the setting ``run.deepWhenIdle``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from irscope.protocol import Lane, OutcomeKind

from irscope_server.base.context import EditorContext
from irscope_server.running.results import Ended, Results
from irscope_server.running.runs import Run, Runs

_TOLD = (OutcomeKind.COMPLETED, OutcomeKind.BUDGET)
"""Outcomes of a fast run after which a deep one is worth its time."""


class DeepWhenIdle:
    """Waits after each fast run that nothing is typed for a while, and then runs the whole pipeline.

    A save meanwhile starts a fast run, which takes the place of the deep one that is going on.

    Args:
        start_deep: Starts the deep run of what a fast run has run.
    """

    def __init__(
        self, editor: EditorContext, results: Results, runs: Runs, start_deep: Callable[[Run], object]
    ) -> None:
        self._editor, self._results, self._runs = editor, results, runs
        self._start_deep = start_deep
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
        """Give up all waiting."""
        for key in list(self._waiting):
            self._stop(key)

    def _wait(self, run: Run, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._idle, run)
        self._waiting[run.key] = (run, timer)

    def _stop(self, key: str) -> None:
        if waiting := self._waiting.pop(key, None):
            waiting[1].cancel()

    def _idle(self, run: Run) -> None:
        """The user has paused typing.  An edit that was not saved is not run: its save will be."""
        self._stop(run.key)
        editor = self._editor
        newest = self._results.newest(run.key)
        wanted = run.key in {editor.key_of(document.path) for document in editor.open_files()}
        if not wanted or not editor.trusted or self._runs.current(run.key) is not None or newest is None:
            return
        deep = self._results.deep(run.key)
        if editor.texts.are_edited(newest.texts) or (deep is not None and deep.source == newest.source):
            return
        self._start_deep(run)
