"""What happens when documents open, change, are saved and close, and when runs tell something."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from irscope.protocol import Budget, CompileSeen, FindingSeen, Lane, OutcomeKind
from irscope.source import digest_of
from irscope.store import StoreError

from irscope_server import words
from irscope_server.functions import uses_compile, uses_torch
from irscope_server.output import OutputRelay
from irscope_server.progress import RunProgress
from irscope_server.results import Ended, Live
from irscope_server.runs import Run, with_texts
from irscope_server.settings import Settings
from irscope_server.texts import file_key
from irscope_server.wire import Output, RunsChanged, WorkerState

if TYPE_CHECKING:
    from irscope_server.server import IrscopeServer

log = logging.getLogger(__name__)

_TROUBLE = {OutcomeKind.CRASHED: "crashed", OutcomeKind.ENVIRONMENT_ERROR: "refused"}
"""States that a run's end leaves behind."""

_PAUSE = 0.5
"""Seconds between two notices that a run has more in the store."""


class Activity:
    """Starts runs and spreads what they tell: to diagnostics, lenses, progress, the worker's state and the log."""

    def __init__(self, server: IrscopeServer) -> None:
        self._server = server
        self._progress: dict[Run, RunProgress] = {}
        self._output: dict[Run, OutputRelay] = {}
        self._told: dict[Run, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._shown_messages: set[str] = set()
        self._last: tuple[Run, Ended] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    # --- documents ----------------------------------------------------------------------------------------------------

    def opened(self, uri: str, path: str) -> None:
        self._spawn(self._look_at(uri, path, saved=False))
        self.results_changed()

    def saved(self, uri: str, path: str) -> None:
        self._spawn(self._look_at(uri, path, saved=True))

    def changed(self) -> None:
        """A text changed: what was found moves with its lines.  A client that pulls asks by itself."""
        if not self._server.pulls:
            self._server.publisher.changed()

    def closed(self, path: str) -> None:
        """What its runs found goes with the document; it is in the store when the document opens again."""
        run = self._server.runs.current(path)
        if run is not None and run.automatic:
            run.cancel()
        self._server.results.forget(path)
        self.results_changed()

    def trust_changed(self) -> None:
        """The workspace has become trusted: what would have run on open runs now.  Or it is trusted no more."""
        if not self._server.trusted:
            for run in self._server.runs.all():
                run.cancel()
            self.stop_workers()
        self.tell_state()
        if self._server.trusted:
            for path, uri in self._server.open_files():
                self.opened(uri, path)

    async def _look_at(self, uri: str, path: str, saved: bool) -> None:
        """Shows what the store knows of the text as it is, and starts a run where that is wanted.

        An open does not run again what has been run with the very same text: it costs seconds, and what it found is
        shown at once.  Files that the script imports may have changed meanwhile; a save runs in any case, unless a
        run of this text is under way.
        """
        server = self._server
        text = "\n".join(server.texts.lines(path))
        if not uses_compile(text) and server.runs.current(path) is None:
            server.results.forget(path)
            self.results_changed()
        if not uses_torch(text):
            return
        settings = await server.settings_for(uri)
        if not server.is_open(path):
            return
        self._warm(settings)
        if not uses_compile(text):
            return
        source = digest_of(text)
        if not saved and await self._show_stored(path, source, settings.on_save):
            return
        if settings.on_save is None or not server.trusted:
            return
        running = server.runs.current(path)
        if running is not None and running.live.source == source and running.live.lane in (settings.on_save, Lane.DEEP):
            return
        self._start(uri, path, settings.on_save, settings, automatic=True)

    async def _show_stored(self, path: str, source: str, lane: Lane | None) -> bool:
        """Shows the store's newest run of this very text, and says whether that spares a run of a lane."""
        server = self._server
        try:
            newest = await server.archive.newest(path, source=source)
            deep = newest and await server.archive.newest(path, Lane.DEEP, source)
        except StoreError as error:
            self._show_once(str(error))
            return True
        if server.results.newest(path) is not None or server.runs.current(path) is not None:
            return False  # a run of this session is newer
        for stored in (deep, newest):
            if stored:
                live = Live(path, stored.lane, source, {file_key(path): server.texts.lines(path)}, stored.report.run)
                server.results.end(None, await asyncio.to_thread(with_texts, live, stored.report))
        if newest:
            self.results_changed()
        return deep is not None or (newest is not None and lane is not Lane.DEEP)

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def start(self, uri: str, path: str, lane: Lane) -> Run:
        """Runs a script with the texts as they are in the editor."""
        return self._start(uri, path, lane, await self._server.settings_for(uri))

    def _start(self, uri: str, path: str, lane: Lane, settings: Settings, *, automatic: bool = False) -> Run:
        from irscope.driver import RunSpec

        server = self._server
        spec = RunSpec(
            script=path,
            args=settings.args,
            lane=lane,
            python=settings.interpreter,
            cwd=os.path.expanduser(settings.cwd) if settings.cwd else os.path.dirname(path),
            env=settings.env or None,
            budget=Budget(seconds=settings.budget(lane)),
            overlays=server.overlays(),
        )
        text = "\n".join(server.texts.lines(path))
        return server.runs.start(
            uri, spec, text, server.archive.path, automatic=automatic, in_worker=settings.worker_enabled
        )

    def run_began(self, run: Run) -> None:
        server = self._server
        name = os.path.basename(run.script)
        log.info("Running %s, %s lane, with %s", run.script, run.live.lane.value, run.spec.python)
        if server.shows_progress:
            self._progress[run] = RunProgress(server, f"irscope: {name} ({run.live.lane.value})")
        self._output[run] = OutputRelay(lambda stream, text: self._print(run, stream, text))
        server.results.begin(run.live)
        self.results_changed()
        self.tell_state(run)

    def run_named(self, run: Run) -> None:
        self._tell_runs_changed(run, running=True)
        self.tell_state(run)

    def run_found(self, run: Run, seen: FindingSeen) -> None:
        self._server.results.add_finding(run.live, seen.finding)
        self._server.publisher.changed()

    def run_compiled(self, run: Run, seen: CompileSeen) -> None:
        self._tell_runs_changed(run, running=True)

    def run_progressed(self, run: Run, text: str) -> None:
        if progress := self._progress.get(run):
            progress.report(text)

    def run_printed(self, run: Run, stream: str, text: str) -> None:
        if relay := self._output.get(run):
            relay.add(stream, text)

    def run_ended(self, run: Run, ended: Ended) -> None:
        server = self._server
        outcome = ended.report.outcome
        if relay := self._output.pop(run, None):
            relay.flush()
        log.info("%s: %s. %s", run.script, outcome.kind.value, outcome.message)
        if progress := self._progress.pop(run, None):
            progress.end(f"{outcome.kind.value}: {words.count(len(ended.report.findings), 'finding')}")
        self._told.pop(run, None)
        server.results.end(run.live, ended)
        if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR:
            self._show_once(outcome.message)
        elif outcome.kind is OutcomeKind.COMPLETED:
            self._shown_messages.clear()
        self.results_changed()
        if ended.run:
            server.tell("irscope/runsChanged", RunsChanged(ended.run, run.uri, running=False))
        if server.runs.current(run.script) is None:
            self._last = (run, ended)
            self.tell_state()

    # --- workers ------------------------------------------------------------------------------------------------------

    def _warm(self, settings: Settings) -> None:
        """Starts the worker in which the next run will be, if it may be and is not there."""
        server = self._server
        self._loop = asyncio.get_running_loop()
        server.workers.idle_seconds = 60 * server.settings.worker_idle_minutes
        if server.has_workers and server.trusted and settings.worker_enabled:
            server.workers.warm(settings.interpreter, settings.env)

    def worker_changed(self) -> None:
        """Called in any thread when a worker is in another state."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._worker_changed)

    def _worker_changed(self) -> None:
        self.tell_state()
        if self._sweeper is None:
            self._sweep()

    def _sweep(self) -> None:
        """Stops workers that have been idle for long, and comes back when the next one may be."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        again = self._server.workers.sweep()
        self._sweeper = None if again is None else asyncio.get_running_loop().call_later(again, self._sweep)

    def stop_workers(self) -> None:
        self._server.workers.stop()

    async def settings_changed(self) -> None:
        """Lets go of workers that no open file needs now, and starts those that are needed."""
        server = self._server
        settings = [
            await server.settings_for(uri)
            for path, uri in server.open_files()
            if uses_torch("\n".join(server.texts.lines(path)))
        ]
        server.results.control_again()
        self.results_changed()
        server.workers.keep_only((one.interpreter, one.env) for one in settings if one.worker_enabled)
        for one in settings:
            self._warm(one)
        server.workers.idle_seconds = 60 * server.settings.worker_idle_minutes
        self._sweep()
        self._last = None  # an environment that was refused may be another one now
        self.tell_state()

    # --- telling the client -------------------------------------------------------------------------------------------

    def results_changed(self) -> None:
        """Diagnostics and lenses may be others now."""
        self._server.publisher.changed()
        self._server.refresh("workspace/codeLens/refresh")

    def tell_state(self, run: Run | None = None) -> None:
        """Sends ``irscope/worker``: what goes on, else how the worker is and how the last run ended."""
        server = self._server
        running = server.runs.all()
        worker = server.workers.state()
        last, ended = self._last or (None, None)
        if running:
            run = run if run in running else running[-1]
            assert run is not None
            state, text = "running", f"Running {os.path.basename(run.script)} ({run.live.lane.value} lane)"
        elif not server.trusted:
            state, text = "stopped", "The workspace is not trusted, so nothing is run."
        else:
            state, text = (worker.state.value, worker.text) if worker else ("ready", "Ready")
            if ended is not None and last is not None:
                run, outcome = last, ended.report.outcome
                said = f"{os.path.basename(ended.script)}: {outcome.message}"
                if outcome.kind in _TROUBLE:
                    state, text = _TROUBLE[outcome.kind], said
                else:
                    text = f"{text}. {said}"
        python = run.spec.python if run else server.settings.interpreter
        server.tell(
            "irscope/worker",
            WorkerState(state, text, python, run.uri if run else None, run.live.run or None if run else None),
        )

    def _tell_runs_changed(self, run: Run, running: bool) -> None:
        now = asyncio.get_running_loop().time()
        if run.live.run and now - self._told.get(run, -_PAUSE) >= _PAUSE:
            self._told[run] = now
            self._server.tell("irscope/runsChanged", RunsChanged(run.live.run, run.uri, running))

    def _print(self, run: Run, stream: str, text: str) -> None:
        self._server.tell("irscope/output", Output(run.live.run, stream, text))

    def _show_once(self, message: str) -> None:
        """A message box, once per cause; the log has it each time."""
        log.warning("%s", message)
        if message not in self._shown_messages:
            self._shown_messages.add(message)
            self._server.show_message(message)

    def cancel_by_token(self, token: str | int) -> None:
        """The user pressed *cancel* on a progress."""
        for run, progress in self._progress.items():
            if progress.token == token:
                run.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("A document could not be looked at", exc_info=error)
