"""Work on what TVM made, in a fork of the run's process, while TVM compiles on in the process itself.

The run does not wait for it before TVM is done, and a crash of TVM in there does not end the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

_SECONDS = 60.0
"""The longest that a run waits after TVM is done; a fork also ends after this much CPU time."""
_MOST_BYTES = 64_000_000


class NotDoneError(Exception):
    """The work has no result; the message says why."""


class Beside:
    """A fork that does some work.

    Args:
        work: Runs in the fork; gives what JSON can hold.  Its output goes nowhere.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._pid, self._fd = 0, -1
        if not hasattr(os, "fork") or sys.platform == "darwin":
            return
        self._fd, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads hold no lock that is needed here
            self._pid = os.fork()
        if self._pid == 0:
            with contextlib.suppress(BaseException):
                os.close(self._fd)
                _settle()
                _write_all(write, json.dumps(work()).encode())
            os._exit(0)
        os.close(write)

    def result(self) -> Any:
        """What the work gave.  Raises NotDoneError if it crashed, took too long, or cannot be done on this system."""
        if not self._pid:
            raise NotDoneError("it is made in a fork, and this system has none that is safe")
        told, end = bytearray(), time.monotonic() + _SECONDS
        try:
            while len(told) < _MOST_BYTES and select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0]:
                data = os.read(self._fd, 1 << 20)
                if not data:
                    return _read(told)
                told += data
        finally:
            self.stop()
        raise NotDoneError(f"it took longer than {_SECONDS:.0f} s or more than {_MOST_BYTES} bytes")

    def stop(self) -> None:
        """Ends the fork if nobody wants its result any more."""
        if not self._pid:
            return
        os.close(self._fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        self._pid = 0


def _settle() -> None:
    """In the fork: output of TVM and of its crashes goes nowhere, and there is an end to it."""
    import resource  # not on all systems

    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + _SECONDS), int(used + _SECONDS) + 1))


def _read(told: bytearray) -> Any:
    try:
        return json.loads(told)
    except ValueError:
        raise NotDoneError("TVM crashed, or the process ended early") from None


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
