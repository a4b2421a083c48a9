"""Files that a workspace names: devices, pipes, folders and files without measure are not read, and nothing waits."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.findings.control import read_baseline
from irscope.usercode.reading import LONGEST_FILE, read_bounded
from irscope.usercode.source import read_source
from irscope_server.base.texts import text_on_disk
from irscope_server.running.launch import read_env_file, read_launch_file

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX's special files")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LONGEST_FILE + 1)


KINDS = pytest.mark.parametrize("make", [pipe, device, huge, Path.mkdir])


def in_time(function: Callable[[], object]) -> object:
    """What a function gives, in a thread, since one that waits on a pipe would wait for ever."""
    results: list[object] = []

    def call() -> None:
        try:
            results.append(function())
        except (OSError, LookupError, ValueError) as error:
            results.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(20)
    assert results, "it waits"
    return results[0]


@KINDS
def test_only_regular_files_within_bounds_are_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "odd")
    assert isinstance(in_time(lambda: read_bounded(str(tmp_path / "odd"))), OSError)
    (tmp_path / "good").write_bytes(b"x" * 10)
    assert read_bounded(str(tmp_path / "good"), 10) == b"x" * 10
    with pytest.raises(OSError, match="more than"):
        read_bounded(str(tmp_path / "good"), 9)


@KINDS
def test_every_reader_of_files_that_others_name(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    odd = str(tmp_path / "odd.py")
    make(tmp_path / "odd.py")
    make(tmp_path / ".vscode" / "launch.json")
    assert in_time(lambda: read_source(odd)) == ""
    assert in_time(lambda: text_on_disk(odd)) == ""
    assert in_time(lambda: read_env_file(odd)) == {}
    assert isinstance(in_time(lambda: read_baseline(odd)), LookupError)
    launch: Any = in_time(lambda: read_launch_file(str(tmp_path)))
    assert launch[0] == [] and "launch.json cannot be read" in launch[1]


@pytest.mark.parametrize("text", ["[" * 100_000, "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"), "{" * 9])
def test_files_that_are_no_json(text: str, tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "launch.json").write_bytes(text.encode("latin-1"))
    assert "cannot be read" in read_launch_file(str(tmp_path))[1]
    with pytest.raises(LookupError):
        read_baseline(str(tmp_path / ".vscode" / "launch.json"))
