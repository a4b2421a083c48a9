"""The one way to write a file that a user named: afterwards it has its old content or the new one, and never a part.

A file is replaced by a finished one from the same folder.  Where that would lose a hard link, the owner, the mode or an
access list, or where the system refuses it, the file is written in place, between two finished files beside it: a
``.NAME.irscope-old`` with what it had and a ``.NAME.irscope-new`` with what it gets.  `recover` knows from the two, after
a kill, what was there.  So a folder that takes no file keeps a file in it from being written.  Devices, pipes and names
of descriptors (``/dev/stdout``) are written straight.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping

from irscope.usercode.beside import BINARY, Content, Copy, beside, fill, marks, marks_of, sync, sync_folder

_IN_PLACE_ONLY = (errno.EBUSY, errno.EPERM, errno.EACCES, errno.EXDEV)
"""Why a file that can be written cannot be replaced: it is mounted by itself, or another user's in a shared folder."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class WriteError(OSError):
    """A file could not be written.  As a text it is a sentence: why, what the files have now, and what to do."""

    def __init__(self, path: str, sentence: str, number: int | None = None) -> None:
        super().__init__(number, sentence, path)
        self._sentence = sentence

    def __str__(self) -> str:
        return self._sentence


def write_file(path: str, content: Content) -> None:
    """Writes one file.  Raises WriteError."""
    write_files({path: content})


def write_files(contents: Mapping[str, Content]) -> None:
    """Writes files that belong together: all of them, or none.

    After a kill each of them has its old content or the new one; one that is written in place gets its old content back
    from `recover`, which also runs before each write.

    Raises:
        WriteError: All files have their old content then, and those that are new are gone; the error names an exception
            to this.
    """
    writes = [_Write(path, content) for path, content in contents.items()]
    current = ""
    try:
        for write in writes:
            current = write.path
            write.prepare(keeps_old=len(writes) > 1)
        for write in writes:
            current = write.path
            write.commit()
    except BaseException as error:
        changed = [write for write in reversed(writes) if not write.undone()]
        if not isinstance(error, (OSError, ValueError)):  # ValueError: a name that no file can have
            raise
        raise WriteError(current, _sentence(current, error, writes, changed), getattr(error, "errno", None)) from error
    finally:
        for write in writes:
            write.discard()


def obstacle(path: str) -> str:
    """Why a file cannot be written, as far as that can be seen without writing, and what to do; empty if it can."""
    if os.path.isdir(path):
        return "it is a folder. Name a file."
    if os.path.exists(path) and not os.access(path, os.W_OK):
        return "it is read-only. Name another file."
    with contextlib.suppress(OSError):
        if _goes_straight(path):
            return ""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        return f"folder not found: {folder}. Create it first."
    return "" if os.access(folder, os.W_OK) else f"its folder is read-only: {folder}. Name another file."


def recover(path: str) -> str:
    """Gives a file that a killed command left half-written its old content.

    Returns:
        str
        What was done, in a sentence; empty if nothing had to be done.

    Raises:
        WriteError: If the file has been changed since: nothing is done then.
        OSError: If it cannot be read or written.
    """
    real = os.path.realpath(path)
    left = marks_of(real)
    if not left:
        return ""
    said = ""
    with _alone(real):
        if len(left) == 2:
            now, old, new = map(_read, (real, *left))
            if now not in (old, new):
                if not _is_between(now, old, new):
                    raise WriteError(
                        path,
                        f"{path} was being written when a command was killed, and was changed after that. Its content "
                        f"from before is in {left[0]}. Take from it what you need, delete it, and run the command again.",
                    )
                _overwrite(real, Copy(left[0]))
                said = f"{path} was half-written when a command was killed. Its content from before is restored."
        for mark in reversed(left):
            os.unlink(mark)
    return said


class _Write:
    """The way of one file from the old content to the new one."""

    def __init__(self, path: str, content: Content) -> None:
        self.path, self.content = path, content
        self.old = ""
        """The file with the content from before."""
        self.is_new: bool | None = None
        """None: it is a device, a pipe or a descriptor, or this is not known."""
        self._real, self._new = "", ""
        self._in_place = False
        self._is_begun = False
        self._keeps_files = False
        self._alone = contextlib.ExitStack()

    def prepare(self, keeps_old: bool) -> None:
        """Does all that can fail and does not touch the file."""
        if _goes_straight(self.path):
            return
        self._real = os.path.realpath(self.path)
        self.is_new = not os.path.lexists(self._real)
        if self.is_new:
            self._new, _ = beside(self._real, self.content)
            return
        if not os.access(self._real, os.W_OK):  # a file is replaced without a look at its own permissions
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.path)
        recover(self._real)
        self._new, is_alike = beside(self._real, self.content, like=self._real)
        self._in_place = not is_alike or os.stat(self._real).st_nlink > 1
        if keeps_old or self._in_place:
            self._keep_old()

    def commit(self) -> None:
        """Writes the file."""
        if self.is_new is None:
            _write_straight(self.path, self.content)
        elif self._in_place:
            self._write_in_place()
        else:
            try:
                os.replace(self._new, self._real)
            except OSError as error:
                if self.is_new or error.errno not in _IN_PLACE_ONLY:
                    raise
                self._in_place = True
                self._keep_old()
                self._write_in_place()
                return
            self._is_begun = True
            sync_folder(self._real)

    def undone(self) -> bool:
        """Gives the file its old content back; False if that cannot be done."""
        if not self._is_begun:
            return True
        try:
            if self.is_new:
                os.unlink(self._real)
            elif self._in_place:
                _overwrite(self._real, Copy(self.old))
            else:
                os.replace(self.old, self._real)
            sync_folder(self._real)
        except OSError:
            self._keeps_files = True
            return False
        return True

    def discard(self) -> None:
        """Removes what is beside the file: first what `recover` looks for."""
        for path in (self._new, self.old):
            if path and not self._keeps_files:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        self._alone.close()

    def _keep_old(self) -> None:
        if not self.old:
            like = None if self._in_place else self._real
            self.old, _ = beside(self._real, Copy(self._real), 0o600, like)

    def _write_in_place(self) -> None:
        self._alone.enter_context(_alone(self._real))
        old, new = marks(self._real)
        os.replace(self.old, old)
        self.old = old
        os.replace(self._new, new)
        self._new = new
        sync_folder(self._real)
        self._is_begun = True
        _overwrite(self._real, Copy(new))


def _sentence(current: str, error: OSError | ValueError, writes: list[_Write], changed: list[_Write]) -> str:
    is_told = isinstance(error, WriteError)
    reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
    why = str(error) if is_told else f"{current} cannot be written: {reason}."
    state = " ".join(
        f"{write.path} could not be removed again."
        if write.is_new
        else f"{write.path} could not be set back: its old content is in {write.old}."
        for write in changed
    )
    if not changed and len(writes) > 1:
        state = f"None of the {len(writes)} files is changed."
    elif not changed and not is_told and writes[0].is_new is not None:
        state = "It was not created." if writes[0].is_new else "It has its old content."
    step = "Free some space there and run the command again." if getattr(error, "errno", None) in _FULL else ""
    return " ".join(part for part in (why, state, step) if part)


def _is_between(now: bytes, old: bytes, new: bytes) -> bool:
    """Whether each byte is the old or the new one: so much of the new content, in any order, may be on the disk."""
    shortest, longest = sorted((len(old), len(new)))
    return shortest <= len(now) <= longest and all(
        byte in pair for byte, pair in zip(now, itertools.zip_longest(old, new), strict=False)
    )


# --- writing ----------------------------------------------------------------------------------------------------------


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _overwrite(real: str, content: Copy) -> None:
    """Writes in place: the old content is not cut off before the new one is there."""
    file = os.open(real, os.O_WRONLY | BINARY)
    try:
        os.ftruncate(file, fill(file, content))
        sync(file)
    finally:
        os.close(file)


@contextlib.contextmanager
def _alone(real: str) -> Iterator[None]:
    """Keeps other processes of irscope from writing the same file in place; the end of this one lets them."""
    file = os.open(real, os.O_RDWR | BINARY)
    try:
        if sys.platform != "win32":
            import fcntl  # here: Windows has no such module

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OSError(error.errno, "another command writes it", real) from error
            except OSError:  # a file system without locks
                pass
        yield
    finally:
        os.close(file)


# --- devices, pipes and descriptors ------------------------------------------------------------------------------------------


def _goes_straight(path: str) -> bool:
    """Whether a name leads to a device, a pipe or a descriptor, which no other file can take the place of.

    Raises OSError if the system cannot follow the name.
    """
    if _descriptor(path) is not None:
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _write_straight(path: str, content: Content) -> None:
    own = _descriptor(path)
    if own is not None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what was printed comes first
        fill(own, content)
        return
    file = os.open(path, os.O_WRONLY | BINARY)
    try:
        fill(file, content)
    finally:
        os.close(file)


def _descriptor(path: str) -> int | None:
    """The descriptor of this process that a name stands for: ``/dev/stdout``, ``/dev/fd/3``."""
    for _ in range(8):  # links
        folder, name = os.path.split(path)
        if name.isdecimal() and re.fullmatch(rf"/dev/fd|/proc/{os.getpid()}/fd", os.path.realpath(folder)):
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(path))
        except OSError:
            return None
    return None
