"""Keeps irscope's own files away from the numbers that a script's files get.

The script's first file is 3, as without irscope; and a script that closes every descriptor it knows and opens its own
in their place cannot get ours by chance.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

_FIRST = 200


def moved_up(fd: int) -> int:
    """The same open file under a number that no script uses by chance; the old number is free again."""
    try:
        import fcntl

        new = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST)
    except (ImportError, OSError):  # Windows; or the process may not have so many
        return fd
    os.close(fd)
    return new


def identity(fd: int) -> tuple[int, int] | None:
    """Which file a descriptor is open for; None for a closed one."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """What programs print when they are called again is not the script's output."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    kept = [(fd, os.dup(fd)) for fd in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for fd, _ in kept:
            os.dup2(nowhere, fd)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        for fd, copy in kept:
            os.dup2(copy, fd)
            os.close(copy)
        os.close(nowhere)
