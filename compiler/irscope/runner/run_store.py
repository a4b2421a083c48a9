"""The run store as the run's process writes it: a full disk must not stop the capture, and even less the script.

Nor must a script that closes the store's files under it, or locks them: SQLite would wait for ten seconds, or for as long
as it is told to, and write into whatever the script has opened in their place.  So the files are looked at before each
write, a lock is not waited for for long, and after an error that is not one of the disk nothing more is written.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from irscope.store.store import Store

_LOCKED_SECONDS = 5
"""How long a run waits for another process that writes into the store."""


class RunStore(Store):
    """A store whose writes do not raise: what could not be written is reported and the next write is tried again.

    Parameters
    ----------
    on_failure
        Called with each error of SQLite.
    """

    def __init__(self, path: str, on_failure: Callable[[sqlite3.Error], None]) -> None:
        super().__init__(path)
        self._db.execute(f"PRAGMA busy_timeout = {_LOCKED_SECONDS * 1000}")
        self._on_failure = on_failure
        self._files = _open_files(path)
        self.broken = False

    def can_write(self) -> bool:
        """Whether there is still something to write to; where the files are gone that is told once."""
        if not self.broken and any(_identity(fd) != before for fd, before in self._files.items()):
            self.broken = True
            self._on_failure(sqlite3.OperationalError("the script has closed its files"))
        return not self.broken

    def failed(self, error: sqlite3.Error) -> None:
        """A write has failed."""
        self.broken = self.broken or not str(error).startswith(("database or disk is full", "disk I/O error"))
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA busy_timeout = 0")  # the script does not wait twice
        self._on_failure(error)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that reports an error of the store instead of raising it."""
        if not self.can_write():
            yield
            return
        try:
            with super().transaction():
                yield
        except sqlite3.Error as error:
            self.failed(error)


def _open_files(path: str) -> dict[int, tuple[int, int] | None]:
    """The descriptors that this process has for the files of a store; empty if the system does not tell."""
    names = {os.path.realpath(path) + suffix for suffix in ("", "-wal", "-shm")}
    found = {}
    with contextlib.suppress(OSError):
        for fd in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{fd}") in names:
                    found[fd] = _identity(fd)
    return found


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _forgiving(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def write(self: Any, *args: Any, **kwargs: Any) -> None:
        if not self.can_write():
            return
        try:
            method(self, *args, **kwargs)
        except sqlite3.Error as error:
            self.failed(error)

    return write


for _name, _method in list(vars(Store).items()):
    if _name.startswith(("put_", "set_")):
        setattr(RunStore, _name, _forgiving(_method))
