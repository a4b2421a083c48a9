"""What a client can show of an open file: what runs it, and whether what is shown of it is still true."""

from __future__ import annotations

import os
from typing import Literal

from irscope.findings.standing import NEXT, label, sentence, standing_of

from irscope_server.base.context import Document, EditorContext
from irscope_server.base.functions import uses_torch
from irscope_server.base.results import FileState
from irscope_server.base.texts import FileKey
from irscope_server.running.plans import Planner
from irscope_server.running.results import Results
from irscope_server.running.since_last_run import SinceLastRun


class FileStates:
    """Sends ``irscope/fileState`` for each open file whose state has changed."""

    def __init__(self, editor: EditorContext, planner: Planner, results: Results, since_last_run: SinceLastRun) -> None:
        self._editor, self._planner, self._results = editor, planner, results
        self._since_last_run = since_last_run
        self._told: dict[FileKey, FileState] = {}

    def tell(self) -> None:
        """Send the states that have changed since the last call."""
        editor = self._editor
        self._told = {key: state for key, state in self._told.items() if editor.is_open(key)}
        for document in editor.open_documents():
            state = self._state(document)
            told = self._told.get(document.key)
            if state != told and (told is not None or state.state != "none"):
                self._told[document.key] = state
                editor.tell("irscope/fileState", state)

    def _state(self, document: Document) -> FileState:
        editor, uri, key = self._editor, document.uri, document.script.key
        name = os.path.basename(document.script.path)
        plan = self._planner.plans.get(key)
        if plan is None:
            if key in self._planner.plans and uses_torch("\n".join(editor.texts.lines(key))):
                text = f"{name} only contains definitions. Choose the script or test that runs it."
                return FileState(uri, "noEntry", None, None, text)
            return FileState(uri, "none", None, None, "")
        entry = None if plan.own else plan.entry.title
        newest, deep = self._results.newest(plan.entry.key), self._results.deep(plan.entry.key)
        if newest is None:
            text = f"{name} is run by {entry}." if entry else ""
            return FileState(uri, "noRun" if entry else "none", entry, None, text)
        outcome = newest.report.outcome
        parts = [f"{name} is run by {entry}."] if entry else []
        stale = editor.texts.are_edited(newest.texts)
        if stale:
            parts.append("Edited since the last run. Its findings are shown where their lines are now.")
        report = (self._results.judged(plan.entry.key) or newest).report
        standing = standing_of(report)
        parts.append(sentence(standing, report.outcome.message, NEXT))
        if newest.report.may_differ and (deep is None or deep.source != newest.source):
            coming = ": the full run is on its way" if plan.settings.deep_when_idle else " from a full run"
            parts.append(f"What was found may differ{coming}.")
        changed = self._since_last_run.of(plan.entry.key)
        text = " ".join(filter(None, parts))
        state: Literal["stale", "current"] = "stale" if stale else "current"
        return FileState(uri, state, entry, outcome.limit, text, standing.state.value, label(standing), changed)
