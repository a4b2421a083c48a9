"""A fork made ahead of its run, with the pages that a run writes to already its own.

To fork a process of this size takes some ten milliseconds, and the first compile in a fork twice that for copying
pages: Python writes to an object's page when it only counts a reference to it.  Neither depends on the script.  So
between two runs a spare fork waits, and what it will write to was copied while no run waited for it.

Which pages these are a fork finds out that compiles something small (`warmup.py`) and then reads what the kernel says
of its own pages (``/proc/self/pagemap``: bit 63 is *present*, bit 56 *mapped exclusively*).  Addresses are the same in
all forks.
"""

from __future__ import annotations

import array
import contextlib
import os
import re
import signal
import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irscope.system.last_words import LastWords, share
from irscope.system.warden import end_with_parent
from irscope.worker.errand import named
from irscope.worker.warmup import rehearse
from irscope.worker.wire import receive, send

SPARE = "irscope spare"
"""What `ps` calls this fork."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PRESENT, _EXCLUSIVE = 1 << 63, 1 << 56
_GAP = 2
"""Runs of pages that are at most this many pages apart are taken for one: asking costs more than copying these."""
_READ, _WRITE = 22, 23
"""``MADV_POPULATE_READ`` and ``MADV_POPULATE_WRITE``, of Linux 5.14; older ones reject them, which does no harm."""
_RANGE = struct.Struct("=BQQ")
Range = tuple[int, int, int]
"""Advice, address and length in bytes."""


class Spare:
    """At most one fork that waits for a run."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.words: LastWords | None = None
        self._connection: socket.socket | None = None

    def make(self, let_go: Callable[[], None], pages: Iterable[Range]) -> tuple[dict[str, Any], list[int]] | None:
        """Forks.  Returns None in the parent; in the fork, once it gets one, its request with the descriptors.

        Args:
            let_go: Closes, in the fork, what belongs to the parent.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError:
            return None
        words = share()
        pid = os.fork()
        if pid:
            theirs.close()
            self.words = words
            self.pid, self._connection = pid, ours
            return None
        ours.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        end_with_parent()
        let_go()
        with contextlib.suppress(Exception):  # no such call here: the pages are copied when they are written to
            _populate(pages)
        with named(SPARE):
            received = receive(theirs)
        theirs.close()
        if received is None:
            os._exit(0)
        return received

    def take(self, message: dict[str, Any], fds: Sequence[int]) -> int | None:
        """Gives it a run; its process id, or None if there is none (any more)."""
        pid, connection = self.pid, self._connection
        self.forget()
        if pid is None or connection is None:
            return None
        with connection:
            try:
                send(connection, message, fds)
            except OSError:
                return None
        return pid

    def forget(self) -> None:
        """It has ended, or belongs to another process of ours."""
        self.pid = self._connection = None

    def close(self) -> None:
        """Ends it; in a fork of ours, only closes the descriptor."""
        if self._connection is not None:
            self._connection.close()
        self.forget()


def pages_of_a_compile() -> bytes:
    """Compiles something and tells which pages that took; for a process that does nothing else."""
    areas = _areas()
    rehearse()
    return b"".join(_RANGE.pack(*one) for one in _touched(areas))


def pages_told(told: bytes) -> list[Range]:
    """What `pages_of_a_compile` told; a part of it where it did not come to its end."""
    whole = len(told) - len(told) % _RANGE.size
    return list(_RANGE.iter_unpack(told[:whole]))


def _areas() -> list[tuple[int, int, int]]:
    """The mappings of this process that are worth a look: advice, start and end."""
    areas = []
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r[w-][x-])p \S+ \S+ \S+\s*(\S*)", line)
            if match and not match[4].startswith(("[v", "[stack")):
                areas.append((_WRITE if match[3][1] == "w" else _READ, int(match[1], 16), int(match[2], 16)))
    return areas


def _touched(areas: Iterable[tuple[int, int, int]]) -> list[Range]:
    """The runs of pages of these mappings that are this process's own now, or, if it only reads, present."""
    found: list[Range] = []
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        for advice, start, end in areas:
            entries = array.array("Q")
            entries.frombytes(os.pread(file.fileno(), (end - start) // _PAGE * entries.itemsize, start // _PAGE * 8))
            wanted = _PRESENT | _EXCLUSIVE if advice == _WRITE else _PRESENT
            first = last = -1
            for page, entry in enumerate(entries):
                if entry & wanted != wanted:
                    continue
                if first >= 0 and page - last > _GAP:
                    found.append((advice, start + first * _PAGE, (last - first + 1) * _PAGE))
                    first = -1
                first, last = (page if first < 0 else first), page
            if first >= 0:
                found.append((advice, start + first * _PAGE, (last - first + 1) * _PAGE))
    return found


def _populate(pages: Iterable[Range]) -> None:
    import ctypes

    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for advice, start, length in pages:
        advise(start, length, advice)
