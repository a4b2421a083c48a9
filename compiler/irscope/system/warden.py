"""The warden: a small parent process that ends everything that a run has started.

Linux gives the orphans below a *child subreaper* to it, so no process of the run gets away, not even a daemon that
left the process group and whose parent is gone.  The warden ends them all when the script's process has ended, when
the driver asks (SIGTERM), and when the driver itself is gone, however it was killed: then no process
holds the other end of the message pipe any more.  It ends as the script's process ended.

A run in a fork of the worker has the worker in this place.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys

from irscope.system.ending import end_all_below, end_tree
from irscope.system.last_words import Ending, LastWords, encoded, share
from irscope.system.processes import children_of, is_running

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
_LOOK_SECONDS = 0.5


def part(messages: int, status: int | None = None) -> None:
    """Returns in a child, which is to run the script; the process that called stays behind as its warden.

    Args:
        messages: The message pipe, whose other end the driver holds.
        status: A descriptor into which the warden writes how the process ended (`irscope.system.last_words`); None:
            nobody asks.

    Where this is not Linux it returns in the process itself.
    """
    told = () if status is None else (status,)
    if not adopt_orphans():
        for fd in told:
            os.close(fd)
        return
    # Signals wake the warden through a pipe; the child gets back what was.
    wake, awake = os.pipe()
    for fd in (wake, awake):
        os.set_blocking(fd, False)
    asked: list[int] = []
    before = {name: signal.signal(name, lambda number, _: asked.append(number)) for name in _HEARD}
    signal.set_wakeup_fd(awake, warn_on_full_buffer=False)
    words = share()
    pid = os.fork()
    if pid == 0:
        for fd in told:
            os.close(fd)
        signal.set_wakeup_fd(-1)
        for name, handler in before.items():
            signal.signal(name, handler)
        os.close(wake)
        os.close(awake)
        os.setsid()
        end_with_parent()
        return
    _leave_alone(messages, *told, wake, awake)
    ended, ending = _keep(pid, messages, wake, asked, words)
    with contextlib.suppress(OSError):  # the driver is gone
        for fd in told:
            os.write(fd, encoded(ending))
    _end_as(ended)


_HEARD = (signal.SIGCHLD, signal.SIGTERM) if hasattr(signal, "SIGCHLD") else ()


def adopt_orphans() -> bool:
    """Makes this process the parent of every orphan below it; false if the system cannot do that."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """From now on this process is killed when its parent dies (the thread of it that forked)."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def _leave_alone(*fds: int) -> None:
    """Gives the script's files free, so that a pipe of its ends when the script ends."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    highest = max(fds)
    for fd in range(3, highest):
        if fd not in fds:
            with contextlib.suppress(OSError):
                os.close(fd)
    os.closerange(highest + 1, 1024)


def _keep(pid: int, messages: int, wake: int, asked: list[int], words: LastWords) -> tuple[int, Ending]:
    """Waits for the script's process; returns its wait status and how it ended.  Ends it if the driver is gone."""
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    poll.register(messages, 0)  # an error is always told: the driver's end is closed
    while True:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            left = sum(is_running(child) for child in children_of(os.getpid()))
            ending = words.ending_of(pid, left)
            _, status = os.waitpid(pid, 0)
            end_all_below()
            return status, ending
        if signal.SIGTERM in asked or any(fd == messages for fd, _ in poll.poll(_LOOK_SECONDS * 1000)):
            end_tree(pid)
            _, status = os.waitpid(pid, 0)
            end_all_below()
            return status, Ending()
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
        _reap_others(pid)


def _reap_others(pid: int) -> None:
    """Adopted processes that have ended; the script's own is left to `_keep`."""
    for child in children_of(os.getpid()):
        if child != pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)


def _end_as(status: int) -> None:
    """Ends this process with the same exit code, or by the same signal."""
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the script's process has left a core file if it should
    number = os.WTERMSIG(status)
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # a signal that ends no process by default
