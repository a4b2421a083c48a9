"""Starts a worker and asks it for runs."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

from irscope.protocol import RunRequest, to_json
from irscope.system import processes
from irscope.vocabulary.records import dataclass
from irscope.worker.process import ForkedProcess
from irscope.worker.wire import send

_BOOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "driver", "boot.py")


class WorkerState(str, enum.Enum):
    """The life of a worker, as the editor shows it."""

    STARTING = "starting"
    """It is importing torch; a run that is asked for now starts its own process."""
    READY = "ready"
    """It forks itself at once for each run."""
    REFUSED = "refused"
    """This interpreter cannot have one: no torch, or a system on which forking is not safe."""
    CRASHED = "crashed"
    """It ended by itself; the next run starts another."""
    STOPPED = "stopped"
    """It was stopped."""


@dataclass(frozen=True)
class LayerNote:
    """What has happened to a layer of a worker.

    Args:
        layer: Its imports, as Python.
        state: ``ready``, ``refused`` (its imports are not safe to do ahead), ``dropped`` or ``ended``.
        seconds: Since its fork.
    """

    layer: str
    pid: int
    state: str
    reason: str
    seconds: float


class Worker:
    """A fork server in one interpreter, with one environment.  Any thread may use it.

    Args:
        python: The interpreter.
        env: Variables on top of this process's environment, which torch sees when it is imported.
        cwd: Where relative entries of PYTHONPATH begin; None: this process's working folder.
    """

    def __init__(self, python: str, env: Mapping[str, str] | None = None, cwd: str | None = None) -> None:
        self.python, self.env = python, dict(env or {})
        self.layered = True
        """Whether runs may be in layers, which have a script's imports done already."""
        self.notes: list[LayerNote] = []
        """What has happened to layers, as far as `listen` has heard of it; the newest hundred."""
        self.state, self.reason = WorkerState.STARTING, ""
        self.unfit: dict[str, str] = {}
        """Digest of a script → why it must run in a fresh process."""
        self._unread = b""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        if not can_fork():
            self.state, self.reason = WorkerState.REFUSED, f"Forking is not safe on {sys.platform}."
            return
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [python, _BOOT, "worker", str(theirs.fileno())],
                env={**os.environ, **self.env},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
            self._socket = ours
        except OSError as error:
            ours.close()
            self.state, self.reason = WorkerState.REFUSED, f"{python} cannot be started: {error}"
        finally:
            theirs.close()

    def wait_until_ready(self, timeout: float) -> WorkerState:
        """Waits at most that many seconds until it has imported torch, or cannot."""
        with self._lock:
            if self.state is WorkerState.STARTING and self._socket is not None:
                self._socket.settimeout(max(timeout, 0.001))
                try:
                    self._heard(self._read_line())
                except (TimeoutError, BlockingIOError):
                    pass
                except OSError:
                    self.state = WorkerState.CRASHED
            return self.state

    def _read_line(self) -> bytes:
        assert self._socket is not None
        line = b""
        while not line.endswith(b"\n") and (data := self._socket.recv(4096)):
            line += data
        return line

    def _heard(self, line: bytes) -> None:
        if not line:
            self.state, self.reason = WorkerState.CRASHED, "The worker ended while it was importing torch."
            return
        message = json.loads(line)
        self.state, self.reason = WorkerState(message["state"]), message.get("reason", "")

    def fork(
        self, request: RunRequest, env: Mapping[str, str], cwd: str, fds: tuple[int, int, int]
    ) -> ForkedProcess | None:
        """A run in a fork of the worker; None if it cannot have one now.

        Args:
            env: The whole environment of the run.
            fds: Descriptors for messages, stdout and stderr; the caller closes its own.
        """
        if self.wait_until_ready(0) is not WorkerState.READY:
            return None
        self.listen()
        status_out, status_in = os.pipe()
        message = {"request": to_json(request), "env": dict(env), "cwd": cwd, "layers": self.layered}
        with self._lock:
            try:
                assert self._socket is not None
                self._socket.settimeout(10)
                send(self._socket, message, [fds[0], status_in, fds[1], fds[2]])
            except OSError as error:
                os.close(status_out)
                self.state, self.reason = WorkerState.CRASHED, f"The worker does not answer: {error}"
                return None
            finally:
                os.close(status_in)
        process = ForkedProcess(status_out, self._abandon)
        if process.pid == 0:
            process.close()
            if self._process is not None and self._process.poll() is not None:  # and not only one of its layers
                self.state, self.reason = WorkerState.CRASHED, "The worker ended while it was starting a run."
            return None
        return process

    def _abandon(self) -> None:
        """Ends a worker that does not answer, with its layers and runs; a stopped process cannot be asked to end."""
        with self._lock:
            if self.state is WorkerState.READY:
                self.state, self.reason = (
                    WorkerState.CRASHED,
                    "The worker did not answer: a script may have stopped it.",
                )
            if self._process is not None and self._process.poll() is None:
                for pid in processes.tree(self._process.pid):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                self._process.wait()

    def listen(self) -> list[LayerNote]:
        """Takes in what the worker has said about its layers, without waiting; returns the notes that are new."""
        new: list[LayerNote] = []
        with self._lock:
            if self.state is not WorkerState.READY or self._socket is None:
                return new
            self._socket.settimeout(0)
            with contextlib.suppress(OSError):
                while data := self._socket.recv(1 << 16):
                    self._unread += data
            *lines, self._unread = self._unread.split(b"\n")
            for line in lines:
                told = json.loads(line)
                new.append(LayerNote(*(told[name] for name in ("layer", "pid", "state", "reason", "seconds"))))
            self.notes = [*self.notes, *new][-100:]
        return new

    def layers(self) -> list[LayerNote]:
        """The layers that are there now."""
        self.listen()
        newest = {note.pid: note for note in self.notes}
        return [note for note in newest.values() if note.state == "ready"]

    def memory(self) -> int:
        """Bytes that the worker, its layers and its runs hold together: shared pages count once (PSS)."""
        return processes.proportional_bytes(processes.tree(self._process.pid)) if self._process is not None else 0

    def stop(self) -> None:
        """Ends it and all its runs."""
        with self._lock:
            if self.state in (WorkerState.STARTING, WorkerState.READY):
                self.state = WorkerState.STOPPED
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=0.5)
                if self._process.poll() is None:
                    self._process.kill()
                    self._process.wait()


def can_fork() -> bool:
    """Forking with torch imported is known to be safe on Linux only: macOS's system libraries do not survive it."""
    return sys.platform.startswith("linux") and hasattr(socket, "send_fds")


def wait_for(worker: Worker, seconds: float) -> WorkerState:
    """Waits until a worker has left its first state, for tests and benchmarks."""
    end = time.monotonic() + seconds
    while worker.state is WorkerState.STARTING and time.monotonic() < end:
        worker.wait_until_ready(end - time.monotonic())
    return worker.state
