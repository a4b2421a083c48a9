"""What is new in the store, for pages that show it while a run goes on."""

from __future__ import annotations

import json
import queue
import threading
from concurrent import futures
from dataclasses import dataclass, field

from irscope.protocol import RunSummary
from irscope.store.store import StoreError

from irscope_server.view.reader import Reader

_LOOK_SECONDS = 0.7
_RUNS = 50
_MOST_LISTENERS = 64


class TooMany(Exception):
    """More pages listen than are served."""


@dataclass(eq=False)
class Listener:
    """A page; what it has not been told yet."""

    messages: queue.Queue[str | None] = field(default_factory=lambda: queue.Queue(1000))

    def tell(self, message: str | None) -> None:
        """Queue a message for the page; None ends the stream.  Dropped where the page no longer reads."""
        if not self.messages.full():  # a page that does not read any more is told nothing
            self.messages.put_nowait(message)


class News:
    """Watches the store while a page listens, and tells all listeners what changed."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._listeners: set[Listener] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._known: dict[str, tuple[object, ...]] | None = None
        self._changes()  # what comes between a page's reading of the runs and the first look is told, too
        threading.Thread(target=self._look_forever, name="irscope-news", daemon=True).start()

    def listen(self) -> Listener:
        """Raises TooMany."""
        listener = Listener()
        with self._lock:
            if len(self._listeners) >= _MOST_LISTENERS:
                raise TooMany("Too many pages are open; close some of them.")
            self._listeners.add(listener)
        self._wake.set()
        return listener

    def leave(self, listener: Listener) -> None:
        """Forget a listener; the store is not watched while there is none."""
        with self._lock:
            self._listeners.discard(listener)
            if not self._listeners:
                self._wake.clear()

    def tell(self, message: dict[str, object]) -> int:
        """Tells every page; returns how many there are."""
        text = json.dumps(message)
        with self._lock:
            for listener in self._listeners:
                listener.tell(text)
            return len(self._listeners)

    def told_of(self, run: str) -> None:
        """A run that has ended has more in the store than at its end."""
        self.tell({"type": "changed", "run": run, "running": False})

    def close(self) -> None:
        """Ends all listening."""
        self._closed = True
        self._wake.set()
        with self._lock:
            for listener in self._listeners:
                listener.tell(None)

    def _look_forever(self) -> None:
        pause = threading.Event()
        while not self._closed:
            self._wake.wait()
            if self._closed:
                return
            for run in self._changes():
                self.tell({"type": "changed", "run": run.run, "running": run.outcome is None})
            pause.wait(_LOOK_SECONDS)

    def _changes(self) -> list[RunSummary]:
        try:
            runs = self._reader.wait(self._reader.archive.runs(_RUNS, None))
        except (StoreError, RuntimeError, futures.CancelledError, futures.TimeoutError):
            return []  # a store that cannot be read now, of which pages are told when they ask; or the end
        facts: dict[str, tuple[object, ...]] = {
            run.run: (run.outcome, run.compiles, run.findings, run.kernels, run.torch) for run in runs
        }
        known, self._known = self._known, facts
        if known is None:
            return []
        return [run for run in runs if known.get(run.run) != facts[run.run]]
