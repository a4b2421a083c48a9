"""What a client can show of an open file: what runs it, and whether what is shown of it is still true."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from irscope.notebooks import notebook_of
from irscope.protocol import Limit

from irscope_server.functions import uses_torch
from irscope_server.texts import file_key
from irscope_server.wire import FileState

if TYPE_CHECKING:
    from irscope_server.server import IrscopeServer


class FileStates:
    """Sends ``irscope/fileState`` for each open file whose state is another one now."""

    def __init__(self, server: IrscopeServer) -> None:
        self._server = server
        self._told: dict[str, FileState] = {}

    def tell(self) -> None:
        server = self._server
        paths = {file_key(path): (path, uri) for path, uri in server.open_documents()}
        self._told = {key: state for key, state in self._told.items() if key in paths}
        for key, (path, uri) in paths.items():
            state = self._state(path, uri)
            known = self._told.get(key)
            if state != known and (known is not None or state.state != "none"):
                self._told[key] = state
                server.tell("irscope/fileState", state)

    def _state(self, path: str, uri: str) -> FileState:
        path = notebook_of(path) or path
        server, name = self._server, os.path.basename(path)
        key = file_key(path)
        plan = server.plans.get(key)
        if plan is None:
            if key in server.plans and uses_torch("\n".join(server.texts.lines(path))):
                text = f"{name} only defines things: choose the script or test that runs it."
                return FileState(uri, "noEntry", None, None, text)
            return FileState(uri, "none", None, None, "")
        entry = None if plan.own else plan.entry.title
        newest = server.results.newest(plan.entry.key)
        if newest is None:
            text = f"{name} is run by {entry}." if entry else ""
            return FileState(uri, "noRun" if entry else "none", entry, None, text)
        outcome = newest.report.outcome
        parts = [f"{name} is run by {entry}."] if entry else []
        stale = server.views.is_stale(newest.texts)
        if stale:
            parts.append("Edited since the last run; what it found is shown where it is now.")
        if outcome.limit is not None and outcome.limit is not Limit.STEADY_STATE:
            parts.append(outcome.message)
        limit = outcome.limit.value if outcome.limit else None
        changed = server.since_last_run.of(plan.entry.key)
        return FileState(uri, "stale" if stale else "current", entry, limit, " ".join(parts), changed)
