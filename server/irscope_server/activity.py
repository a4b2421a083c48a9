"""What happens when documents open, change, are saved and close, and when runs tell something."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from irscope.notebooks import notebook_of
from irscope.protocol import CompileSeen, FindingSeen, Lane, OutcomeKind, Progress
from irscope.source import digest_of
from irscope.store import StoreError

from irscope_server import words
from irscope_server.archive import StoredRun
from irscope_server.functions import uses_compile, uses_torch
from irscope_server.plans import Plan
from irscope_server.progress import RunProgress
from irscope_server.results import Ended, Live
from irscope_server.runs import Run, with_texts
from irscope_server.settings import Settings
from irscope_server.texts import file_key, split_lines
from irscope_server.warming import Warming
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
        self._told: dict[Run, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._shown_messages: set[str] = set()
        self._last: tuple[Run, Ended] | None = None
        self.warming = Warming(server, self.tell_state)
        self._state_timer: asyncio.TimerHandle | None = None

    # --- documents ----------------------------------------------------------------------------------------------------

    def opened(self, uri: str, path: str) -> None:
        self._spawn(self._look_at(uri, path, saved=False))
        self.results_changed()

    def saved(self, uri: str, path: str) -> None:
        self._spawn(self._look_at(uri, path, saved=True))

    def changed(self) -> None:
        """A text changed: what was found moves with its lines.  A client that pulls asks by itself."""
        self._server.idle.typed()
        if not self._server.pulls:
            self._server.publisher.changed()
        self._server.file_states.tell()

    def closed(self, path: str) -> None:
        """What its runs found goes with the last document that they were for; the store has it when one opens again."""
        server = self._server
        key = server.key_of(path)
        server.plans.pop(file_key(path), None)
        if key not in {server.key_of(other) for other, _ in server.open_files()}:
            run = server.runs.current(key)
            if run is not None and run.automatic:
                run.cancel()
            server.results.forget(key)
        self.results_changed()

    def trust_changed(self) -> None:
        """The workspace has become trusted: what would have run on open runs now.  Or it is trusted no more."""
        if not self._server.trusted:
            for run in self._server.runs.all():
                run.cancel()
            self._server.workers.stop()
        self.tell_state()
        if self._server.trusted:
            for path, uri in self._server.open_files():
                self.opened(uri, path)

    async def _look_at(self, uri: str, path: str, saved: bool) -> None:
        """Shows what the store knows of the text as it is, and starts a run where that is wanted.

        A library module is run by its entry.  An open does not run again what has been run with the very same text:
        it costs seconds, and what it found is shown at once.  Files that the script imports may have changed
        meanwhile; a save runs in any case, unless a run of these texts is under way.
        """
        server = self._server
        text = "\n".join(server.texts.lines(path))
        own = file_key(path)
        if not uses_torch(text) and server.key_of(path) == own and server.runs.current(own) is None:
            server.results.forget(own)
            self.results_changed()
        settings = await server.settings_for(uri)
        plan = await self._plan(path, text, settings)
        if not server.is_open(path):
            return
        server.file_states.tell()
        if not (uses_torch(text) or (plan is not None and not plan.own and plan.touched)):
            return
        self.warming.warm(settings, plan)
        if plan is None or (plan.own and not uses_compile(text) and not await self._compiles(path, plan)):
            return
        if not saved and await self._is_known(path, plan):
            return
        if settings.on_save is None or not server.trusted:
            return
        running = server.runs.current(plan.entry.key)
        if (
            running is not None
            and self._runs_these_texts(running)
            and running.live.lane in (settings.on_save, Lane.DEEP)
        ):
            return
        self._start(uri, plan, settings.on_save, automatic=True)

    async def _plan(self, path: str, text: str, settings: Settings) -> Plan | None:
        """How a document is run; remembered, so that its lenses and diagnostics know whose results they show."""
        server = self._server
        try:
            plan = await server.planner.plan(path, text, settings)
        except StoreError as error:
            self._show_once(str(error))
            plan = None
        if server.is_open(path):
            server.plans[file_key(path)] = plan
        return plan

    async def _compiles(self, path: str, plan: Plan) -> bool:
        """Whether a script that does not say so itself is known to compile something: in a module that it imports."""
        server, key = self._server, plan.entry.key
        if any(server.key_of(other) == key for other, _ in server.open_files() if file_key(other) != file_key(path)):
            return True
        newest = server.results.newest(key)
        if newest is not None:
            return bool(newest.report.compiles)
        return await server.archive.compiled(plan.entry.stored_script)

    def _runs_these_texts(self, run: Run) -> bool:
        """Whether a run goes on with the texts as they are now."""
        lines = self._server.texts.lines
        return all(list(lines(key)) == list(ran) for key, ran in run.live.texts.items())

    async def _is_known(self, path: str, plan: Plan) -> bool:
        """Whether what a run of these very texts found is shown already, or can be from the store."""
        server = self._server
        if not plan.own and (newest := server.results.newest(plan.entry.key)) is not None:
            lacks = plan.settings.on_save is Lane.DEEP and newest.lane is not Lane.DEEP
            return not lacks and not server.views.is_stale(newest.texts)
        return await self._show_stored(path, plan)

    async def _show_stored(self, path: str, plan: Plan) -> bool:
        """Shows the store's newest run of these very texts, and says whether that spares a run."""
        server, entry, lane = self._server, plan.entry, plan.settings.on_save
        try:
            source = digest_of("\n".join(server.texts.lines(entry.file))) if entry.kind.is_file else None
            newest = await server.archive.newest(entry.stored_script, source=source)
            deep = newest and await server.archive.newest(entry.stored_script, Lane.DEEP, source)
        except StoreError as error:
            self._show_once(str(error))
            return True
        if not plan.own:
            newest, deep = (one if one and self.has_text(one, path) else None for one in (newest, deep))
        if server.runs.current(entry.key) is not None:
            return False
        if (known := server.results.newest(entry.key)) is not None:  # a request has had it read, or a run ended
            return (lane is not Lane.DEEP or known.lane is Lane.DEEP) and not server.views.is_stale(known.texts)
        for stored in (deep, newest):
            if stored:
                server.results.end(None, await self.ended_of(stored, plan))
        if newest:
            self.results_changed()
        return deep is not None or (newest is not None and lane is not Lane.DEEP)

    def has_text(self, stored: StoredRun, path: str) -> bool:
        """Whether a stored run is known to have had a file as it is now."""
        ran = next((text for file, text in stored.sources.items() if file_key(file) == file_key(path)), None)
        return ran is not None and split_lines(ran) == list(self._server.texts.lines(path))

    async def ended_of(self, stored: StoredRun, plan: Plan) -> Ended:
        """A stored run of an entry with the texts that it had, as far as they are known."""
        entry = plan.entry
        texts: dict[str, Sequence[str]] = {file_key(file): split_lines(text) for file, text in stored.sources.items()}
        if entry.kind.is_file:  # its digest is that of the text as it is now
            texts[file_key(entry.file)] = self._server.texts.lines(entry.file)
        live = Live(entry.file, stored.lane, stored.source, texts, stored.report.run, entry=entry.key)
        return await asyncio.to_thread(with_texts, live, stored.report)

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def plan(self, uri: str, path: str) -> Plan | None:
        """How a document is run with the settings and the text as they are now."""
        path = notebook_of(path) or path
        text = "\n".join(self._server.texts.lines(path))
        return await self._plan(path, text, await self._server.settings_for(uri))

    async def start(self, uri: str, path: str, lane: Lane, entry: str = "") -> Run | None:
        """Runs what runs a document, or the entry that is named, with the texts as they are in the editor.

        Nothing where it is not known what runs the document.  Raises BadEntry.
        """
        path = notebook_of(path) or path
        plan = await self.plan(uri, path)
        if entry:
            plan = self._server.planner.plan_of(path, entry, await self._server.settings_for(uri))
        return None if plan is None else self._start(uri, plan, lane)

    def start_deep(self, run: Run) -> Run:
        """Runs the whole pipeline of what a fast run has just run, unasked."""
        return self._start(run.uri, run.plan, Lane.DEEP, automatic=True)

    def _start(self, uri: str, plan: Plan, lane: Lane, *, automatic: bool = False) -> Run:
        from irscope.driver import RunSpec

        server, entry = self._server, plan.entry
        spec = RunSpec(
            script=entry.target,
            args=plan.args,
            lane=lane,
            python=plan.python,
            cwd=plan.cwd,
            env=plan.env or None,
            budget=plan.settings.budget(lane),
            overlays=server.overlays(entry.file),
            entry=entry.kind,
            cells=tuple(server.notebooks.cells(entry.file)),
            symbolic_trace=None if plan.settings.symbolic_trace else False,
        )
        for name in (entry.file, entry.stored_script):
            server.remember_settings(name, plan.settings)
        files = {file_key(file): file for file in [entry.file, *server.open_beside(entry.file)]}
        texts = {key: server.texts.lines(file) for key, file in files.items()}
        return server.runs.start(uri, plan, spec, texts, server.archive.path, automatic=automatic)

    def run_began(self, run: Run) -> None:
        server = self._server
        log.info("Running %s, %s lane, with %s", run.plan.entry.title, run.live.lane.value, run.spec.python)
        if server.shows_progress:
            self._progress[run] = RunProgress(server, f"irscope: {run.name} ({run.live.lane.value})")
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

    def run_progressed(self, run: Run, progress: Progress) -> None:
        if shown := self._progress.get(run):
            percentage = 100 * progress.done // progress.total if progress.total else None
            shown.report(progress.text, percentage)
        run.phase = progress.phase
        if self._state_timer is None:
            self._state_timer = asyncio.get_running_loop().call_later(_PAUSE, self._tell_phase, run)

    def _tell_phase(self, run: Run) -> None:
        self._state_timer = None
        if run in self._server.runs.all():
            self.tell_state(run)

    def run_printed(self, run: Run, stream: str, text: str) -> None:
        self._server.tell("irscope/output", Output(run.live.run, stream, text))

    def run_ended(self, run: Run, ended: Ended) -> None:
        server = self._server
        outcome = ended.report.outcome
        log.info("%s: %s. %s", run.plan.entry.title, outcome.kind.value, outcome.message)
        if progress := self._progress.pop(run, None):
            progress.end(f"{outcome.kind.value}: {words.count(len(ended.report.findings), 'finding')}")
        self._told.pop(run, None)
        server.results.end(run.live, ended)
        self._spawn(server.since_last_run.look(run.key, ended))
        if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR:
            self._show_once(outcome.message)
        elif outcome.kind is OutcomeKind.COMPLETED:
            self._shown_messages.clear()
        self.results_changed()
        if ended.run:
            server.tell("irscope/runsChanged", RunsChanged(ended.run, run.uri, running=False))
        if server.runs.current(run.key) is None:
            self._last = (run, ended)
            self.tell_state()
            server.idle.ended(run, ended)

    # --- settings -----------------------------------------------------------------------------------------------------

    async def settings_changed(self) -> None:
        """What runs each open file may be another entry now, in another environment."""
        server = self._server
        before = dict(server.plans)
        plans = []
        for path, uri in server.open_files():
            plan = await self.plan(uri, path)
            if plan and uses_torch("\n".join(server.texts.lines(path))):
                plans.append(plan)
            known = before.get(file_key(path))
            if plan and not plan.own and (known is None or known.entry != plan.entry):
                self._spawn(self._look_at(uri, path, saved=False))  # what runs it was chosen just now
        server.results.control_again()
        self.results_changed()
        server.refresh("workspace/inlayHint/refresh")  # they may be off now
        self.warming.keep_only(plans)
        self._last = None  # an environment that was refused may be another one now
        self.tell_state()

    # --- telling the client -------------------------------------------------------------------------------------------

    def results_changed(self) -> None:
        """Diagnostics, lenses and the states of files may be others now."""
        self._server.publisher.changed()
        self._server.file_states.tell()
        self._server.refresh("workspace/codeLens/refresh")
        if self._server.settings.inlay_hints:
            self._server.refresh("workspace/inlayHint/refresh")

    def tell_state(self, run: Run | None = None) -> None:
        """Sends ``irscope/worker``: what goes on, else how the worker is and how the last run ended."""
        server = self._server
        running = server.runs.all()
        worker = server.workers.state()
        last, ended = self._last or (None, None)
        if running:
            run = run if run in running else running[-1]
            assert run is not None
            state, text = "running", f"Running {run.name} ({run.live.lane.value} lane)"
        elif not server.trusted:
            state, text = "stopped", "The workspace is not trusted, so nothing is run."
        else:
            state, text = (worker.state.value, worker.text) if worker else ("ready", "Ready")
            if ended is not None and last is not None:
                run, outcome = last, ended.report.outcome
                said = f"{run.name}: {outcome.message}"
                if outcome.kind in _TROUBLE:
                    state, text = _TROUBLE[outcome.kind], said
                else:
                    text = f"{text}. {said}"
        python = run.spec.python if run else server.settings.interpreter
        server.tell(
            "irscope/worker",
            WorkerState(
                state,
                text,
                python,
                run.uri if run else None,
                run.live.run or None if run else None,
                run.phase or None if run and running else None,
            ),
        )

    def _tell_runs_changed(self, run: Run, running: bool) -> None:
        now = asyncio.get_running_loop().time()
        if run.live.run and now - self._told.get(run, -_PAUSE) >= _PAUSE:
            self._told[run] = now
            self._server.tell("irscope/runsChanged", RunsChanged(run.live.run, run.uri, running))

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
