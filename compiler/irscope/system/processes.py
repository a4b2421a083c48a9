"""What the system says about a run's processes: who they are and how much memory they hold.  Linux only."""

from __future__ import annotations

import contextlib
import os

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_FORKED_ONLY = 0x40
"""``PF_FORKNOEXEC`` of <linux/sched.h>: the process was forked and has executed no program since."""


def can_measure() -> bool:
    """Whether this system tells it."""
    return os.path.exists("/proc/self/statm") and os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended.  A zombie has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:
        return False


def program_of(pid: int) -> str:
    """The program that a fork of this process has put in its place; empty if it has not, or it is gone.

    The program of a process that has ended is known until it is waited for.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            head, _, tail = file.read().rpartition(b")")
    except OSError:
        return ""
    return "" if int(tail.split()[6]) & _FORKED_ONLY else head.partition(b"(")[2].decode("utf-8", "replace")


def tree(pid: int) -> list[int]:
    """A process and all its descendants, parents before children; empty if it is gone."""
    found = [pid] if os.path.exists(f"/proc/{pid}") else []
    for parent in found:  # grows while it is gone through
        found += children_of(parent)
    return found


def children_of(pid: int) -> list[int]:
    """Its children, in the order of its threads; empty if it is gone or the system does not report them."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
    return children


def members_of_group(group: int) -> list[int]:
    """The processes of a process group; empty if the system does not report them."""
    members = []
    with contextlib.suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # After the name, which can hold anything: state, parent, group.
                if int(file.read().rpartition(b")")[2].split()[2]) == group:
                    members.append(int(name))
    return members


def resident_bytes(pids: list[int]) -> int:
    """The sum of what each process has in memory (RSS): pages that several share count several times."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
            total += int(file.read().split()[1]) * _PAGE
    return total


def processor_seconds(root: int) -> float | None:
    """What a process and all that it has started have computed; None if the system does not report it.

    For processes that have ended, what their parents waited for counts.
    """
    if not can_measure():
        return None
    ticks = 0
    for pid in tree(root):
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/stat", "rb") as file:
            # The 14th field to the 17th: in user mode and in the kernel, its own and its children's.  The name, which can
            # hold anything, is the second.
            ticks += sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def proportional_bytes(pids: list[int]) -> int:
    """What the processes hold together (PSS): a page that n processes share counts 1/n for each.

    The kernel walks the page tables for it, which takes milliseconds for a large process.
    """
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    total += int(line.split()[1]) * 1024
                    break
    return total
