"""What the machine has, as far as a limit depends on it."""

from __future__ import annotations

import contextlib
import functools
import os

_CGROUP = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def memory_bytes() -> int | None:
    """Bytes of memory that this process may think of as the machine's; a container's limit counts.

    Nothing where it cannot be told.
    """
    known: list[int] = []
    with contextlib.suppress(AttributeError, OSError, ValueError):  # Windows has no sysconf
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUP:
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            known.append(int(file.read()))  # "max" is no number: no limit
    return min((one for one in known if one > 0), default=None)
