"""Trials do no harm: what a trial would change outside its own process is held back, or the trial ends and says so.

The user runs a script once; irscope runs it again to prove a fix.  Where Linux lets the process have its own files and
its own network (`irscope.system.scratch`), it writes what it likes, and nobody sees it.  Elsewhere it is only watched,
and ends before it would write.  No trial talks to another machine or to another program's port.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from typing import Any

from irscope.internals import saving
from irscope.internals.hooks import Hook
from irscope.protocol import Lane, NotHeldBack
from irscope.system import landlock, scratch
from irscope.vocabulary.records import dataclass

_HELD_BACK = "held-back"
_PROGRAMS = frozenset((
    "as", "c++", "cc", "clang", "clang++", "cl.exe", "cuobjdump", "g++", "gcc", "getconf", "git", "hostname", "ld",
    "ldconfig", "lscpu", "nvcc", "nvdisasm", "nvidia-smi", "ptxas", "rocm-smi", "sysctl", "uname", "which", "xcrun",
))  # fmt: skip
"""Programs that only read, or that PyTorch compiles with; for a trial that is only watched."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_STORE_PORT = 29500
"""Where a process group of one process reaches itself, if the script does not say otherwise."""


@dataclass(frozen=True)
class Held:
    """How the outside is kept from a trial: what has to be changed in PyTorch for that, and what is not held back."""

    hooks: tuple[Hook, ...] = ()
    but: tuple[NotHeldBack, ...] = ()


def hold_back(folder: str, lane: Lane = Lane.FAST) -> Held:
    """From now on this process is a trial; it must have one thread, and what it writes below the folder stays.

    If it does not write into a scratch folder, it ends where it would write.
    """
    guard = _Guard(os.path.join(folder, _HELD_BACK))
    # A symbolic link, as macOS has one at /tmp, would hide that a path lies below.
    is_apart = scratch.enter(folder := os.path.realpath(folder))
    looks = guard.network(is_apart)
    if not is_apart:
        sys.dont_write_bytecode = True
        tempfile.tempdir = os.path.join(folder, "tmp")
        os.makedirs(tempfile.tempdir, exist_ok=True)
        if lane is Lane.DEEP:
            os.environ["TMPDIR"] = tempfile.tempdir  # of C++ compilers
        caches = [os.environ.get("TORCHINDUCTOR_CACHE_DIR"), os.environ.get("TRITON_CACHE_DIR"), "~/.triton"]
        allowed = [folder, "/dev", "/proc", *(os.path.realpath(os.path.expanduser(each)) for each in caches if each)]
        port = os.environ.get("MASTER_PORT", "")
        guard.port = int(port) if port.isdecimal() else _STORE_PORT
        version = landlock.restrict(allowed, [guard.port])
        looks |= guard.writes(allowed, version > 0) | guard.programs()

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event in looks:
            looks[event](*arguments)

    sys.addaudithook(heard)
    if is_apart:
        return Held()
    hooks = (saving.hook(guard.may_write), saving.meeting_hook(guard.may_meet), saving.process_hook(guard.may_start))
    return Held(hooks, tuple(what for what, since in _HELD_SINCE.items() if not 0 < since <= version))


_HELD_SINCE = {
    NotHeldBack.FILES: 1, NotHeldBack.TRUNCATION: 3, NotHeldBack.CONNECTIONS: 4, NotHeldBack.SOCKETS: 0,
    NotHeldBack.DATAGRAMS: 0,
}  # fmt: skip
"""The version of Landlock that holds it back; 0: none does."""


def what_was_held_back(folder: str) -> str:
    """Why a trial did not run to its end, for the user; empty if it did."""
    with (
        contextlib.suppress(OSError),
        open(os.path.join(folder, _HELD_BACK), encoding="utf-8", errors="replace") as told,
    ):
        return told.read(1000)
    return ""


_Looks = dict[str, Callable[..., None]]


class _Guard:
    """Ends the trial before it does harm; its children, too, have this."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._process, self._began = os.getpid(), time.time()
        self._allowed: tuple[str, ...] = ()
        self.port = _STORE_PORT

    def _end(self, what: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._fd, f"not run: it would {what}.".encode("utf-8", "backslashreplace"))
        os.kill(self._process, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        os._exit(1)

    # --- network ------------------------------------------------------------------------------------------------------

    def network(self, is_apart: bool) -> _Looks:
        """For connections and names of other machines."""

        def connects(any_socket: socket.socket, address: Any) -> None:
            if isinstance(address, tuple):
                if not (is_apart and _is_heard(address[1])):
                    self._end(f"connect to {address[0]}:{address[1]}")
            elif any_socket.family == getattr(socket, "AF_UNIX", None):
                name = os.fsdecode(address)
                is_abstract = name.startswith("\0")  # of the network, not of a folder
                if (is_abstract and not is_apart) or (not is_abstract and self._was_there(name)):
                    self._end(f"connect to {name.replace(chr(0), '@')}")

        def looks_up(host: Any, port: Any = None, *_: object) -> None:
            name = os.fsdecode(host or "")
            if name not in ("", "localhost", socket.gethostname()) and not _is_number(name):
                self._end(f"connect to {name}" + (f":{port}" if port else ""))

        return {
            "socket.connect": connects,
            "socket.sendto": connects,
            "socket.getaddrinfo": looks_up,
            "socket.gethostbyname": looks_up,
        }

    def may_meet(self, host: str, port: int) -> None:
        """Ends the trial unless a process group meets at the port that is allowed."""
        if port != self.port:
            self._end(f"connect to {host}:{port}")

    def _was_there(self, path: str) -> bool:
        try:
            return os.stat(path).st_ctime < self._began
        except (OSError, ValueError):
            return False

    # --- files --------------------------------------------------------------------------------------------------------

    def writes(self, allowed: Collection[str], is_kept: bool) -> _Looks:
        """For what Python writes outside of the allowed folders.  ``is_kept``: the kernel keeps databases from writing."""
        self._allowed = tuple(allowed)

        def opens(path: Any, _: object, flags: int) -> None:
            if flags & _WRITES and not isinstance(path, int):
                self._write(path)

        def removes(path: Any, folder: int = -1) -> None:
            if not isinstance(path, int) and os.path.lexists(full := _in_folder(path, folder)):
                self._write(full)

        def makes(path: Any, _: int = 0, folder: int = -1) -> None:
            if not os.path.lexists(full := _in_folder(path, folder)):
                self._write(full)

        def renames(old: Any, new: Any, old_folder: int = -1, new_folder: int = -1) -> None:
            self._write(_in_folder(old, old_folder))
            self._write(_in_folder(new, new_folder))

        def links(_: Any, new: Any, *folders: int) -> None:
            self._write(_in_folder(new, folders[-1] if folders else -1))

        def changes(path: Any, *_: object) -> None:
            if not isinstance(path, int):
                self._write(path)

        looks: _Looks = {
            "open": opens,
            "os.remove": removes,
            "os.rmdir": removes,
            "os.mkdir": makes,
            "os.rename": renames,
            "os.link": links,
            "os.symlink": links,
        }
        for name in ("chmod", "chown", "truncate", "utime", "setxattr", "removexattr"):
            looks[f"os.{name}"] = changes
        return looks if is_kept else looks | {"sqlite3.connect": self._opens_database}

    def may_write(self, path: Any) -> None:
        """Ends the trial unless a path lies in an allowed folder."""
        self._write(path)

    def _write(self, path: Any) -> None:
        full = os.path.realpath(os.fsdecode(path))
        if not any(full == folder or full.startswith(folder + os.sep) for folder in self._allowed):
            self._end(f"write {os.fsdecode(path)}")

    def _opens_database(self, path: Any) -> None:
        if path not in (":memory:", ""):
            self._write(path)

    # --- children -----------------------------------------------------------------------------------------------------

    def programs(self) -> _Looks:
        """For programs that may do more than read, but for Inductor's own processes.

        Python is one of them: the kernel keeps it from writing, but not from sending, and nobody hears its events.
        """

        def starts(program: Any, arguments: Any = (), *_: object) -> None:
            path = os.fsdecode(program)
            is_python = os.path.realpath(path) == os.path.realpath(sys.executable)
            if os.path.basename(path) not in _PROGRAMS and not (is_python and "_inductor" in str(arguments)):
                self._end(f"start {os.path.basename(path)}")

        def makes(program: Any, command: Any, *_: object) -> None:
            if program is not None:  # else it is that of `subprocess`, which was heard already
                starts(program, command)

        looks: _Looks = dict.fromkeys(("subprocess.Popen", "os.exec", "os.posix_spawn"), starts)
        looks["os.spawn"] = lambda mode, program, *_: starts(program)
        looks["_winapi.CreateProcess"] = makes
        looks["os.system"] = lambda command: starts(os.fsdecode(command).split(" ")[0])
        return looks

    def may_start(self, program: Any, arguments: Any) -> None:
        """Ends the trial unless a process of `multiprocessing` only waits for others to end, and removes what they leave."""
        if "resource_tracker" not in str(arguments):
            self._end(f"start {os.path.basename(os.fsdecode(program))}")


def _in_folder(path: Any, folder: int) -> str:
    """A path that is relative to an open folder."""
    name = os.fsdecode(path)
    return name if folder < 0 else os.path.join(os.path.realpath(f"/proc/self/fd/{folder}"), name)


def _is_number(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return False


def _is_heard(port: int) -> bool:
    """Whether a process in this network, where there are only this one and its children, listens at a port."""
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with contextlib.suppress(OSError), open(f"/proc/self/net/{table}", encoding="ascii") as lines:
            if any(line.split()[1].endswith(f":{port:04X}") for line in lines):
                return True
    return False
