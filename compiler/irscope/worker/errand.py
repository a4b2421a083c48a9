"""A fork of the worker that finds something out, tells it, and ends."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

TRIAL = "irscope trial"
"""What `ps` calls these forks."""


class Errand:
    """One such fork; it runs at a low priority.

    Args:
        let_go: Closes, in the fork, what belongs to the parent.
        work: Runs in the fork; what it returns is told.  An exception tells nothing.
    """

    def __init__(self, let_go: Callable[[], None], work: Callable[[], bytes]) -> None:
        self._told = b""
        self.pid = 0
        self.fd, write = os.pipe()
        try:
            self.pid = os.fork()
        finally:
            if self.pid:
                os.close(write)
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                os.close(self.fd)
                signal.set_wakeup_fd(-1)  # it is closed now, and what is opened next has its number
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.nice(10)
                let_go()
                with named(TRIAL):
                    _write_all(write, work())
            os._exit(0)

    def hear(self) -> bytes | None:
        """Reads what there is; all of it once the fork has ended, None before that."""
        data = os.read(self.fd, 1 << 16)
        if data:
            self._told += data
            return None
        os.close(self.fd)
        return self._told


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Gives this process a name, meanwhile."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "r+", encoding="utf-8") as file:
        before = file.read().rstrip("\n")
        file.write(name)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, NameError), open("/proc/self/comm", "w", encoding="utf-8") as file:
            file.write(before)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
