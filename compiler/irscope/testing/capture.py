"""Captures what is compiled in this process while other code goes on, and leaves nothing behind.

It is the capture of a run's process without a run: no store, no driver, no other backend, no cache that misses.
"""

from __future__ import annotations

import os
import sys
import threading

from irscope.capture.dynamo import DynamoCapture
from irscope.capture.run_book import RunBook
from irscope.events.listening import listen
from irscope.internals.hooks import Hooks, Undo
from irscope.protocol import (
    SCHEMA,
    CaptureGap,
    Compile,
    CompileSeen,
    Finding,
    FindingSeen,
    GapSeen,
    Lane,
    Message,
    Outcome,
    OutcomeKind,
    Report,
    RunRequest,
)
from irscope.runner.torch_here import find_torch
from irscope.usercode.user_files import set_torch_folder

_one_at_a_time = threading.Lock()


class ProcessCapture:
    """Captures from `start` to `finish`, whichever thread compiles; one of them at a time.

    Raises RuntimeError, at `start`, without a torch that irscope can read, and inside of another one.
    """

    def __init__(self) -> None:
        self._compiles: dict[str, Compile] = {}
        self._findings: dict[tuple[object, ...], Finding] = {}
        self._gaps: dict[CaptureGap, None] = {}
        request = RunRequest("", "", (), Lane.FAST, "", symbolic_trace=False)
        self._book = RunBook(request, self._see)
        self._capture = DynamoCapture(self._book)
        self._hooks = Hooks(self._capture.hooks(), self._book.gap)
        self._stop_listening: list[Undo] = []
        self._torch = ""
        self._process = 0

    def start(self) -> None:
        """Begins to capture."""
        found = find_torch()
        if isinstance(found, str):
            raise RuntimeError(found)
        if not _one_at_a_time.acquire(blocking=False):
            raise RuntimeError("irscope is capturing in this process already. Use one of its checks at a time.")
        folder, self._torch = found
        set_torch_folder(folder)
        self._process = os.getpid()
        self._stop_listening = [listen(handler, handler.LOGGER) for handler in self._capture.handlers()]
        self._hooks.__enter__()

    def finish(self) -> Report:
        """Puts everything back, and returns what was seen."""
        try:
            with self._book.lock:
                for stop in reversed(self._stop_listening):
                    stop()
                self._hooks.__exit__()
                self._book.close()
        finally:
            _one_at_a_time.release()
        outcome = Outcome(OutcomeKind.COMPLETED, 0, "", 0.0)
        return Report(
            SCHEMA, "", sys.argv[0], self._torch, outcome, tuple(self._compiles.values()), tuple(self._findings.values()),
            (), tuple(self._gaps),
        )  # fmt: skip

    def _see(self, message: Message) -> None:
        if os.getpid() != self._process:
            return  # a fork of the test's
        if isinstance(message, CompileSeen):
            self._compiles[message.compile.id] = message.compile
        elif isinstance(message, FindingSeen):
            self._findings[message.finding.cause] = message.finding
        elif isinstance(message, GapSeen):
            self._gaps[message.gap] = None
