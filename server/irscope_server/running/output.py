"""What a script prints, on its way to the client: whole, in order, and no faster than the client takes it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

_PAUSE = 0.05
"""Seconds between two messages."""
_MOST = 128 * 1024
"""Characters that wait for the client at a time; a script that prints faster than that is kept waiting."""
_PATIENCE = 5.0
"""Seconds after which a client that reads nothing no longer makes the run wait."""


class OutputRelay:
    """Collects pieces of output and passes them on a few times a second.

    `put` is called in the run's thread.  While too much is on its way it does not return, so the run's pipe fills up
    and the script waits in its own ``write``, as it would for a slow terminal.

    Args:
        send: Called on the event loop with the name of the stream and a text.
        stopped: Says that the run is to end, so that nothing should wait.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        send: Callable[[str, str], None],
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._loop, self._send, self._stopped = loop, send, stopped
        self._pieces: list[tuple[str, list[str]]] = []
        self._size = 0
        self._lost = 0
        self._room = threading.Condition()
        self._timer: asyncio.TimerHandle | None = None
        self._awake = False
        self._last = -_PAUSE

    def put(self, stream: str, text: str) -> None:
        """Takes a piece of output; waits for room."""
        deadline = time.monotonic() + _PATIENCE
        with self._room:
            while self._size >= _MOST and not self._stopped():
                if time.monotonic() >= deadline:
                    self._lost += len(text)
                    return
                self._room.wait(_PAUSE)
            if self._pieces and self._pieces[-1][0] == stream:
                self._pieces[-1][1].append(text)
            else:
                self._pieces.append((stream, [text]))
            self._size += len(text)
            wake, self._awake = not self._awake, True
        if wake:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(max(0.0, self._last + _PAUSE - self._loop.time()), self.flush)

    def flush(self) -> None:
        """Sends what has been collected; on the event loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._room:
            pieces, self._pieces, self._size = self._pieces, [], 0
            lost, self._lost, self._awake = self._lost, 0, False
            self._room.notify_all()
        for stream, texts in pieces:
            self._send(stream, "".join(texts))
        if lost:
            self._send("stderr", f"\n[irscope: {lost} more characters were printed while the editor took none]\n")
        self._last = self._loop.time()
