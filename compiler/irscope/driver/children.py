"""The processes that a script starts: each that compiles something has its own run, which is merged with the script's.

They connect to a socket in a folder that only this user can enter (`irscope.runner.joining`).  Everything that they send
passes through here, as what the script's process sends passes through `irscope.driver.watch`.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable
from typing import Any

from irscope.protocol import (
    CaptureGap,
    CompileSeen,
    FactsWritten,
    Finding,
    FindingSeen,
    LimitReached,
    Message,
    Outcome,
    OutcomeKind,
    Refused,
    RunRequest,
    ScriptEnded,
    StoreWrite,
    to_json,
    unpack_message,
)
from irscope.protocol.frames import FrameReader, Payload
from irscope.runner.joining import LENGTH
from irscope.store.run_writer import RunWriter
from irscope.store.store import Store
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import bounded

MOST_PROCESSES = 64
"""The most processes that have a run."""
_MOST_CONNECTIONS = 512
"""Processes that import torch and compile nothing, as those of a DataLoader, are only connected."""
_MOST_WAITING = 64
"""Messages that are kept of a process that has no run: before its first compile it sends a few, and no stages."""
_ANSWER_SECONDS = 2.0
_DRAIN_SECONDS = 2.0
_LONGEST_TITLE = 200
_BYTES = 1 << 16


class _Child:
    """One process, and its run from its first compile on."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.frames = FrameReader()
        self.waiting: list[Message | StoreWrite] = []
        self.run, self.writer = "", None  # type: str, RunWriter | None
        self.process: dict[str, Any] = {}
        self.compiles: set[str] = set()
        self.steady: LimitReached | None = None
        self.ended: ScriptEnded | None = None
        self.seconds = 0.0
        self.is_left_out = False

    @property
    def title(self) -> str:
        """Which process it is, in words."""
        title, pid = self.process.get("title"), self.process.get("pid")
        said = bounded(title, _LONGEST_TITLE) if isinstance(title, str) else "a process"
        return f"{said}, pid {pid}" if isinstance(pid, int) else said

    def outcome(self) -> Outcome:
        """How it ended; nobody but its parent knows its exit code."""
        if self.ended is None:
            message = "The process ended without its functions at exit (os._exit, or a signal). What was captured up to then is kept."
            return Outcome(OutcomeKind.COMPLETED, None, message, self.seconds)
        if self.ended.error:
            return Outcome(OutcomeKind.SCRIPT_ERROR, None, f"The process ended with {self.ended.error}.", self.seconds)
        return Outcome(OutcomeKind.COMPLETED, None, "The process ran to its end.", self.seconds)


class Children:
    """Takes in what the processes of one run send.

    Args:
        new_run: Begins the run of a process, of which it is given the number; returns its ID.
        request: What is asked of each process.
        on_gap: Told what is not captured.

    Raises OSError if there can be no such socket.
    """

    def __init__(self, store: Store, new_run: Callable[[int], str], on_gap: Callable[[CaptureGap], None]) -> None:
        self._store, self._new_run, self._on_gap = store, new_run, on_gap
        self._answer = b""
        self._folder = tempfile.mkdtemp(prefix="irscope-")
        self.address = os.path.join(self._folder, "s")
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._connections: dict[socket.socket, _Child] = {}
        self._with_run: list[_Child] = []
        self._left_out = 0
        try:
            self._listener.bind(self.address)
            self._listener.listen(128)
        except OSError:
            self.close()
            raise
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def answer_with(self, request: RunRequest) -> None:
        """What each process is asked for."""
        text = json.dumps(to_json(request)).encode()
        self._answer = LENGTH.pack(len(text)) + text

    @property
    def selector(self) -> selectors.BaseSelector:
        """Ready if there is something to `read`."""
        return self._selector

    @property
    def compiled(self) -> int:
        """How many processes have compiled something."""
        return len(self._with_run)

    @property
    def steady(self) -> LimitReached | None:
        """Told if there are processes that compiled something, still run, and are all in their steady state."""
        running = [child for child in self._connections.values() if child.compiles]
        return running[0].steady if running and all(child.steady for child in running) else None

    @property
    def is_busy(self) -> bool:
        """Whether a process that compiled something is not in its steady state yet."""
        return any(child.compiles and child.steady is None for child in self._connections.values())

    def read(self) -> bool:
        """Takes in what has arrived; False if nothing has."""
        ready = self._selector.select(0)
        for key, _ in ready:
            if key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.fileobj, socket.socket):
                self._receive(key.fileobj)
        return bool(ready)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it is gone
            return
        if len(self._connections) >= _MOST_CONNECTIONS or len(self._with_run) >= MOST_PROCESSES:
            self._left_out += 1
            with contextlib.suppress(OSError):
                connection.send(LENGTH.pack(0))
            connection.close()
            return
        connection.settimeout(_ANSWER_SECONDS)
        try:
            connection.sendall(self._answer)
        except OSError:
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection] = _Child()
        self._selector.register(connection, selectors.EVENT_READ)

    def _receive(self, connection: socket.socket) -> None:
        child = self._connections[connection]
        try:
            data = connection.recv(_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(connection)
        else:
            self._take(child, [part.data for part in child.frames.feed(data) if isinstance(part, Payload)])

    def _end(self, connection: socket.socket) -> None:
        child = self._connections.pop(connection)
        self._selector.unregister(connection)
        connection.close()
        child.seconds = round(time.monotonic() - child.started, 3)

    def _take(self, child: _Child, payloads: list[bytes]) -> None:
        for payload in payloads:
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                self._hear(child, unpack_message(payload))
        if child.writer is not None:
            child.writer.put(child.waiting)
            child.waiting = []

    def _hear(self, child: _Child, message: Message | StoreWrite) -> None:
        if isinstance(message, Refused):
            self._on_gap(CaptureGap(f"what {child.title} compiles", message.reason))
        elif isinstance(message, LimitReached):
            child.steady = message
        elif isinstance(message, ScriptEnded):
            child.ended = message
        elif isinstance(message, FactsWritten) and isinstance(process := message.facts.get("process"), dict):
            child.process = process
        if isinstance(message, CompileSeen) and message.compile.id not in child.compiles:
            child.compiles.add(message.compile.id)
            child.steady = None
        if isinstance(message, (CompileSeen, FindingSeen)) and child.writer is None:
            self._begin(child)
        if child.writer is not None or len(child.waiting) < _MOST_WAITING:
            child.waiting.append(message)

    def _begin(self, child: _Child) -> None:
        if len(self._with_run) >= MOST_PROCESSES:
            if not child.is_left_out:
                self._left_out += 1
            child.is_left_out = True
            return
        try:
            child.run = self._new_run(len(self._with_run) + 1)
        except sqlite3.Error as error:
            self._on_gap(CaptureGap(f"what {child.title} compiles", f"the run store cannot be written: {error}"))
            return
        child.writer = RunWriter(self._store, child.run, self._on_gap)
        self._with_run.append(child)

    def finish(self) -> None:
        """The script's process has ended: takes in what its processes have sent up to then."""
        until = time.monotonic() + _DRAIN_SECONDS
        while (self.read() or self._connections) and time.monotonic() < until:
            self._selector.select(0.05)
        for connection in list(self._connections):
            self._end(connection)
        for child in self._with_run:
            if child.writer is not None:
                child.writer.finish()
            with contextlib.suppress(sqlite3.Error):
                self._store.set_outcome(child.run, child.outcome())
        if self._left_out:
            why = f"at most {MOST_PROCESSES} processes have runs of their own"
            self._on_gap(CaptureGap(f"what {count(self._left_out, 'more process', 'more processes')} compiled", why))

    @property
    def runs(self) -> list[str]:
        """The runs of the processes, in the order of their first compiles."""
        return [child.run for child in self._with_run]

    def merged(self, run: str, outcome: Outcome, title: str) -> list[Finding]:
        """Merges the runs of all processes with that of the script; returns the findings that are not of the script alone."""
        if not self._with_run:
            return []
        from irscope.driver.merging import RankDone, merge_processes  # here: it would delay the script

        done = [RankDone(0, run, outcome, title)]
        done += [RankDone(at, child.run, child.outcome(), child.title) for at, child in enumerate(self._with_run, 1)]
        return merge_processes(self._store, done)

    def forget(self) -> None:
        """The script begins again, in another process: deletes the runs so far."""
        for child in self._with_run:
            with contextlib.suppress(sqlite3.Error):
                self._store.delete(child.run)
        self._with_run = []

    def close(self) -> None:
        """Closes the socket and all connections."""
        for connection in list(self._connections):
            connection.close()
        self._listener.close()
        self._selector.close()
        shutil.rmtree(self._folder, ignore_errors=True)
