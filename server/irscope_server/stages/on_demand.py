"""Stages of a kernel that are made when their document is first opened: its assembly, machine code and passes.

The compilers are those of the interpreter that runs the script, in their own processes; the event loop goes on.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable

from irscope.protocol import Report
from irscope.store.store import Store, StoreError

from irscope_server.base import words
from irscope_server.base.context import EditorContext
from irscope_server.base.progress import Progress
from irscope_server.base.results import RunsChanged


class OnDemand:
    """Makes one stage after the other: each keeps a core busy for seconds.

    Args:
        python_of: The interpreter with which a file is run, as far as that is known.
    """

    def __init__(self, editor: EditorContext, python_of: Callable[[str], str | None]) -> None:
        self._editor, self._python_of = editor, python_of
        self._turn = asyncio.Lock()

    async def make(self, report: Report, stage: str) -> str:
        """Puts a stage that could be made into the store; returns why that is not possible, or an empty string."""
        editor = self._editor
        if not editor.trusted:
            return cannot(stage, "The workspace is not trusted, so no compiler is started.")
        async with self._turn:
            archive = editor.archive
            progress = Progress(editor, words.made_title(stage)) if editor.shows_progress else None
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
        editor.tell("irscope/runsChanged", RunsChanged(report.run, editor.uri_of(report.script), running=False))
        return ""

    async def _python(self, report: Report) -> str:
        """The interpreter that would run the script now."""
        known = self._python_of(report.script)
        return known or (await self._editor.settings_for(self._editor.uri_of(report.script))).interpreter


def make_stage(path: str, run: str, stage: str, python: str) -> str:
    """Puts a stage that could be made into a store, with an interpreter's compilers; returns why it cannot be."""
    from irscope import lowering  # takes time to import, and few need it

    try:
        with Store(path) as store:
            report = store.report(run)
            if not any(ref.id == stage for compile in report.with_predictions for ref in compile.stages):
                lowering.make(store, report, stage, python)
    except (LookupError, StoreError, sqlite3.Error) as error:  # a LoweringError is a LookupError
        return str(error.args[0] if error.args else error)
    return ""


def cannot(stage: str, why: str) -> str:
    """What is in the document of a stage that could not be made."""
    return f"{words.made_title(stage)}: cannot be made now.\n\n{why}\n\nOpen this document again to retry.\n"
