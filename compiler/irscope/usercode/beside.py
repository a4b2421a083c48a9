"""Finished files beside a file: what it gets, and what it had, both on the disk before the file itself is touched."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys

BINARY = getattr(os, "O_BINARY", 0)

_PIECE = 1 << 20
_LONGEST_NAME = 200
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
"""What a file system says that cannot `fsync`."""
_NO_FILE_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS)


class Copy:
    """The content of another file, which may be big."""

    def __init__(self, path: str) -> None:
        self.path = path


Content = bytes | Copy
"""What a file gets."""


def beside(real: str, content: Content, mode: int = 0o666, like: str | None = None) -> tuple[str, bool]:
    """A new file in the same folder, on the disk when this returns.

    Args:
        like: The file whose owner, mode and attributes it gets; without one it has the usual ones of a new file.

    Returns:
        tuple[str, bool]
        Its path, and whether it got all of them.
    """
    path = f"{_hidden(real)}-{os.urandom(4).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY
    try:
        file = os.open(path, flags, mode if like is None else 0o600)
    except OSError as error:
        if error.errno not in _NO_FILE_BESIDE or not os.path.exists(real):
            raise
        why = f"its folder takes no backup ({error.strerror}), and without one a failure would lose what it has"
        raise OSError(error.errno, why, real) from error
    is_alike = True
    try:
        try:
            fill(file, content)
            if like is not None:  # after the content: writing takes special rights away
                is_alike = _make_alike(path, like)
            sync(file)
        finally:
            os.close(file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    return path, is_alike


def _make_alike(path: str, like: str) -> bool:
    """Gives a file the owner, the mode and the attributes of another, and returns whether it has them now.

    Access lists are among the attributes that Linux has; what other systems have in their place is not looked at.
    """
    wanted, own = os.stat(like), os.stat(path)
    try:
        if (own.st_uid, own.st_gid) != (wanted.st_uid, wanted.st_gid):
            os.chown(path, wanted.st_uid, wanted.st_gid)
        os.chmod(path, stat.S_IMODE(wanted.st_mode))
        attributes, has = _attributes(like), _attributes(path)
        if sys.platform == "linux":
            for name in has.keys() - attributes.keys():  # an access list that the folder gives to new files
                os.removexattr(path, name)
            for name, value in attributes.items() - has.items():
                os.setxattr(path, name, value)
        own = os.stat(path)  # a system may leave a part of it out, and say nothing
        return _attributes(path) == attributes and (own.st_uid, own.st_gid, own.st_mode) == (
            wanted.st_uid, wanted.st_gid, wanted.st_mode,
        )  # fmt: skip
    except OSError:
        return False


def _attributes(path: str) -> dict[str, bytes]:
    if sys.platform != "linux":
        return {}
    try:
        return {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise


def _hidden(real: str) -> str:
    """How the paths of all files begin that are put beside a file."""
    folder, name = os.path.split(real)
    if len(os.fsencode(name)) > _LONGEST_NAME:
        import hashlib  # here: a script waits until this module is imported

        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(folder, f".{name}.irscope")


def marks(real: str) -> tuple[str, str]:
    """Where the old and the new content are while a file is written in place."""
    return f"{_hidden(real)}-old", f"{_hidden(real)}-new"


def marks_of(real: str) -> list[str]:
    """Which of the two are there.

    Files of other users than this one and the file's owner do not count: anyone can put a file into a shared folder.
    """
    return [mark for mark in marks(real) if _is_trusted(mark, real)]


def _is_trusted(mark: str, real: str) -> bool:
    try:
        found, owner = os.lstat(mark), os.stat(real).st_uid
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and (not hasattr(os, "geteuid") or found.st_uid in (owner, os.geteuid()))


def fill(file: int, content: Content) -> int:
    """Writes all of the content, and returns how many bytes it has."""
    if isinstance(content, bytes):
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
        return len(content)
    with open(content.path, "rb") as source:
        return sum(fill(file, piece) for piece in iter(lambda: source.read(_PIECE), b""))


def sync(file: int) -> None:
    """Puts the content on the disk where the file system can."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def sync_folder(real: str) -> None:
    """Puts a name on the disk where that is possible; the content is there already, whatever this does."""
    with contextlib.suppress(OSError):
        folder = os.open(os.path.dirname(real), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
