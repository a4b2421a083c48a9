"""What the machine has, as far as a limit depends on it, and what is to wait while much is read."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import threading
from collections.abc import Iterator

_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

_reading = threading.Lock()
_readers = 0


@contextlib.contextmanager
def collecting_nothing() -> Iterator[None]:
    """For work that makes a million objects, all of them in use until its end: Python would look through them for
    unused ones, which takes as long as reading them.  Meant for a second at most."""
    global _readers
    with _reading:
        _readers += 1
        gc.disable()
    try:
        yield
    finally:
        with _reading:
            _readers -= 1
            if not _readers:
                gc.enable()


@functools.cache
def memory_bytes() -> int | None:
    """Bytes of memory that this process may think of as the machine's; a container's limit counts.

    None if it cannot be told.
    """
    known: list[int] = []
    with contextlib.suppress(AttributeError, OSError, ValueError):  # Windows has no sysconf
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUP:
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            known.append(int(file.read()))  # "max" is not a number: no limit
    return min((one for one in known if one > 0), default=None)
