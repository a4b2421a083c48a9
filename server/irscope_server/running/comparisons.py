"""Comparisons of pipelines: what runs a document, through several of them; one at a time per document."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from irscope_server.base.context import EditorContext
from irscope_server.base.progress import RunProgress
from irscope_server.base.results import RunsChanged

if TYPE_CHECKING:
    from irscope.comparing.pipelines import Comparison
    from irscope.driver.driver import RunSpec


@dataclass
class _Comparing:
    stop: threading.Event = field(default_factory=threading.Event)
    progress: RunProgress | None = None


class Comparisons:
    """Those that go on.  Everything belongs to the event loop; each has a thread, which asks its processes."""

    def __init__(self, editor: EditorContext) -> None:
        self._editor = editor
        self._going: dict[str, _Comparing] = {}

    async def compare(self, uri: str, key: str, name: str, specs: Sequence[RunSpec], store_path: str) -> Comparison:
        """The comparison, once it is in the store.

        A newer one of the same entry cancels the older one; so does the client that asked, when it cancels its request.

        Parameters
        ----------
        key, name
            Of the entry: what tells it from others, and what the user calls it.

        Raises
        ------
        irscope.driver.comparison.ComparisonCancelled
            It was to stop.
        """
        from irscope.driver.comparison import compared

        self.cancel(key)
        mine = self._going[key] = _Comparing()
        if self._editor.shows_progress:
            mine.progress = RunProgress(self._editor, f"irscope: comparing pipelines of {name}")
        loop = asyncio.get_running_loop()

        def say(text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server is on its way out
                loop.call_soon_threadsafe(self._say, mine, text)

        try:
            found = await asyncio.to_thread(compared, specs, store_path, on_step=say, cancel=mine.stop)
            for one in found.pipelines:
                if one.run:
                    self._editor.tell("irscope/runsChanged", RunsChanged(one.run, uri, running=False))
            return found
        finally:
            mine.stop.set()
            if mine.progress is not None:
                mine.progress.end("")
            if self._going.get(key) is mine:
                del self._going[key]

    def cancel(self, key: str) -> bool:
        """Stops the comparison of an entry; says whether there was one."""
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

    def _say(self, comparing: _Comparing, text: str) -> None:
        if comparing.progress is not None:
            comparing.progress.report(text)
