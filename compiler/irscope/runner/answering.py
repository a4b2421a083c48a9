"""A real rank answers ``irscope attach``: what its threads do, what it compiles, and in which collective it waits.

A thread waits at a socket in Linux's abstract namespace, which has no file and is gone with the process.  Only the same
user, or root, is answered.  The script's threads go on meanwhile.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import socket
import struct
import sys
import time
from typing import Any

from irscope.internals.stacks import stacks
from irscope.protocol import CompileOutcome, CompileSeen, Message, Progress, RunRequest
from irscope.runner.descriptors import identity

_SEND_SECONDS = 2.0
_CREDENTIALS = struct.Struct("3i")
"""``struct ucred``: the process, its user, its group."""


def address_of(pid: int) -> str:
    """The address of a process's socket."""
    return f"\0irscope-rank-{pid}"


def user_at(connection: socket.socket) -> tuple[int, int]:
    """The process at the other end of a connection, and its user."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(told)
    return pid, user


class Answering:
    """Answers from `start` to `close`; does nothing where the system has no such sockets."""

    def __init__(self, request: RunRequest) -> None:
        first = request.rank - request.local_rank
        machine = list(range(first, first + (request.local_world or 1)))
        self._who = {"rank": request.rank, "world": request.world, "machine": machine, "run": request.run}
        self._listener: socket.socket | None = None
        self._begun: dict[str, float] = {}
        self._compile: dict[str, Any] = {}
        self._phase: tuple[str, float] = ("", 0.0)

    def note(self, message: Message) -> None:
        """A message of this run: remembers what is being compiled, and since when."""
        if isinstance(message, Progress):
            if message.phase != self._phase[0]:
                self._phase = message.phase, time.monotonic()
        elif isinstance(message, CompileSeen):
            compile = message.compile
            if compile.outcome is CompileOutcome.RUNNING and compile.id not in self._begun:
                self._begun[compile.id] = time.monotonic()
                self._compile = {"id": compile.id, "title": compile.title, "file": compile.file, "line": compile.line}

    def start(self) -> None:
        """Begins to listen."""
        if not sys.platform.startswith("linux"):
            return
        listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):  # a fork of a rank that has its number in another namespace
            listener.bind(address_of(os.getpid()))
            listener.listen(8)
            self._listener = listener
            # Not a `threading.Thread`: the script would find it among its own.
            _thread.start_new_thread(self._serve, (listener, identity(listener.fileno())))

    def close(self) -> None:
        """Ends it, also in a fork."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _serve(self, listener: socket.socket, file: object) -> None:
        with contextlib.suppress(Exception):  # the script has closed the socket, or the interpreter ends
            while self._listener is listener and identity(listener.fileno()) == file:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(_SEND_SECONDS)
                    if user_at(connection)[1] in (os.getuid(), 0):
                        with contextlib.suppress(OSError):
                            connection.sendall(json.dumps(self._answer()).encode())

    def _answer(self) -> dict[str, Any]:
        found: dict[str, Any] = {**self._who, "threads": stacks()}
        now = time.monotonic()
        if self._compile:
            phase, since = self._phase
            found["compile"] = {
                **self._compile, "seconds": now - self._begun[self._compile["id"]],
                "phase": phase, "phase_seconds": now - since if phase else 0.0,
            }  # fmt: skip
        if "torch.distributed" in sys.modules:
            from irscope.internals.flight_recorder import issued  # here: only ranks that communicate need it

            try:
                found.update(issued())
            except Exception as error:  # noqa: BLE001  the rest of the answer is still true
                found["unknown"] = repr(error)
        return found
