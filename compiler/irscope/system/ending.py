"""Ends processes: a whole tree of them at once, but lets processes that clean up after themselves do so.

Compilers leave temporary files, and Python's resource tracker leaves shared memory and semaphores, if they are killed.
Both notice by themselves, within milliseconds, that those whom they work for are gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Collection, Sequence

from irscope.system.processes import children_of, is_running, members_of_group

GRACE_SECONDS = 1.0
"""For those that clean up.  A script can take such a name, and has gained no more than this."""
_LOOK_SECONDS = 0.01
_COMPILER = re.compile(rb"(.*-)?(g\+\+|gcc|c\+\+|cc|clang|clang\+\+)(-\d+)?")
_TRACKER = b"multiprocessing.resource_tracker"


def end_tree(root: int) -> None:
    """Kills a process of this user and every process below it.  Its caller waits for it where it is a child."""
    _end([root])


def end_group(leader: int) -> None:
    """Kills a process, every process below it and what is left of its process group.  They may be gone."""
    if not hasattr(os, "killpg"):
        _signal(leader, signal.SIGTERM)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, 0)
        _end(members_of_group(leader))
        os.killpg(leader, signal.SIGKILL)


def end_all_below(but: Collection[int] = ()) -> None:
    """Kills every process below this one and waits until it is gone, but for these children with what is below them."""
    while below := [pid for pid in children_of(os.getpid()) if pid not in but]:
        _end(below)
        for pid in below:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def wait_for_the_end(pids: Collection[int]) -> None:
    """Waits until none of them runs, at most for the time of grace."""
    deadline = time.monotonic() + GRACE_SECONDS
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)


def _end(roots: Sequence[int]) -> None:
    spared: list[int] = []
    for pid in roots:
        _kill_tree(pid, spared)
    wait_for_the_end(spared)
    for pid in filter(is_running, spared):
        _kill_tree(pid, None)


def _kill_tree(pid: int, spared: list[int] | None) -> None:
    """A process is stopped before its children are looked for, so that it makes no new ones meanwhile."""
    spare = spared is not None and _cleans_up(pid)
    if spare and spared is not None:
        spared.append(pid)
    else:
        _signal(pid, signal.SIGSTOP)
    for child in children_of(pid):
        _kill_tree(child, spared)
    if not spare:
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _cleans_up(pid: int) -> bool:
    """Whether a process is one that removes what it has made when its parent or its children are gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).split(b"\0")
    except OSError:
        return False
    return _COMPILER.fullmatch(os.path.basename(words[0])) is not None or any(_TRACKER in word for word in words[1:])
