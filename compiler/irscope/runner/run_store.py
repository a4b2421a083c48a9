"""The run store as the run's process writes it: a full disk must not stop the capture, and even less the script.

Nor must a script that closes the store's files under it: SQLite then waits in vain for locks, at each write.  So
after an error that is not one of the disk nothing more is written.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from irscope.store.store import Store


class RunStore(Store):
    """A store whose writes do not raise: what could not be written is reported and the next write is tried again.

    Parameters
    ----------
    on_failure
        Called with each error of SQLite.
    """

    def __init__(self, path: str, on_failure: Callable[[sqlite3.Error], None]) -> None:
        super().__init__(path)
        self._on_failure = on_failure
        self.broken = False

    def failed(self, error: sqlite3.Error) -> None:
        """A write has failed."""
        self.broken = self.broken or not str(error).startswith(("database or disk is full", "disk I/O error"))
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA busy_timeout = 0")  # the script does not wait twice
        self._on_failure(error)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that reports an error of the store instead of raising it."""
        if self.broken:
            yield
            return
        try:
            with super().transaction():
                yield
        except sqlite3.Error as error:
            self.failed(error)


def _forgiving(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def write(self: Any, *args: Any, **kwargs: Any) -> None:
        if self.broken:
            return
        try:
            method(self, *args, **kwargs)
        except sqlite3.Error as error:
            self.failed(error)

    return write


for _name, _method in list(vars(Store).items()):
    if _name.startswith(("put_", "set_")):
        setattr(RunStore, _name, _forgiving(_method))
