"""What happens when documents open, change, are saved and close, and when runs tell something."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from irscope.protocol import CompileSeen, FindingSeen, Lane, OutcomeKind
from irscope.source import digest_of
from irscope.store import StoreError

from irscope_server import words
from irscope_server.functions import uses_compile
from irscope_server.output import OutputRelay
from irscope_server.progress import RunProgress
from irscope_server.results import Ended, Live
from irscope_server.runs import Run, with_texts
from irscope_server.texts import file_key
from irscope_server.wire import Output, RunsChanged, WorkerState

if TYPE_CHECKING:
    from irscope_server.server import IrscopeServer

log = logging.getLogger(__name__)

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

    def trusted(self) -> None:
        """The workspace has become trusted: what would have run on open runs now."""
        self.tell_state()
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
        if not uses_compile(text):
            if server.runs.current(path) is None:
                server.results.forget(path)
                self.results_changed()
            return
        settings = await server.settings_for(uri)
        if not server.is_open(path):
            return
        source = digest_of(text)
        if not saved and await self._show_stored(path, source, settings.on_save):
            return
        if settings.on_save is None or not server.trusted:
            return
        running = server.runs.current(path)
        if running is not None and running.live.source == source and running.live.lane in (settings.on_save, Lane.DEEP):
            return
        await self.start(uri, path, settings.on_save, automatic=True)

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

    async def start(self, uri: str, path: str, lane: Lane, *, automatic: bool = False) -> Run:
        """Runs a script with the texts as they are in the editor."""
        from irscope.driver import RunSpec

        server = self._server
        settings = await server.settings_for(uri)
        spec = RunSpec(
            script=path,
            args=settings.args,
            lane=lane,
            python=settings.interpreter,
            cwd=os.path.expanduser(settings.cwd) if settings.cwd else os.path.dirname(path),
            env=settings.env or None,
            budget_seconds=settings.budget_seconds or None,
            overlays=server.overlays(),
        )
        return server.runs.start(
            uri, spec, "\n".join(server.texts.lines(path)), server.archive.path, automatic=automatic
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
            self.tell_state(run, ended)

    # --- telling the client -------------------------------------------------------------------------------------------

    def results_changed(self) -> None:
        """Diagnostics and lenses may be others now."""
        self._server.publisher.changed()
        self._server.refresh("workspace/codeLens/refresh")

    def tell_state(self, run: Run | None = None, ended: Ended | None = None) -> None:
        """Sends ``irscope/worker``: what goes on, else how the last run ended."""
        server = self._server
        running = server.runs.all()
        if running:
            run = run if run in running else running[-1]
            assert run is not None
            state, text = "running", f"Running {os.path.basename(run.script)} ({run.live.lane.value} lane)"
        elif not server.trusted:
            state, text = "stopped", "The workspace is not trusted, so nothing is run."
        elif ended is None:
            state, text = "ready", "Ready"
        else:
            outcome = ended.report.outcome
            state = {OutcomeKind.CRASHED: "crashed", OutcomeKind.ENVIRONMENT_ERROR: "refused"}.get(
                outcome.kind, "ready"
            )
            text = f"{os.path.basename(ended.script)}: {outcome.message}"
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
