"""Measurements with processes of their own, as a comparison of pipelines: one at a time for what runs a document."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from irscope_server.base.context import EditorContext
from irscope_server.base.progress import RunProgress
from irscope_server.base.results import RunsChanged

_T = TypeVar("_T")
Say = Callable[[str], None]


@dataclass
class _Measuring:
    stop: threading.Event = field(default_factory=threading.Event)
    progress: RunProgress | None = None


class Measurements:
    """The measurements that go on.  Everything belongs to the event loop; each has a thread, which asks its
    processes."""

    def __init__(self, editor: EditorContext) -> None:
        self._editor = editor
        self._going: dict[str, _Measuring] = {}

    async def measure(
        self,
        uri: str,
        key: str,
        title: str,
        work: Callable[[Say, threading.Event], _T],
        runs_of: Callable[[_T], Sequence[str]],
    ) -> _T:
        """What the work gives, once it is in the store.  Raises what the work raises.

        A newer one of the same entry stops the older one; so does the client that asked, when it cancels its request.

        Args:
            key: Key of the entry.
            work: Runs in a thread.  It says what it does, and ends soon after the event is set.
            runs_of: The runs that it kept, for the tree.
        """
        self.cancel(key)
        mine = self._going[key] = _Measuring()
        if self._editor.shows_progress:
            mine.progress = RunProgress(self._editor, title)
        loop = asyncio.get_running_loop()

        def say(text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server is on its way out
                loop.call_soon_threadsafe(self._say, mine, text)

        try:
            found = await asyncio.to_thread(work, say, mine.stop)
            for run in runs_of(found):
                self._editor.tell("irscope/runsChanged", RunsChanged(run, uri, running=False))
            return found
        finally:
            mine.stop.set()
            if mine.progress is not None:
                mine.progress.end("")
            if self._going.get(key) is mine:
                del self._going[key]

    def cancel(self, key: str) -> bool:
        """Stops the measurement of an entry; says whether there was one."""
        going = self._going.get(key)
        if going is not None:
            going.stop.set()
        return going is not None

    def cancel_by_token(self, token: str | int) -> None:
        """The user pressed *cancel* on a progress."""
        for one in self._going.values():
            if one.progress is not None and one.progress.token == token:
                one.stop.set()

    def close(self) -> None:
        """Stops all of them."""
        for one in self._going.values():
            one.stop.set()

    def _say(self, measuring: _Measuring, text: str) -> None:
        if measuring.progress is not None:
            measuring.progress.report(text)
