"""The one way to read a file that a workspace, a store or a script names: a regular file, within bounds."""

from __future__ import annotations

import errno
import os
import stat

from irscope.vocabulary.units import size

LONGEST_FILE = 32_000_000
"""The most bytes of a text that is read."""


def real_path(path: str) -> str:
    """The path without links; of a name that this system cannot have (a stored one, with characters that the locale's
    encoding lacks) only the absolute one."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return os.path.abspath(path)


def read_bounded(path: str, longest: int = LONGEST_FILE) -> bytes:
    """The bytes of a regular file.

    A name may lead to an endless device, or to a pipe without a writer.  So this never waits, and reads regular files only.

    Raises
    ------
    OSError
        If it cannot be read, is not a regular file, or has more bytes than ``longest``.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # before it is opened, which has effects on some devices
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # another one since then
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        data = file.read(longest + 1)
    if len(data) > longest:
        raise OSError(errno.EFBIG, f"it has more than {size(longest)}", path)
    return data
