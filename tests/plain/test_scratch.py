"""Which parts of the file system a trial does not see as they are."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from irscope.system import scratch


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets in its files")
def test_sockets_beside_mounts_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `/run/docker.sock` is, where `/run/user` is a mount: a child process of a trial must not reach it."""
    for name in ("mounted", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    monkeypatch.chdir(tmp_path)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("program.sock")
        hidden = scratch._folders(str(tmp_path), {str(tmp_path / "mounted"): True})
        assert [*hidden] == [str(tmp_path / name) for name in ("mounted", "other", "program.sock")]
