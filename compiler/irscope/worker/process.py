"""A run's process as the driver sees it, whether it is a fresh one or a fork of the worker."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Protocol

from irscope.system import processes
from irscope.system.ending import end_group
from irscope.system.last_words import Ending, decoded


class RunProcess(Protocol):
    """What the driver needs of a process."""

    pid: int
    status_fd: int | None
    """Readable once `poll` may have something new to say, until `close`; None if the system has no such thing."""

    def poll(self) -> int | None:
        """The exit code once it has ended (minus the signal that killed it); None before that."""

    def ending(self) -> Ending:
        """How it ended, as its parent has seen it; it has ended."""

    def kill(self) -> None:
        """Ends it and everything in its process group, at once."""

    def close(self) -> None:
        """Lets go of what belongs to it; it has ended."""


class FreshProcess:
    """A separate process, started for this run.  On Linux it is the warden of the script's (system/warden.py), which
    ends that and everything below it when it is asked to, and then ends itself as the script's process did.

    Args:
        ending: The reading end of the pipe into which the warden writes how the script's process ended.
    """

    PATIENCE_SECONDS = 5.0

    def __init__(self, process: subprocess.Popen[bytes], ending: int) -> None:
        self._process, self._ending = process, ending
        os.set_blocking(ending, False)
        self._asked: float | None = None
        self.pid = process.pid
        self.status_fd = _pidfd(process.pid)

    def poll(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._process.poll()

    def ending(self) -> Ending:
        """What the warden has written; it is one piece."""
        try:
            return decoded(os.read(self._ending, 1 << 16))
        except BlockingIOError:
            return Ending()

    def kill(self) -> None:
        """Ask the process to end; kill its whole group where that takes too long."""
        if self._process.poll() is not None:
            return
        if self._asked is None:
            self._asked = time.monotonic()
        if sys.platform.startswith("linux") and time.monotonic() - self._asked < self.PATIENCE_SECONDS:
            self._process.terminate()
        else:
            end_group(self.pid)

    def close(self) -> None:
        """Wait for the end of the process and close its descriptor."""
        self._process.wait()
        os.close(self._ending)
        if self.status_fd is not None:
            os.close(self.status_fd)
            self.status_fd = None


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when a child ends: Linux, Python 3.9 and newer."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


class ForkedProcess:
    """A fork of the worker.  It writes its pid into its own pipe, and the worker, when it has ended, its exit code and
    how it ended.

    If the pipe closes before that, the worker has died, and its runs with it.  A worker that says nothing is as good as
    dead: a script can stop it, since it is the parent of its process.

    Args:
        status: The reading end of the pipe.
        abandon: Called once if the worker says nothing: ends it, so that the next run starts another.
    """

    WORKER_DIED = -signal.SIGKILL
    PATIENCE_SECONDS = 20.0
    """For the pid, which a worker sends as soon as it has forked itself."""
    LAST_PATIENCE_SECONDS = 3.0
    """For the exit code of a process that has ended."""

    def __init__(self, status: int, abandon: Callable[[], None] = lambda: None) -> None:
        self._text, self._code, self._told = b"", None, b""
        self.status_fd: int | None = status
        self._abandon = abandon
        self._gone_since: float | None = None
        os.set_blocking(status, False)
        name, _, number = self._first_line().partition(b" ")
        self.pid = int(number) if name == b"pid" else 0  # 0: it has ended before it began, which a bare exit code says

    _code: int | None

    def _first_line(self) -> bytes:
        """The line with the pid; empty if the worker says nothing for too long."""
        assert self.status_fd is not None
        waiting = select.poll()  # unlike `select.select` it takes descriptors above 1023
        waiting.register(self.status_fd, select.POLLIN)
        if not waiting.poll(self.PATIENCE_SECONDS * 1000):
            self._abandon()
            return b""
        return self._line()

    def _line(self) -> bytes:
        while b"\n" not in self._text and self.status_fd is not None and (data := os.read(self.status_fd, 64)):
            self._text += data
        line, _, self._text = self._text.partition(b"\n")
        return line

    def poll(self) -> int | None:
        """The exit code; None while the process runs; that of a crash where the worker has died or does not answer."""
        if self._code is None and self.status_fd is not None:
            try:
                code, _, self._told = self._line().partition(b" ")
                self._code = int(code) if code.strip() else int(self.WORKER_DIED)
            except BlockingIOError:
                if self._is_silent():
                    self._abandon()
                    self._code = int(self.WORKER_DIED)
        return self._code

    def ending(self) -> Ending:
        """What the worker has written after the exit code."""
        return decoded(self._told)

    def _is_silent(self) -> bool:
        """Whether the process ended some seconds ago and the worker has not said how."""
        if not self.pid or processes.is_running(self.pid):
            self._gone_since = None
            return False
        if self._gone_since is None:
            self._gone_since = time.monotonic()
        return time.monotonic() - self._gone_since > self.LAST_PATIENCE_SECONDS

    def kill(self) -> None:
        """Kill the process and its whole group, once its pid is known."""
        if self.pid:
            end_group(self.pid)

    def close(self) -> None:
        """Close the descriptor of the exit code."""
        if self.status_fd is not None:
            os.close(self.status_fd)
            self.status_fd = None
