"""A file of the user's is replaced, or written in place where that would lose something: what stays, and what is said."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.cli.main import main
from irscope.usercode.beside import marks
from irscope.usercode.writing import WriteError, obstacle, recover, write_file, write_files

linux = pytest.mark.skipif(sys.platform != "linux", reason="what is looked at is Linux's")
OLD, NEW = b"old line\n" * 9, b"a new one\n" * 5
ACCESS = "system.posix_acl_access"
READABLE_BY_ANOTHER = bytes.fromhex(
    "02000000 01000600ffffffff 02000400d2040000 04000400ffffffff 10000400ffffffff 20000000ffffffff"
)
"""rw for the owner, r for the user 1234 and for the group, as the system keeps it."""  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    return path


def failing(monkeypatch: pytest.MonkeyPatch, name: str, when: Callable[..., bool], number: int) -> None:
    """Lets a call of the system's fail where ``when`` says so of its arguments."""
    call = getattr(os, name)

    def maybe(*args: Any, **options: Any) -> Any:
        if when(*args):
            raise OSError(number, os.strerror(number), args[0])
        return call(*args, **options)

    monkeypatch.setattr(os, name, maybe)


def leave_half(file: Path, now: bytes = NEW[:20] + OLD[20:]) -> None:
    """The file as a kill leaves it that comes while it is written in place."""
    for mark, content in zip(marks(str(file)), (OLD, NEW), strict=True):
        Path(mark).write_bytes(content)
    file.write_bytes(now)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_mode_and_symbolic_link_stay(file: Path) -> None:
    file.chmod(0o751)
    link = file.parent / "link.py"
    link.symlink_to("a.py")
    inode = file.stat().st_ino
    write_file(str(link), NEW)
    assert link.is_symlink() and file.read_bytes() == NEW and file.stat().st_mode & 0o7777 == 0o751
    assert file.stat().st_ino != inode and names(file.parent) == ["a.py", "link.py"]


def test_a_new_file_has_the_usual_mode_also_where_a_link_leads_to_nothing(tmp_path: Path) -> None:
    link = tmp_path / "link.html"
    link.symlink_to("page.html")
    before = os.umask(0o026)
    try:
        write_file(str(link), NEW)
    finally:
        os.umask(before)
    assert link.is_symlink() and (tmp_path / "page.html").read_bytes() == NEW
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o640


@linux
def test_an_access_list_stays(file: Path) -> None:
    try:
        os.setxattr(file, ACCESS, READABLE_BY_ANOTHER)
        os.setxattr(file, "user.note", b"mine")
    except OSError as error:
        pytest.skip(f"this file system has no access lists: {error}")
    inode = file.stat().st_ino
    write_file(str(file), NEW)
    assert os.getxattr(file, ACCESS) == READABLE_BY_ANOTHER and os.getxattr(file, "user.note") == b"mine"
    assert file.stat().st_ino != inode


@pytest.mark.parametrize(
    ("call", "when", "number"),
    [
        ("chmod", lambda path, mode: True, errno.EPERM),
        ("replace", lambda old, new: new.endswith("a.py"), errno.EBUSY),  # a file that is mounted by itself
        ("replace", lambda old, new: new.endswith("a.py"), errno.EPERM),  # another user's in a shared folder
    ],
)
def test_what_cannot_be_replaced_as_it_is_is_written_in_place(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str, when: Callable[..., bool], number: int
) -> None:
    file.chmod(0o640)
    inode = file.stat().st_ino
    failing(monkeypatch, call, when, number)
    for content in (NEW, OLD * 2):
        write_file(str(file), content)
        assert file.read_bytes() == content and file.stat().st_ino == inode and names(file.parent) == ["a.py"]


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="only the superuser gives files away")
def test_the_owner_stays(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(file, 1234, 4321)
    write_file(str(file), NEW)
    assert (file.stat().st_uid, file.stat().st_gid, file.read_bytes()) == (1234, 4321, NEW)
    failing(monkeypatch, "chown", lambda *_: True, errno.EPERM)  # as for anyone else
    inode = file.stat().st_ino
    write_file(str(file), OLD)
    assert (file.stat().st_uid, file.stat().st_ino, file.read_bytes()) == (1234, inode, OLD)


def test_a_folder_that_takes_no_backup_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "open", lambda path, flags, *_: bool(flags & os.O_CREAT), errno.EACCES)
    with pytest.raises(
        WriteError, match=r"its folder takes no backup \(Permission denied\).* It has its old content\."
    ):
        write_file(str(file), NEW)
    assert file.read_bytes() == OLD
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != file.parent)
    assert obstacle(str(file)) == f"its folder is read-only: {file.parent}. Name another file."


def test_a_read_only_file_is_not_replaced(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write it all the same
    with pytest.raises(WriteError, match="cannot be written: Permission denied"):
        write_file(str(file), NEW)
    assert file.read_bytes() == OLD


@linux
def test_devices_pipes_and_descriptors_are_written_straight(tmp_path: Path) -> None:
    write_file("/dev/null", NEW)
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    write_file(str(fifo), NEW)
    assert os.read(reader, 1000) == NEW and names(tmp_path) == ["pipe"]
    os.close(reader)
    code = "from irscope.usercode.writing import write_file; print('first'); write_file('/dev/stdout', b'data\\n'); print(1)"
    for out in (tmp_path / "out.txt", None):
        with open(out or os.devnull, "wb") as stream:
            done = subprocess.run([sys.executable, "-c", code], stdout=stream if out else subprocess.PIPE, check=True)
        assert (out.read_bytes() if out else done.stdout) == b"first\ndata\n1\n"
    assert names(tmp_path) == ["out.txt", "pipe"]


def test_a_full_disk_says_what_is_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "write", lambda *_: True, errno.ENOSPC)
    free = "No space left on device. {} Free some space there and run the command again."
    with pytest.raises(WriteError) as one:
        write_file(str(file), NEW)
    assert str(one.value) == f"{file} cannot be written: {free.format('It has its old content.')}"
    new = file.parent / "new.py"
    with pytest.raises(WriteError) as none:
        write_file(str(new), NEW)
    assert str(none.value) == f"{new} cannot be written: {free.format('It was not created.')}"
    with pytest.raises(WriteError) as both:
        write_files({str(file): NEW, str(new): NEW})
    assert str(both.value) == f"{file} cannot be written: {free.format('None of the 2 files is changed.')}"
    assert names(file.parent) == ["a.py"]


def test_a_file_that_cannot_be_set_back_is_named_with_its_backup(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = file.parent / "b.py"
    other.write_bytes(OLD)
    done: list[str] = []

    def fails(old: str, new: str) -> bool:
        done.append(new)
        return len(done) > 1

    failing(monkeypatch, "replace", fails, errno.EIO)
    with pytest.raises(WriteError) as error:
        write_files({str(file): NEW, str(other): NEW})
    backup = next(path for path in file.parent.iterdir() if path.name.startswith(".a.py"))
    assert str(error.value) == (
        f"{other} cannot be written: Input/output error. {file} could not be set back: its old content is in {backup}."
    )
    assert (file.read_bytes(), other.read_bytes(), backup.read_bytes()) == (NEW, OLD, OLD)


def test_after_a_kill_the_next_command_restores_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_half(file)
    monkeypatch.setattr("irscope.cli.running.run", lambda options: 0)
    assert main(["run", str(file)]) == 0
    assert file.read_bytes() == OLD and names(file.parent) == ["a.py"]
    assert capsys.readouterr().err == (
        f"irscope: {file} was half-written when a command was killed. Its content from before is restored.\n"
    )
    assert recover(str(file)) == ""


@pytest.mark.parametrize("now", [OLD, NEW])
def test_a_file_that_a_kill_left_whole_stays(file: Path, monkeypatch: pytest.MonkeyPatch, now: bytes) -> None:
    leave_half(file, now)
    assert recover(str(file)) == ""
    assert file.read_bytes() == now and names(file.parent) == ["a.py"]


def test_what_the_user_wrote_after_the_kill_is_never_lost(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_half(file, b"what I wrote since\n")
    backup = marks(str(file))[0]
    for do in (lambda: recover(str(file)), lambda: write_file(str(file), NEW)):
        with pytest.raises(WriteError) as error:
            do()
        assert str(error.value) == (
            f"{file} was being written when a command was killed, and was changed after that. Its content from before is "
            f"in {backup}. Take from it what you need, delete it, and run the command again."
        )
    assert file.read_bytes() == b"what I wrote since\n" and Path(backup).read_bytes() == OLD
    os.unlink(backup)
    write_file(str(file), NEW)
    assert file.read_bytes() == NEW and names(file.parent) == ["a.py"]


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="only the superuser gives files away")
def test_another_users_backup_does_not_count(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_half(file)
    half = file.read_bytes()
    for mark in marks(str(file)):
        os.chown(mark, 1234, 1234)
    assert recover(str(file)) == "" and file.read_bytes() == half


@linux
def test_two_commands_do_not_write_one_file_in_place(file: Path) -> None:
    import fcntl

    os.link(file, file.parent / "b.py")
    with open(file, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(WriteError, match=r"another command writes it\. It has its old content\."):
            write_file(str(file), NEW)
    assert file.read_bytes() == OLD and names(file.parent) == ["a.py", "b.py"]


def test_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".html")
    for content in (OLD, NEW):
        write_file(str(path), content)
    assert path.read_bytes() == NEW and names(tmp_path) == [path.name]
