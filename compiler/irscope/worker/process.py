"""A run's process as the driver sees it, whether it is a fresh one or a fork of the worker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Protocol


class RunProcess(Protocol):
    """What the driver needs of a process."""

    pid: int

    def poll(self) -> int | None:
        """The exit code once it has ended (minus the signal that killed it), nothing before."""

    def kill(self) -> None:
        """Ends it and everything in its process group, at once."""

    def close(self) -> None:
        """Lets go of what belongs to it; it has ended."""


class FreshProcess:
    """A process of its own, started for this run."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        kill_group(self.pid)

    def close(self) -> None:
        self._process.wait()


class ForkedProcess:
    """A fork of the worker.  The worker writes its pid and, when it has ended, its exit code into a pipe of its own.

    If the pipe closes before that, the worker has died, and its runs with it.
    """

    WORKER_DIED = -signal.SIGKILL

    def __init__(self, status: int) -> None:
        self._status, self._text, self._code = status, b"", None
        os.set_blocking(status, True)
        self.pid = int(self._line() or 0)
        os.set_blocking(status, False)

    _code: int | None

    def _line(self) -> bytes:
        while b"\n" not in self._text and (data := os.read(self._status, 64)):
            self._text += data
        line, _, self._text = self._text.partition(b"\n")
        return line

    def poll(self) -> int | None:
        if self._code is None and self._status >= 0:
            with contextlib.suppress(BlockingIOError):
                line = self._line()
                self._code = int(line) if line.strip() else int(self.WORKER_DIED)
        return self._code

    def kill(self) -> None:
        if self.pid:
            kill_group(self.pid)

    def close(self) -> None:
        if self._status >= 0:
            os.close(self._status)
            self._status = -1


def kill_group(pid: int) -> None:
    """Ends a process and everything that it has started and that is still in its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)
