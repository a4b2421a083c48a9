"""The one way to read a file that a workspace, a store or a script names: a regular file, within bounds."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

from irscope.vocabulary.units import size

LONGEST_FILE = 32_000_000
"""The most bytes of a text that is read."""


def real_path(path: str) -> str:
    """The path without links; of a name that no file can have (one with a null byte) only the absolute one."""
    try:
        return os.fsencode(os.path.realpath(_system_name(path))).decode("utf-8", "surrogateescape")
    except ValueError:
        return os.path.abspath(path)


def name_among(names: Iterable[str], path: str) -> str:
    """The name that stands for the file of a path; the path itself if there is none.

    Python names a file by the links through which it was reached, and so does a run.
    """
    others = list(names)
    if path in others:
        return path
    real = real_path(path)
    return next((name for name in others if real_path(name) == real), path)


def is_read_only(path: str) -> bool:
    """Whether a file that exists must not be written: also one that only the superuser could write."""
    try:
        return not os.access(path, os.W_OK) or not os.stat(path).st_mode & 0o222
    except (OSError, ValueError):
        return False


def _system_name(path: str) -> str | bytes:
    """The path as the system's functions take it, also where the locale's encoding lacks its characters: a store has the
    paths of other sessions."""
    try:
        os.fsencode(path)
        return path
    except UnicodeEncodeError:
        return path.encode("utf-8")


def read_bounded(path: str, longest: int = LONGEST_FILE) -> bytes:
    """The bytes of a regular file.

    A name may lead to an endless device, or to a pipe without a writer.  So this never waits, and reads regular files only.

    Raises:
        OSError: If it cannot be read, is not a regular file, or has more bytes than ``longest``.
    """
    name = _system_name(path)
    if not stat.S_ISREG(os.stat(name).st_mode):  # before it is opened, which has effects on some devices
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # another one since then
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        data = file.read(longest + 1)
    if len(data) > longest:
        raise OSError(errno.EFBIG, f"it has more than {size(longest)}", path)
    return data
