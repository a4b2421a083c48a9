"""Puts what a run's process sends into the store.

The script runs in another process, which has no descriptor of the store.  Nothing here raises because of the store: a run
goes on without it, and what is not kept is a capture gap.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable

from irscope.protocol import (
    RUN_FACTS,
    CaptureGap,
    CompileSeen,
    DataWritten,
    FactsWritten,
    FindingSeen,
    GapSeen,
    KernelsWritten,
    Message,
    PredictionWritten,
    SourceWritten,
    StageWritten,
    Started,
    StoreWrite,
)
from irscope.store.recovery import is_damage
from irscope.store.store import Store

_WAITING_BYTES = 1 << 28
"""The most bytes of texts that wait for a store that another process has locked; what comes after that is not kept."""
_LOCKED_SECONDS, _LOCKED_SECONDS_AT_END = 2.0, 10.0
"""How long another process that writes is waited for: once while the script runs, and when it has ended."""


class RunWriter:
    """Writes one run.

    Args:
        on_gap: Told what is not kept, and why.
    """

    def __init__(self, store: Store, run: str, on_gap: Callable[[CaptureGap], None]) -> None:
        self._store, self._run, self._on_gap = store, run, on_gap
        self._waiting: deque[Message | StoreWrite] = deque()
        self._waiting_bytes = 0
        self._patience = _LOCKED_SECONDS

    def put(self, messages: Iterable[Message | StoreWrite]) -> None:
        """Takes in messages, in their order.  While another process has locked the store they wait."""
        for message in messages:
            self._waiting_bytes += _bytes_of(message)
            if self._waiting_bytes > _WAITING_BYTES and self._patience == 0:
                self._not_kept("another process has locked it")
                continue
            self._waiting.append(message)
        if self._waiting:
            self._write()

    def finish(self) -> None:
        """Writes what still waits: a lock of the script's ends with it."""
        self._patience = _LOCKED_SECONDS_AT_END
        if self._waiting:
            self._write()
        if self._waiting:
            self._not_kept("another process has locked it")
            self._waiting.clear()

    def _write(self) -> None:
        try:
            with self._store.waiting(self._patience), self._store.transaction():
                for message in self._waiting:
                    self._put(message)
        except sqlite3.Error as error:
            if "locked" in str(error) or "busy" in str(error):
                self._patience = 0.0  # the script does not wait again
                return
            self._write_each()
        self._waiting.clear()
        self._waiting_bytes = 0

    def _write_each(self) -> None:
        """After an error: what can be written is."""
        for message in self._waiting:
            try:
                with self._store.transaction():
                    self._put(message)
            except sqlite3.Error as error:
                self._put_elsewhere(message, error)

    def _put_elsewhere(self, message: Message | StoreWrite, error: sqlite3.Error) -> None:
        """On a full disk the run goes on in memory, and of a damaged store in a new one."""
        if is_damage(error) and self._store.recover():
            self._not_kept("it was damaged; what could be read of it is kept")
        elif self._store.go_on_in_memory(error, self._run):
            self._not_kept(self._store.unkept)
        else:
            self._not_kept(str(error))
            return
        with contextlib.suppress(sqlite3.Error):
            self._put(message)

    def _not_kept(self, why: str) -> None:
        self._on_gap(CaptureGap("the run store: a part of this run is not kept", f"{self._store.path}: {why}"))

    def _put(self, message: Message | StoreWrite) -> None:
        store, run = self._store, self._run
        if isinstance(message, StageWritten):
            store.put_written_stage(run, message)
        elif isinstance(message, DataWritten):
            store.put_written_data(run, message)
        elif isinstance(message, (CompileSeen, PredictionWritten)):
            store.put_compile(run, message.compile)
        elif isinstance(message, FindingSeen):
            store.put_finding(run, message.finding)
        elif isinstance(message, GapSeen):
            store.put_gap(run, message.gap)
        elif isinstance(message, KernelsWritten):
            for kernel in message.kernels:
                store.put_kernel(run, kernel)
        elif isinstance(message, SourceWritten):
            store.put_source(run, message.file, message.text or "")
        elif isinstance(message, Started):
            store.set_torch(run, message.torch)
        elif isinstance(message, FactsWritten):
            with contextlib.suppress(LookupError):  # the run was deleted meanwhile
                store.put_facts(run, {name: fact for name, fact in message.facts.items() if name in RUN_FACTS})


def _bytes_of(message: Message | StoreWrite) -> int:
    """Roughly, of what is long."""
    return 1000 + sum(len(text) for text in vars(message).values() if isinstance(text, str))
