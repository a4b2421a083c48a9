"""Runs of scripts: one at a time per entry, each in its own thread, reported on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from irscope.findings.kinds import compiled_code_error
from irscope.profiling.changes import stored_profile
from irscope.protocol import (
    CompileSeen,
    Finding,
    FindingSeen,
    KernelsWritten,
    Message,
    Outcome,
    OutcomeKind,
    Progress,
    Report,
    ScriptEnded,
    Started,
)
from irscope.store.store import Store, StoreError
from irscope.usercode.source import digest_of

from irscope_server.base.texts import FileKey, split_lines, text_on_disk
from irscope_server.running.outcomes import findings_of
from irscope_server.running.output import OutputRelay
from irscope_server.running.plans import Plan
from irscope_server.running.results import Ended, Live, empty_report, files_of, with_findings
from irscope_server.running.workers import Workers

if TYPE_CHECKING:
    from irscope.driver.driver import RunSpec
    from irscope.worker.client import Worker

log = logging.getLogger(__name__)

_AUTOMATIC_AT_ONCE = 2
"""An editor that opens twenty files starts no twenty interpreters with torch in them."""

Execute = Callable[..., "tuple[str, Outcome]"]


class Run:
    """A run that was asked for.  Everything but `cancel` belongs to the event loop."""

    def __init__(
        self, uri: str, plan: Plan, live: Live, automatic: bool, spec: RunSpec, check: str | None = None
    ) -> None:
        self.uri = uri
        """The document that it was started for."""
        self.plan = plan
        self.live = live
        self.automatic = automatic
        self.spec = spec
        self.check = check
        """The id of the run to check without compile; empty for this run, None for no check."""
        self.asked_to_stop = threading.Event()
        self.done: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.has_kernels = False
        self.more_kernels: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the store has more of its kernels; the next ones get a new one."""
        self.torch = ""
        self.phase = ""
        """What it is doing, in few words."""
        self.why_not_measured = ""

    @property
    def script(self) -> str:
        """The file that it begins with."""
        return self.live.script

    @property
    def key(self) -> str:
        """The key of the entry that is run."""
        return self.live.key

    @property
    def name(self) -> str:
        """What the user calls it: the script's name, ``-m package``, ``pytest …``."""
        return self.plan.entry.name

    def tell_kernels(self) -> None:
        """The store has more of its kernels."""
        self.has_kernels, told = True, self.more_kernels
        self.more_kernels = asyncio.get_running_loop().create_future()
        told.set_result(None)

    def cancel(self) -> None:
        """Asks the run to stop; its end is reported as usual."""
        self.asked_to_stop.set()


class Listener(Protocol):
    """Who wants to know how runs go; called on the event loop."""

    def run_began(self, run: Run) -> None:
        """The run's process has been started."""

    def run_named(self, run: Run) -> None:
        """The store has it now: `run.live.run` is its id."""

    def run_found(self, run: Run, seen: FindingSeen) -> None:
        """The run found something, or knows more of what it found."""

    def run_compiled(self, run: Run, seen: CompileSeen) -> None:
        """The run has a new or changed compile."""

    def run_generated(self, run: Run) -> None:
        """The run has new or changed kernels."""

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """The run is doing something else now."""

    def run_printed(self, run: Run, stream: str, text: str) -> None:
        """The script printed text on ``stdout`` or ``stderr``."""

    def run_ended(self, run: Run, ended: Ended) -> None:
        """The run is over; called once for each run that began."""


class Runs:
    """Starts, supersedes and cancels runs.

    Args:
        execute: `irscope.driver.driver.execute`, which is imported with the first run; tests hand in another, which has
            no workers.
        workers: Where runs that are to be in a worker find one.
    """

    def __init__(self, execute: Execute | None = None, workers: Workers | None = None) -> None:
        self._workers = workers if execute is None else None
        self.listener: Listener
        """Notified of everything that happens.  It starts runs itself, so it is set once both exist."""
        self._execute = execute
        self._current: dict[str, Run] = {}
        self._threads: set[threading.Thread] = set()
        self._automatic = threading.BoundedSemaphore(_AUTOMATIC_AT_ONCE)
        self._closed = False

    def current(self, key: str) -> Run | None:
        """The run of an entry that goes on."""
        return self._current.get(key)

    def all(self) -> list[Run]:
        """The current run of each entry."""
        return list(self._current.values())

    def start(
        self,
        uri: str,
        plan: Plan,
        spec: RunSpec,
        texts: Mapping[FileKey, Sequence[str]],
        store_path: str,
        *,
        automatic: bool = False,
        check: str | None = None,
    ) -> Run:
        """Runs a script; an older run of the same entry is cancelled, and what it still tells goes unheard.

        Args:
            texts: Lines of files as they run: of the entry's file and of whatever is open.
            automatic: Nobody asked for it, an open or a save did: it waits while others like it are running.
            check: The id of a run with these texts: it is not run again, only checked without compile.  If empty, the
                check follows this run.
        """
        entry = plan.entry
        source = digest_of("\n".join(texts.get(entry.file_key, ())))
        run = Run(uri, plan, Live(entry.file, spec.lane, source, texts, entry=entry.key), automatic, spec, check)
        key = run.key
        older = self._current.get(key)
        self._current[key] = run
        if older is not None:
            older.cancel()
        self.listener.run_began(run)
        loop = asyncio.get_running_loop()
        thread = threading.Thread(
            target=self._work, args=(run, store_path, loop), name=f"irscope-run-{len(self._threads)}", daemon=True
        )
        self._threads.add(thread)
        thread.start()
        return run

    def cancel(self, key: str) -> bool:
        """Stops the run of an entry; says whether there was one."""
        run = self.current(key)
        if run is not None:
            run.cancel()
        return run is not None

    def close(self, timeout: float = 3.0) -> None:
        """Stops every run and waits until their processes are gone, at most for so many seconds."""
        self._closed = True
        for run in self._current.values():
            run.cancel()
        deadline = time.monotonic() + timeout
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    # --- in the run's thread ------------------------------------------------------------------------------------------

    def _work(self, run: Run, store_path: str, loop: asyncio.AbstractEventLoop) -> None:
        def tell(callback: Callable[..., None], *args: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server is on its way out
                loop.call_soon_threadsafe(callback, *args)

        held = False
        try:
            while run.automatic and not held and not run.asked_to_stop.is_set():
                held = self._automatic.acquire(timeout=0.05)
            ended = self._run(run, store_path, tell, loop)
        finally:
            if held:
                self._automatic.release()
        tell(self._ended, run, ended, threading.current_thread())
        if ended.run:
            _tidy(store_path, ended.run)

    def _run(self, run: Run, store_path: str, tell: Callable[..., None], loop: asyncio.AbstractEventLoop) -> Ended:
        spec, live = run.spec, run.live
        begun = time.monotonic()
        output = OutputRelay(
            loop, lambda stream, text: self._printed(run, stream, text), lambda: run.asked_to_stop.is_set()
        )
        if run.asked_to_stop.is_set():
            return _ended_without_report(live, Outcome(OutcomeKind.CANCELLED, None, "Cancelled before it began.", 0.0))
        try:
            with self._worker_for(run, tell) as more, Store(store_path) as store:
                if run.check:
                    name, outcome = run.check, store.report(run.check).outcome
                    tell(self._named, run, name)
                else:
                    execute = self._execute or (_profiling(run) if spec.profile else _driver())
                    name, outcome = execute(
                        spec,
                        store,
                        on_start=lambda name: tell(self._named, run, name),
                        on_message=lambda message: tell(self._heard, run, message),
                        on_output=output.put,
                        cancel=run.asked_to_stop,
                        **more,
                    )
                    tell(output.flush)
                if run.check is not None:
                    _check(run, store, name, lambda message: tell(self._heard, run, message), **more)
                report = dataclasses.replace(store.report(name), outcome=outcome)
                profile = stored_profile(store, name) if spec.profile else None
        except (StoreError, OSError, LookupError) as error:
            outcome = Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, str(error), time.monotonic() - begun)
            return _ended_without_report(live, outcome)
        except Exception as error:
            log.exception("The run of %s failed inside irscope", spec.script)
            outcome = Outcome(
                OutcomeKind.CRASHED,
                None,
                f"irscope itself failed: {type(error).__name__}: {error}. Run it again; the log has the details for a report.",
                time.monotonic() - begun,
            )
            return _ended_without_report(live, outcome)
        if not any(finding.kind == compiled_code_error.KIND.id for finding in report.findings):
            # Else it reports the end, at a better place.
            report = with_findings(report, _about_the_end(live, report.outcome))
        ended = with_texts(live, report)
        return dataclasses.replace(ended, profile=profile, why_not_measured=run.why_not_measured)

    @contextlib.contextmanager
    def _worker_for(self, run: Run, tell: Callable[..., None]) -> Iterator[dict[str, Worker | None]]:
        """What `execute` gets to know about the worker.  Waits for one that is starting, unless the run is cancelled."""
        # A measured script has a separate process.
        if self._workers is None or not run.plan.settings.worker_enabled or run.spec.profile:
            yield {}
            return

        def waiting() -> None:
            tell(self._heard, run, Progress("starting: torch is being imported", "starting"))

        spec = run.spec
        with self._workers.for_run(spec.python, spec.env, run.asked_to_stop, waiting, spec.cwd) as worker:
            yield {"worker": worker}

    # --- on the event loop --------------------------------------------------------------------------------------------

    def _is_current(self, run: Run) -> bool:
        return not self._closed and self._current.get(run.key) is run

    def _named(self, run: Run, name: str) -> None:
        run.live.run = name
        if self._is_current(run):
            self.listener.run_named(run)

    def _heard(self, run: Run, message: Message) -> None:
        if not self._is_current(run):
            return
        if isinstance(message, Started):
            run.torch = message.torch
        elif isinstance(message, FindingSeen):
            self.listener.run_found(run, message)
        elif isinstance(message, CompileSeen):
            self.listener.run_compiled(run, message)
        elif isinstance(message, KernelsWritten):
            run.tell_kernels()
            self.listener.run_generated(run)
        elif isinstance(message, Progress):
            self.listener.run_progressed(run, message)
        elif isinstance(message, ScriptEnded):
            self.listener.run_progressed(run, Progress("the script ended", "ending"))

    def _printed(self, run: Run, stream: str, text: str) -> None:
        if self._is_current(run):
            self.listener.run_printed(run, stream, text)

    def _ended(self, run: Run, ended: Ended, thread: threading.Thread) -> None:
        self._threads.discard(thread)
        if self._current.get(run.key) is run:
            del self._current[run.key]
        if not self._closed:
            self.listener.run_ended(run, ended)
        if not run.done.done():
            run.done.set_result(ended)


def _tidy(store_path: str, run: str) -> None:
    try:
        with Store(store_path) as store:
            store.tidy(run)
    except (StoreError, sqlite3.Error) as error:
        log.warning("The run store cannot be tidied: %s", error)


def with_texts(live: Live, report: Report) -> Ended:
    """An ended run with the texts of the files that it names; those that the run did not bring are read from disk."""
    texts = dict(live.texts)
    for key, file in files_of(report).items():
        if key not in texts and (text := text_on_disk(file)):
            texts[key] = split_lines(text)
    return Ended(live.script, live.lane, live.source, report, texts, entry=live.entry)


def _ended_without_report(live: Live, outcome: Outcome) -> Ended:
    report = with_findings(empty_report(live.script, outcome), _about_the_end(live, outcome))
    return Ended(live.script, live.lane, live.source, report, live.texts, entry=live.entry)


def _about_the_end(live: Live, outcome: Outcome) -> list[Finding]:
    return findings_of(outcome, live.script, live.texts.get(live.script_key, ()))


def _check(
    run: Run, store: Store, name: str, on_message: Callable[[Message], None], worker: Worker | None = None
) -> None:
    from irscope.driver.checking import check_without_compile

    check_without_compile(run.spec, store, name, on_message=on_message, cancel=run.asked_to_stop, worker=worker)


def _driver() -> Execute:
    from irscope.driver.driver import execute

    return execute


def _profiling(run: Run) -> Execute:
    """Like `execute`, but measures what was compiled; why it could not be is kept with the run."""
    from irscope.driver.profiling import NotMeasured, profiled

    def work(spec: RunSpec, store: Store, **more: Any) -> tuple[str, Outcome]:
        try:
            return profiled(spec, store, **more)[:2]
        except NotMeasured as error:
            if error.outcome is None:
                raise
            run.why_not_measured = str(error)
            return error.run, error.outcome

    return work
