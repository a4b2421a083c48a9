"""Gives a process its own view of the files and of the network, so that it changes nothing on the machine (Linux).

In a mount namespace of its own, every folder is covered with an overlay: what the process and its children write,
rename or remove is kept in a scratch folder, and they see it there.  What cannot be covered can only be read.  Its
network namespace has a loopback interface, which only they see, and nothing else.

Where this is not the superuser's process it needs a user namespace, which some systems and most containers refuse.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import re
import shutil
import stat
import struct
import sys
from collections.abc import Iterator

_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000  # of <linux/sched.h>
_BIND, _RECURSIVE, _PRIVATE = 1 << 12, 1 << 14, 1 << 18  # of <linux/mount.h>
_MOUNT_SETATTR, _READ_ONLY = 442, 1
_SET_INTERFACE_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41  # of <linux/sockios.h>, <linux/if.h>
_SYSTEM = ("/proc", "/sys", "/dev")
_READ_ONLY_FOLDERS = ("/boot", "/etc", "/usr")
"""No script writes there; each overlay takes time.  The same holds for folders that are empty."""
_SHARED_MEMORY = "/dev/shm"
_MOST_LAYERS = 256
_LAYERS = "layers"
_WITHOUT_RIGHTS = ("work", "work/incompat", "work/incompat/volatile")
"""What the kernel makes in the working folder of an overlay, so that only the superuser can remove it."""


def enter(folder: str) -> bool:
    """From now on what this process writes goes into a folder, but for what it writes below that folder by its name.

    False if that is not possible here; the process then sees what it saw before.  It must have one thread only.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        _enter(folder)
    except (OSError, AttributeError, ValueError):
        return False
    return True


def leave(folder: str) -> None:
    """Removes what `enter` has put into a folder; the processes must have ended."""
    layers = os.path.join(folder, _LAYERS)
    with contextlib.suppress(OSError):
        working = [name for name in os.listdir(layers) if name.startswith("work")]
        for name, part in itertools.product(working, _WITHOUT_RIGHTS):
            with contextlib.suppress(OSError):
                os.chmod(os.path.join(layers, name, part), 0o700)
        shutil.rmtree(layers, ignore_errors=True)


def _enter(folder: str) -> None:
    user, group, cwd = os.geteuid(), os.getegid(), os.getcwd()
    is_superuser = _is_done("unshare", _NEW_MOUNTS)
    if not is_superuser:
        _do("unshare", _NEW_USER | _NEW_MOUNTS)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _mount("none", "/", flags=_RECURSIVE | _PRIVATE)
    _cover(folder, "redirect_dir=on" if is_superuser else "userxattr")
    _do("unshare", _NEW_NETWORK)
    _start_loopback()
    if not is_superuser:  # in its user namespace it may do everything, and a file that it must not read would be read
        _do("capset", struct.pack("Ii", 0x20080522, 0), bytes(24))
    os.chdir(cwd)


def _cover(folder: str, option: str) -> None:
    mounts = dict(_mounts())
    leave(folder)  # another process may have begun there, and turned out to be unfit
    kept = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    layers = os.path.join(folder, _LAYERS)
    os.mkdir(layers, 0o700)
    parts = [*_folders("/", mounts)]
    folders = [*itertools.islice(filter(os.path.isdir, parts), _MOST_LAYERS)]
    for in_memory in (False, True):  # in a container the file system of temporary files is itself an overlay
        if in_memory:
            _mount("tmpfs", layers, "tmpfs")
        in_layers = os.open(layers, os.O_PATH | os.O_DIRECTORY)
        opened = f"/proc/self/fd/{in_layers}"
        if covered := {path for at, path in enumerate(folders) if _overlaid(path, opened, at, option)}:
            break
        os.close(in_layers)
    else:
        raise OSError("no folder can be covered")
    if _SHARED_MEMORY in mounts:
        os.mkdir(memory := f"{opened}/memory")
        _mount("tmpfs", memory, "tmpfs")
        if not _overlaid(_SHARED_MEMORY, memory, 0, option):
            _mount("tmpfs", _SHARED_MEMORY, "tmpfs")
    for path in (path for path in parts if not os.path.isdir(path)):
        _mount("/dev/null", path, flags=_BIND)
    _mount(f"/proc/self/fd/{kept}", folder, flags=_BIND)
    for path, is_writable in mounts.items():
        if is_writable and path not in covered and not _is_system(path):
            _forbid_writing(path)
    os.close(kept)
    os.close(in_layers)


def _forbid_writing(path: str) -> None:
    try:
        _do("syscall", _MOUNT_SETATTR, -100, os.fsencode(path), 0, struct.pack("4Q", _READ_ONLY, 0, 0, 0), 32)
    except OSError as error:
        if path == "/" or error.errno not in (errno.EINVAL, errno.ENOENT):  # else another mount hides it
            raise


def _overlaid(path: str, layers: str, at: int, option: str) -> bool:
    """Covers a folder; false if its file system, or that of the layers, does not allow it."""
    upper, work = f"{layers}/upper{at}", f"{layers}/work{at}"
    os.mkdir(upper)
    os.mkdir(work)
    shutil.copystat(path, upper)  # the root of the overlay has the rights of this folder
    lower = os.open(path, os.O_PATH | os.O_DIRECTORY)
    options = f"lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work},{option},volatile"
    try:
        _mount("overlay", path, "overlay", options=options)
    except OSError:
        return False
    finally:
        os.close(lower)
    return True


def _folders(path: str, mounts: dict[str, bool], is_writable: bool = True) -> Iterator[str]:
    """The highest folders from a path on that have no mount below them; a layer of an overlay must not have any.

    And the sockets of other programs that are in none of them: in an overlay nobody listens at them.
    """
    is_writable = mounts.get(path, is_writable)
    if _is_system(path) or path in _READ_ONLY_FOLDERS:
        return
    has_mounts = any(mount.startswith(path.rstrip("/") + "/") for mount in mounts)
    with contextlib.suppress(PermissionError), os.scandir(path) as entries:
        if has_mounts:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    yield from _folders(entry.path, mounts, is_writable)
                elif stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                    yield entry.path
        elif is_writable and any(entries):
            yield path


def _is_system(path: str) -> bool:
    return path.startswith(tuple(f"{folder}/" for folder in _SYSTEM)) or path in _SYSTEM


def _mounts() -> Iterator[tuple[str, bool]]:
    """Where something is mounted, and whether it can be written; what is mounted last at a place counts."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split()
            path = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
            yield path, "ro" not in fields[5].split(",")


def _start_loopback() -> None:
    import fcntl  # here: not every system has it
    import socket

    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_INTERFACE_FLAGS, struct.pack("16sH22x", b"lo", _UP_AND_RUNNING))


def _mount(source: str, path: str, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, path, kind, options)]
    _do("mount", *encoded[:3], ctypes.c_ulong(flags), encoded[3])


def _is_done(function: str, *arguments: object) -> bool:
    return bool(getattr(ctypes.CDLL(None, use_errno=True), function)(*arguments) == 0)


def _do(function: str, *arguments: object) -> None:
    """A function of the C library.  Raises OSError."""
    if not _is_done(function, *arguments):
        raise OSError(ctypes.get_errno(), f"{function} failed: {os.strerror(ctypes.get_errno())}")
