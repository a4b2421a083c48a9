"""Stages of a kernel that are made when their document is first opened: its assembly, machine code and passes.

The compilers are those of the interpreter that runs the script, in processes of their own; the event loop goes on.
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

from irscope.protocol import Report
from irscope.store import Store, StoreError

from irscope_server import words
from irscope_server.progress import Progress
from irscope_server.texts import file_key
from irscope_server.wire import RunsChanged

if TYPE_CHECKING:
    from irscope_server.server import IrscopeServer


class OnDemand:
    """Makes one stage after the other: each keeps a core busy for seconds."""

    def __init__(self, server: IrscopeServer) -> None:
        self._server = server
        self._turn = asyncio.Lock()

    async def make(self, report: Report, stage: str) -> str:
        """Puts a stage that could be made into the store; returns why that is not possible, or nothing."""
        server = self._server
        if not server.trusted:
            return cannot(stage, "The workspace is not trusted, so no compiler is started.")
        async with self._turn:
            archive = server.archive
            progress = Progress(server, words.made_title(stage)) if server.shows_progress else None
            try:
                problem = await asyncio.to_thread(
                    make_stage, archive.path, report.run, stage, await self._python(report)
                )
            finally:
                if progress is not None:
                    progress.end("")
            archive.forget(report.run)
        if problem:
            return cannot(stage, problem)
        server.tell("irscope/runsChanged", RunsChanged(report.run, server.uri_of(report.script), running=False))
        return ""

    async def _python(self, report: Report) -> str:
        """The interpreter that would run the script now."""
        server = self._server
        if (plan := server.plans.get(file_key(report.script))) is not None:
            return plan.python
        return (await server.settings_for(server.uri_of(report.script))).interpreter


def make_stage(path: str, run: str, stage: str, python: str) -> str:
    """Puts a stage that could be made into a store, with an interpreter's compilers; returns why it cannot be."""
    from irscope import lowering  # takes time to import, and few need it

    try:
        with Store(path) as store:
            report = store.report(run)
            if not any(ref.id == stage for compile in report.compiles for ref in compile.stages):
                lowering.make(store, report, stage, python)
    except (LookupError, StoreError, sqlite3.Error) as error:  # a LoweringError is a LookupError
        return str(error.args[0] if error.args else error)
    return ""


def cannot(stage: str, why: str) -> str:
    """What stands in the document of a stage that could not be made."""
    return (
        f"{words.made_title(stage)}: this cannot be made now.\n\n{why}\n\nIt is tried again when this is opened anew.\n"
    )
