"""What happens when documents open, change, are saved and close, and when runs tell something."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from irscope.pipelines.registry import pipeline_named
from irscope.protocol import DEFAULT_PIPELINE, CompileSeen, FindingSeen, Lane, OutcomeKind, Progress
from irscope.protocol.symbols import symbols_in
from irscope.store.store import StoreError
from irscope.usercode.source import digest_of
from irscope.vocabulary import units

from irscope_server.base.archive import StoredRun
from irscope_server.base.context import Document, EditorContext
from irscope_server.base.functions import uses_compile, uses_torch
from irscope_server.base.progress import RunProgress
from irscope_server.base.results import Output, RunsChanged, Stream
from irscope_server.base.settings import Settings
from irscope_server.base.texts import FileKey, keyed
from irscope_server.running.file_states import FileStates
from irscope_server.running.idle import DeepWhenIdle
from irscope_server.running.notebooks import Notebooks
from irscope_server.running.plans import Plan, Planner
from irscope_server.running.proofs import Proofs
from irscope_server.running.results import Ended, Live, Results
from irscope_server.running.runs import Run, Runs, with_texts
from irscope_server.running.since_last_run import SinceLastRun
from irscope_server.running.warming import Warming
from irscope_server.running.worker_notices import WorkerNotices
from irscope_server.running.workers import Workers

if TYPE_CHECKING:
    from irscope.driver.driver import RunSpec

log = logging.getLogger(__name__)

_PAUSE = 0.5
"""Seconds between two notices that a run has more in the store."""


@dataclass(frozen=True)
class Parts:
    """What `Activity` brings together.

    Args:
        diagnostics_changed: Called when something was found or a text changed.
    """

    planner: Planner
    results: Results
    runs: Runs
    workers: Workers
    notebooks: Notebooks
    warming: Warming
    notices: WorkerNotices
    file_states: FileStates
    since_last_run: SinceLastRun
    proofs: Proofs
    diagnostics_changed: Callable[[], None]


class Activity:
    """Starts runs and spreads what they tell: to diagnostics, lenses, progress, the worker's state and the log."""

    def __init__(self, editor: EditorContext, parts: Parts) -> None:
        self._editor, self._parts = editor, parts
        self.idle = DeepWhenIdle(editor, parts.results, parts.runs, self.start_deep)
        self._progress: dict[Run, RunProgress] = {}
        self._told: dict[Run, float] = {}
        self._due: dict[Run, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._naming: set[Run] = set()
        """Runs whose findings are given what their symbols are."""
        self._shown_messages: set[str] = set()
        parts.runs.listener = self

    # --- documents ----------------------------------------------------------------------------------------------------

    def opened(self, document: Document) -> None:
        """A document was opened: show what is known about it; run it if the settings say so and its text is new."""
        self._spawn(self._look_at(document, saved=False))
        self.results_changed()

    def saved(self, document: Document) -> None:
        """A document was saved: run it if the settings say so."""
        self._spawn(self._look_at(document, saved=True))

    def changed(self) -> None:
        """A text changed: what was found moves with its lines.  A client that pulls asks by itself."""
        self.idle.typed()
        if not self._editor.pulls:
            self._parts.diagnostics_changed()
        self._parts.file_states.tell()

    def closed(self, document: FileKey) -> None:
        """What its runs found goes with their last document; the store has it when one opens again."""
        editor, parts = self._editor, self._parts
        key = editor.key_of(document)
        parts.planner.plans.pop(document, None)
        if key not in {editor.key_of(other.key) for other in editor.open_files()}:
            run = parts.runs.current(key)
            if run is not None and run.automatic:
                run.cancel()
            parts.proofs.cancel(key)
            parts.results.forget(key)
        self.results_changed()

    def trust_changed(self) -> None:
        """The workspace has become trusted: what would have run on open runs now.  Or it is trusted no more."""
        if not self._editor.trusted:
            for run in self._parts.runs.all():
                run.cancel()
            self._parts.workers.stop()
        self._parts.notices.tell()
        if self._editor.trusted:
            for document in self._editor.open_files():
                self.opened(document)

    async def _look_at(self, document: Document, saved: bool) -> None:
        """Shows what the store knows of the text as it is, and starts a run where that is wanted.

        A library module is run by its entry.  An open does not run again what has been run with the very same text:
        it costs seconds, and what it found is shown at once.  Files that the script imports may have changed
        meanwhile; a save runs in any case, unless a run of these texts is under way.
        """
        editor, parts = self._editor, self._parts
        key = document.key
        text = "\n".join(editor.texts.lines(key))
        if not uses_torch(text) and editor.key_of(key) == key and parts.runs.current(key) is None:
            parts.results.forget(key)
            self.results_changed()
        settings = await editor.settings_for(document.uri)
        plan = await self._plan(document, text, settings)
        if not editor.is_open(key):
            return
        parts.file_states.tell()
        if not (uses_torch(text) or (plan is not None and not plan.own and plan.touched)):
            return
        parts.warming.warm(settings, plan)
        if plan is None or not await self._tells_more(document.key, text, plan, saved):
            return
        if settings.on_save is None or not editor.trusted or self._is_under_way(plan, settings.on_save):
            return
        self._start(document.uri, plan, settings.on_save, automatic=True)

    async def _tells_more(self, key: FileKey, text: str, plan: Plan, saved: bool) -> bool:
        """Whether a run may find something that is not shown already."""
        if plan.own and not uses_compile(text) and not await self._compiles(key, plan):
            return False
        return saved or not await self._is_known(key, plan)

    def _is_under_way(self, plan: Plan, lane: Lane) -> bool:
        """Whether a run goes on with the texts as they are now, which goes as far down as is wanted."""
        running = self._parts.runs.current(plan.entry.key)
        return running is not None and self._runs_these_texts(running) and running.live.lane in (lane, Lane.DEEP)

    async def _plan(self, document: Document, text: str, settings: Settings) -> Plan | None:
        """How a document is run; remembered, so that its lenses and diagnostics know whose results they show."""
        editor, parts = self._editor, self._parts
        try:
            plan = await parts.planner.plan(document, text, settings)
        except StoreError as error:
            self._show_once(str(error))
            plan = None
        if editor.is_open(document.key):
            parts.planner.plans[document.key] = plan
        return plan

    async def _compiles(self, key: FileKey, plan: Plan) -> bool:
        """Whether a script that does not say so itself is known to compile something: in a module that it imports."""
        editor, entry = self._editor, plan.entry.key
        if any(editor.key_of(other.key) == entry for other in editor.open_files() if other.key != key):
            return True
        newest = self._parts.results.newest(entry)
        if newest is not None:
            return bool(newest.report.compiles)
        return await editor.archive.compiled(plan.entry.stored_script)

    def _runs_these_texts(self, run: Run) -> bool:
        """Whether a run goes on with the texts as they are now."""
        lines = self._editor.texts.lines
        return all(list(lines(key)) == list(ran) for key, ran in run.live.texts.items())

    async def _is_known(self, key: FileKey, plan: Plan) -> bool:
        """Whether what a run of these very texts found is shown already, or can be from the store."""
        editor, parts = self._editor, self._parts
        if not plan.own and (newest := parts.results.newest(plan.entry.key)) is not None:
            lacks = plan.settings.on_save is Lane.DEEP and newest.lane is not Lane.DEEP
            return not lacks and not editor.texts.are_edited(newest.texts)
        return await self._show_stored(key, plan)

    async def _show_stored(self, key: FileKey, plan: Plan) -> bool:
        """Shows the store's newest run of these very texts, and says whether that spares a run."""
        editor, parts, entry, lane = self._editor, self._parts, plan.entry, plan.settings.on_save
        try:
            newest, deep = await self._stored(key, plan)
        except StoreError as error:
            self._show_once(str(error))
            return True
        if parts.runs.current(entry.key) is not None:
            return False
        if (shown := parts.results.newest(entry.key)) is not None:  # a request has had it read, or a run ended
            return (lane is not Lane.DEEP or shown.lane is Lane.DEEP) and not editor.texts.are_edited(shown.texts)
        if newest:
            parts.results.end(None, await self.ended_of(newest, plan))
        if deep and (newest is None or deep.report.run != newest.report.run):
            parts.results.remember_deep(await self.ended_of(deep, plan))
        if newest or deep:
            self.results_changed()
        return (deep if lane is Lane.DEEP else newest) is not None

    async def _stored(self, key: FileKey, plan: Plan) -> tuple[StoredRun | None, StoredRun | None]:
        """The store's newest run of these texts, and its newest deep run of them."""
        archive, entry = self._editor.archive, plan.entry
        source = digest_of("\n".join(self._editor.texts.lines(entry.file))) if entry.kind.is_file else None
        # The fast lane is Dynamo's, so what it finds is known from runs of the usual pipeline only.
        newest = await archive.newest(entry.stored_script, None, source, DEFAULT_PIPELINE)
        deep = await archive.newest(entry.stored_script, Lane.DEEP, source, plan.settings.pipeline)
        if plan.own:
            return newest, deep
        newest, deep = (run if run and self.has_text(run, key) else None for run in (newest, deep))
        return newest, deep

    def has_text(self, stored: StoredRun, key: FileKey) -> bool:
        """Whether a stored run is known to have had a file as it is now."""
        ran = stored.texts.get(key)
        return ran is not None and list(ran) == list(self._editor.texts.lines(key))

    async def ended_of(self, stored: StoredRun, plan: Plan) -> Ended:
        """A stored run of an entry with the texts that it had, as far as they are known."""
        entry = plan.entry
        texts = dict(stored.texts)
        if entry.kind.is_file:  # its digest is that of the text as it is now
            texts[entry.file_key] = self._editor.texts.lines(entry.file)
        live = Live(entry.file, stored.lane, stored.source, texts, stored.report.run, entry=entry.key)
        return await asyncio.to_thread(with_texts, live, stored.report)

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def plan(self, document: Document) -> Plan | None:
        """How a document is run with the settings and the text as they are now."""
        text = "\n".join(self._editor.texts.lines(document.script.key))
        return await self._plan(document.script, text, await self._editor.settings_for(document.uri))

    async def start(
        self,
        document: Document,
        lane: Lane,
        entry: str = "",
        pipeline: str = "",
        check: str | None = None,
    ) -> Run | None:
        """Runs what runs a document, or the entry that is named, with the texts as they are in the editor.

        Without a ``pipeline`` it is the one of the settings; the fast lane is Dynamo's.  ``check`` is as in `Runs.start`.  None if it is not known what runs the document.  Raises BadEntry.
        """
        plan = await self.plan(document)
        if entry:
            settings = await self._editor.settings_for(document.uri)
            plan = self._parts.planner.plan_of(document.script, entry, settings)
        return None if plan is None else self._start(document.uri, plan, lane, pipeline, check=check)

    def start_deep(self, run: Run) -> Run:
        """Runs the whole pipeline of what a fast run has just run, unasked."""
        return self._start(run.uri, run.plan, Lane.DEEP, automatic=True)

    def _start(
        self,
        uri: str,
        plan: Plan,
        lane: Lane,
        pipeline: str = "",
        *,
        automatic: bool = False,
        check: str | None = None,
    ) -> Run:
        return self.start_spec(uri, plan, self.spec_of(plan, lane, pipeline), automatic=automatic, check=check)

    def start_spec(
        self, uri: str, plan: Plan, spec: RunSpec, *, automatic: bool = False, check: str | None = None
    ) -> Run:
        """Runs what `spec_of` gave, perhaps with changes; the rest is as in `Runs.start`."""
        editor, parts, entry = self._editor, self._parts, plan.entry
        for name in (entry.file, entry.stored_script):
            editor.remember_settings(name, plan.settings)
        texts = keyed({file: editor.texts.lines(file) for file in [entry.file, *editor.open_beside(entry.file_key)]})
        return parts.runs.start(uri, plan, spec, texts, editor.archive.path, automatic=automatic, check=check)

    def spec_of(self, plan: Plan, lane: Lane, pipeline: str = "") -> RunSpec:
        """What a plan runs, with the texts as they are in the editor; the pipeline is as in `start`."""
        from irscope.driver.driver import RunSpec

        entry = plan.entry
        chosen = pipeline or (plan.settings.pipeline if lane is Lane.DEEP else DEFAULT_PIPELINE)
        return RunSpec(
            script=entry.target,
            args=plan.args,
            lane=lane,
            python=plan.python,
            cwd=plan.cwd,
            env=plan.env or None,
            budget=plan.settings.budget(lane),
            overlays=self._editor.overlays(entry.file_key),
            entry=entry.kind,
            cells=tuple(self._parts.notebooks.cells(entry.file)),
            symbolic_trace=None if plan.settings.symbolic_trace else False,
            pipeline=chosen,
            targets=_targets(plan.settings.target, chosen) if lane is Lane.DEEP else (),
        )

    def run_began(self, run: Run) -> None:
        """A run began: show its progress, and begin its results."""
        editor, parts = self._editor, self._parts
        log.info("Running %s, %s lane, with %s", run.plan.entry.title, run.live.lane.value, run.spec.python)
        if editor.shows_progress:
            self._progress[run] = RunProgress(editor, f"irscope: {run.name} ({run.live.lane.value})")
        parts.proofs.began(run)
        parts.results.begin(run.live)
        self.results_changed()
        parts.notices.tell(run)

    def run_named(self, run: Run) -> None:
        """The run has an id in the store: tell the client."""
        self._tell_runs_changed(run)
        self._parts.notices.tell(run)

    def run_found(self, run: Run, seen: FindingSeen) -> None:
        """A run found something: update the diagnostics."""
        self._parts.results.add_finding(run.live, seen.finding)
        self._parts.diagnostics_changed()
        self._name_symbols(run)

    def run_compiled(self, run: Run, seen: CompileSeen) -> None:
        """A run has a new or changed compile: tell the client that it has something new."""
        self._tell_runs_changed(run)
        self._name_symbols(run)

    def _name_symbols(self, run: Run) -> None:
        """Findings that name symbolic sizes get what the store knows of these by now."""
        unnamed = any(not finding.symbols and symbols_in(finding.words) for finding in run.live.findings.values())
        if unnamed and run not in self._naming:
            self._naming.add(run)
            self._spawn(self._with_symbols(run))

    async def _with_symbols(self, run: Run) -> None:
        try:
            report = await self._editor.archive.report(run.live.run)
        finally:
            self._naming.discard(run)
        for finding in report.findings:
            if finding.symbols and finding.cause in run.live.findings:
                self._parts.results.add_finding(run.live, finding)
                self._parts.diagnostics_changed()

    def run_generated(self, run: Run) -> None:
        """A run has new or changed kernels: as above."""
        self._tell_runs_changed(run)

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """A run is doing something else now: show it."""
        if shown := self._progress.get(run):
            percentage = 100 * progress.done // progress.total if progress.total else None
            shown.report(progress.text, percentage)
        run.phase = progress.phase
        self._parts.notices.progressed(run)

    def run_printed(self, run: Run, stream: str, text: str) -> None:
        """The script printed something: send it to the client."""
        self._editor.tell("irscope/output", Output(run.live.run, cast(Stream, stream), text))

    def run_ended(self, run: Run, ended: Ended) -> None:
        """A run ended: show its results, compare it with the run before, and say what went wrong."""
        editor, parts = self._editor, self._parts
        outcome = ended.report.outcome
        log.info("%s: %s. %s", run.plan.entry.title, outcome.kind.value, outcome.message)
        if progress := self._progress.pop(run, None):
            progress.end(f"{outcome.kind.value}: {units.count(len(ended.report.findings), 'finding')}")
        self._told.pop(run, None)
        if due := self._due.pop(run, None):
            due.cancel()
        parts.results.end(run.live, ended)
        self._spawn(self._compare(run.key, ended))
        if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR:
            self._show_once(outcome.message)
        elif outcome.kind is OutcomeKind.COMPLETED:
            self._shown_messages.clear()
        self.results_changed()
        if parts.runs.current(run.key) is None:
            parts.notices.ended(run, ended)
            self.idle.ended(run, ended)
            parts.proofs.ended(run, ended)
        if ended.run:  # last, so that a client that hears of the end has the state that goes with it
            editor.tell("irscope/runsChanged", RunsChanged(ended.run, run.uri, running=False))

    async def _compare(self, key: str, ended: Ended) -> None:
        """What a run changed is part of the state of its files."""
        await self._parts.since_last_run.look(key, ended)
        self._parts.file_states.tell()

    # --- settings -----------------------------------------------------------------------------------------------------

    async def settings_changed(self) -> None:
        """What runs each open file may be another entry now, in another environment."""
        editor, parts = self._editor, self._parts
        plans_before = dict(parts.planner.plans)
        plans = []
        for document in editor.open_files():
            plan = await self.plan(document)
            if plan and uses_torch("\n".join(editor.texts.lines(document.key))):
                plans.append(plan)
            earlier = plans_before.get(document.key)
            if plan and not plan.own and (earlier is None or earlier.entry != plan.entry):
                self._spawn(self._look_at(document, saved=False))  # what runs it was chosen just now
        parts.results.control_again()
        self.results_changed()
        editor.refresh("workspace/inlayHint/refresh")  # they may be off now
        parts.warming.keep_only(plans)
        parts.notices.forget_last()

    # --- telling the client -------------------------------------------------------------------------------------------

    def results_changed(self) -> None:
        """Diagnostics, lenses and the states of files may be others now."""
        self._parts.diagnostics_changed()
        self._parts.file_states.tell()
        self._editor.refresh("workspace/codeLens/refresh")
        if self._editor.settings.inlay_hints:
            self._editor.refresh("workspace/inlayHint/refresh")

    def _tell_runs_changed(self, run: Run) -> None:
        """The store has more of a run that goes on: the client is told now, or once the pause is over."""
        if not run.live.run or run in self._due:
            return
        loop = asyncio.get_running_loop()
        wait = self._told.get(run, -_PAUSE) + _PAUSE - loop.time()
        if wait > 0:
            self._due[run] = loop.call_later(wait, self._tell_due, run)
        else:
            self._told[run] = loop.time()
            self._editor.tell("irscope/runsChanged", RunsChanged(run.live.run, run.uri, running=True))

    def _tell_due(self, run: Run) -> None:
        del self._due[run]
        self._tell_runs_changed(run)

    def _show_once(self, message: str) -> None:
        """A message box, once per cause; the log has it each time."""
        log.warning("%s", message)
        if message not in self._shown_messages:
            self._shown_messages.add(message)
            self._editor.show_message(message)

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


def _targets(given: str, pipeline: str) -> tuple[str, ...]:
    """The targets of the setting, where the pipeline generates code for any; the driver says which are unknown."""
    try:
        able = bool(pipeline_named(pipeline).targets)
    except LookupError:
        able = False
    return tuple(name.strip() for name in given.split(",") if name.strip()) if able else ()
