"""Reads the run store off the event loop, in a thread that owns the connection; what takes long in a second one."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from irscope.ir.guards import GuardList, guards_of
from irscope.pipelines.registry import role_of
from irscope.protocol import Compile, Lane, OutcomeKind, Report, RunSummary
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base.texts import FileKey, lines_by_file

T = TypeVar("T")

_RAN = frozenset({OutcomeKind.COMPLETED, OutcomeKind.SCRIPT_ERROR, OutcomeKind.BUDGET})
"""Outcomes of runs that say something about the script and would say it again."""

_MOST_GUARDS = 30_000
"""Kept in memory, at three quarters of a kilobyte each."""

_REST_SECONDS = 30.0
"""After so long without a question what is kept to answer the next one sooner goes."""


@dataclass(frozen=True)
class StoredRun:
    """A run as the store has it."""

    report: Report
    lane: Lane
    source: str
    """Digest of the script's text."""
    texts: Mapping[FileKey, Sequence[str]] = field(default_factory=dict)
    """Lines of the files that it compiled something of."""


class Archive:
    """The run store as the server reads it.

    Args:
        path: The store's file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="irscope-store")
        self._store: Store | None = None
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="irscope-aside")
        self._reports: OrderedDict[str, Report] = OrderedDict()
        self._guards: OrderedDict[tuple[str, str], GuardList | None] = OrderedDict()
        self.remembered: dict[str, Any] = {}
        """What questions of `ask_aside` keep for the next ones, in its thread."""
        self._resting: asyncio.TimerHandle | None = None
        self._closed = False

    async def ask(self, question: Callable[[Store], T]) -> T:
        """Calls a function with the open store, in the store's thread.  Raises what it raises, and StoreError."""
        loop = asyncio.get_running_loop()
        self._wake()
        try:
            return await loop.run_in_executor(self._thread, self._answer, question)
        finally:
            self._wake()
            if not self._closed:
                self._resting = loop.call_later(_REST_SECONDS, self._rest)

    def _answer(self, question: Callable[[Store], T]) -> T:
        if self._store is not None and not self._store.is_current():
            self._store.close()
            self._store = None
        if self._store is None:
            self._store = Store(self.path)
        return question(self._store)

    def _wake(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def _rest(self) -> None:
        self._resting = None
        self._guards.clear()
        self._thread.submit(lambda: self._store.rest() if self._store else None)
        self._aside.submit(self.remembered.clear)

    async def ask_aside(self, question: Callable[[Store], T]) -> T:
        """Like `ask`, for questions that take long: in a thread and with its own connection, so that documents do not
        wait."""
        return await asyncio.get_running_loop().run_in_executor(self._aside, self._answer_aside, question)

    def _answer_aside(self, question: Callable[[Store], T]) -> T:
        with Store(self.path) as store:  # open only while it is needed, since what SQLite keeps in memory is its own
            return question(store)

    async def report(self, run: str) -> Report:
        """A run's report; the last few that were asked for are kept once the run has ended."""
        if known := self._reports.get(run):
            self._reports.move_to_end(run)
            return known
        report = await self.ask(lambda store: store.report(run))
        if report.outcome.kind is not OutcomeKind.CANCELLED:  # which is also what a run that goes on looks like
            self._reports[run] = report
            while len(self._reports) > 8:
                self._reports.popitem(last=False)
        return report

    def forget(self, run: str) -> None:
        """Something of a run that has ended is new in the store."""
        self._reports.pop(run, None)

    async def runs(self, limit: int, script: str | None) -> list[RunSummary]:
        """The newest `limit` runs, newest first; those of one script where `script` is a path."""
        return await self.ask(lambda store: store.runs(limit, script))

    async def runs_of_each_pipeline(self, limit: int, script: str | None) -> list[RunSummary]:
        """Like `runs`, and also the newest run of each pipeline of the scripts that are among them."""

        def find(store: Store) -> list[RunSummary]:
            newest = store.runs(limit, script)
            listed = {run.run for run in newest}
            for name in dict.fromkeys(run.script for run in newest):
                newest += [run for run in store.newest_of_each_pipeline(name) if run.run not in listed]
            return newest

        return await self.ask(find)

    async def newest(
        self, script: str, lane: Lane | None = None, source: str | None = None, pipeline: str | None = None
    ) -> StoredRun | None:
        """The newest run of a script that ran; of that lane, with that text and that pipeline, if they are named."""

        def find(store: Store) -> StoredRun | None:
            for run in store.runs(50, script):
                if run.outcome is None or run.outcome.kind not in _RAN or lane not in (None, run.lane):
                    continue
                if pipeline not in (None, run.pipeline):
                    continue
                digest = store.source_of(run.run)
                if source in (None, digest):
                    return StoredRun(store.report(run.run), run.lane, digest, lines_by_file(store.sources(run.run)))
            return None

        return await self.ask(find)

    async def scripts_touching(self, file: str) -> list[str]:
        """Scripts whose runs compiled or found something in a file, newest run first."""
        if not os.path.exists(self.path):
            return []  # a look at a file makes no store
        runs = await self.ask(lambda store: store.runs_touching(file))
        return list(dict.fromkeys(script for _, script in runs))

    async def compiled(self, script: str) -> bool:
        """Whether the last run of a script that ran compiled something."""
        stored = await self.newest(script) if os.path.exists(self.path) else None
        return stored is not None and bool(stored.report.compiles)

    async def guards(self, report: Report, compiles: Sequence[Compile]) -> list[GuardList]:
        """The guards of compiles of a run that has ended, for those that have some; a number of them is kept.

        A compile of a big model has a megabyte of them, so they are read in the store's thread.
        """

        def read(compile: Compile) -> Callable[[Store], GuardList | None]:
            def answer(store: Store) -> GuardList | None:
                stage = next((stage for stage in compile.stages if role_of(stage.name) is Role.GUARDS), None)
                try:
                    text = store.stage_text(report.run, stage.id) if stage else ""
                    costs = store.stage_data(report.run, stage.id) if stage else None
                except LookupError:  # the run is not in the store any more
                    text, costs = "", None
                return guards_of(compile, text, report.compiles, costs) if text else None

            return answer

        lists = []
        for compile in compiles:
            key = (report.run, compile.id)
            if key not in self._guards:
                self._guards[key] = await self.ask(read(compile))
            guards = self._guards.get(key)
            if guards is not None:
                lists.append(guards)
        while len(self._guards) > 1 and sum(len(g.guards) for g in self._guards.values() if g) > _MOST_GUARDS:
            self._guards.popitem(last=False)
        return lists

    def close(self) -> None:
        """Stop both threads.  Questions that have not begun are cancelled."""
        self._wake()
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._aside.shutdown(wait=False, cancel_futures=True)
