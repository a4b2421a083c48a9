"""Takes from a process, and from all that it starts, the right to write outside of some folders (Linux's Landlock).

What was taken cannot be given back.  From its fourth version on Landlock also forbids TCP connections.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on all architectures
_NO_NEW_PRIVILEGES = 38  # of <linux/prctl.h>
_WRITE = 1 << 1 | sum(1 << bit for bit in range(4, 13))  # of <linux/landlock.h>: write, remove and make
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # in the second and third version
_CONNECT = 1 << 1


def version() -> int:
    """That of this system's Landlock; 0: it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE, None, ctypes.c_size_t(0), 1)))


def restrict(folders: Sequence[str], ports: Sequence[int]) -> int:
    """From now on only what is below these folders can be written, and only these TCP ports can be reached.

    Returns the version that holds this back, 0 if none does: before the third, files can still be truncated, and before
    the fourth, all TCP ports be reached.  It must be called before there is a second thread.
    """
    if not (known := version()):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    access = _WRITE | (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0)
    handled = struct.pack("QQ", access, _CONNECT) if known >= 4 else struct.pack("Q", access)
    rules = libc.syscall(_CREATE, handled, ctypes.c_size_t(len(handled)), 0)
    if rules < 0:
        return 0
    for folder in folders:
        try:
            fd = os.open(folder, os.O_PATH)
        except OSError:
            continue  # it is not there
        libc.syscall(_ADD, rules, 1, struct.pack("=Qi", access, fd), 0)
        os.close(fd)
    for port in ports if known >= 4 else ():
        libc.syscall(_ADD, rules, 2, struct.pack("QQ", _CONNECT, port), 0)
    done = libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and libc.syscall(_RESTRICT, rules, 0) == 0
    os.close(rules)
    return known if done else 0
