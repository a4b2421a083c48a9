"""Tells the client what goes on: the state that its status item shows."""

from __future__ import annotations

import asyncio
from typing import cast

from irscope.protocol import OutcomeKind

from irscope_server.base.context import EditorContext
from irscope_server.base.results import WorkerPhase, WorkerState
from irscope_server.running.results import Ended
from irscope_server.running.runs import Run, Runs
from irscope_server.running.workers import Workers

_TROUBLE = {OutcomeKind.CRASHED: "crashed", OutcomeKind.ENVIRONMENT_ERROR: "refused"}
"""States that remain after a run has ended."""

_PAUSE = 0.5
"""Seconds between two notices about the phase of a run."""


class WorkerNotices:
    """Sends ``irscope/worker``: what goes on, else what the last run was troubled by, else the state of the worker."""

    def __init__(self, editor: EditorContext, runs: Runs, workers: Workers) -> None:
        self._editor, self._runs, self._workers = editor, runs, workers
        self._last: tuple[Run, Ended] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def ended(self, run: Run, ended: Ended) -> None:
        """The last run has ended; its outcome is shown until the next one begins."""
        self._last = (run, ended)
        self.tell()

    def forget_last(self) -> None:
        """The settings changed: an environment that was refused may be another one now."""
        self._last = None
        self.tell()

    def progressed(self, run: Run) -> None:
        """A run is in another phase."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._tell_phase, run)

    def _tell_phase(self, run: Run) -> None:
        self._timer = None
        if run in self._runs.all():
            self.tell(run)

    def tell(self, run: Run | None = None) -> None:
        """Sends the state; of several runs that go on it is about the one given, else the newest."""
        editor = self._editor
        running = self._runs.all()
        if running:
            run = run if run in running else running[-1]
            assert run is not None
            state, text = "running", f"Running {run.name} ({run.live.lane.value} lane)"
        elif not editor.trusted:
            state, text = "stopped", "The workspace is not trusted, so nothing is run."
        else:
            run = self._last[0] if self._last else run
            state, text = self._idle_state()
        python = run.spec.python if run else editor.settings.interpreter
        editor.tell(
            "irscope/worker",
            WorkerState(
                cast(WorkerPhase, state),
                text,
                python,
                run.uri if run else None,
                run.live.run or None if run else None,
                run.phase or None if run and running else None,
            ),
        )

    def _idle_state(self) -> tuple[str, str]:
        """The trouble of the last run, else the state of the worker."""
        if self._last is not None:
            run, ended = self._last
            outcome = ended.report.outcome
            if outcome.kind in _TROUBLE:
                return _TROUBLE[outcome.kind], f"{run.name}: {outcome.message}"
        worker = self._workers.state()
        return (worker.state.value, worker.text) if worker else ("ready", "Ready")
