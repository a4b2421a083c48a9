"""The interpreter of `irscope run` that starts before the command line is read: when, and what becomes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from irscope.cli.main import main
from irscope.driver import ahead
from irscope.driver.debuggers import without_debugger


@pytest.mark.parametrize(
    "words",
    [
        "run a.py",
        "run --lane fast a.py",
        "run --lane=fast --exit-code a.py 1 2",
        "run a.py --store s.db -- --json --python x",
    ],
)
def test_a_plain_run_starts_ahead(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").touch()
    assert ahead.script_of(words.split()) == "a.py"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "list a.py",
        "run",
        "run b.py",
        "run .",
        "run -m a.py",
        "run a.ipynb",
        "run --python /usr/bin/python3 a.py",
        "run a.py --cwd x",
        "run a.py --json",
        "run a.py --world 2",
        "run --output-budget 3 a.py",
        "run --pytest a.py",
        "run --lane a.py",
    ],
)
def test_what_starts_in_another_way_does_not(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "a.ipynb"):
        (tmp_path / name).touch()
    assert ahead.script_of(words.split()) is None


def begin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ahead.Begun:
    monkeypatch.chdir(folder)
    (folder / "a.py").touch()
    ahead.begin(["run", "a.py"])
    (waiting,) = ahead._waiting
    return waiting


def test_what_fits_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = begin(tmp_path, monkeypatch)
    environment = without_debugger(os.environ)
    assert ahead.take(sys.executable, environment, str(tmp_path), str(tmp_path / "a.py")) is begun
    assert begun.process.poll() is None and not ahead._waiting
    os.close(begun.request_in)  # a request that never comes
    assert begun.process.wait(30) == 0
    assert os.read(begun.message_out, 1) == b""
    os.close(begun.message_out)


@pytest.mark.parametrize("other", ["python", "environment", "folder", "script"])
def test_what_does_not_fit_is_ended(other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = begin(tmp_path, monkeypatch)
    python = "/usr/bin/false" if other == "python" else sys.executable
    environment = {**without_debugger(os.environ), **({"A_NEW_ONE": "1"} if other == "environment" else {})}
    folder = "/" if other == "folder" else str(tmp_path)
    script = str(tmp_path / "inner" / "a.py") if other == "script" else str(tmp_path / "a.py")
    assert ahead.take(python, environment, folder, script) is None
    assert begun.process.poll() is not None


def test_nothing_is_left_of_a_command_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[ahead.Begun] = []
    real = ahead.begin
    monkeypatch.setattr(ahead, "begin", lambda given: (real(given), started.extend(ahead._waiting)))
    (tmp_path / "a.py").touch()
    with pytest.raises(SystemExit):
        main(["run", str(tmp_path / "a.py"), "--lane", "wrong"])
    assert "--lane" in capsys.readouterr().err
    assert len(started) == 1 and started[0].process.poll() is not None


def test_an_old_python_says_so_without_a_request(tmp_path: Path) -> None:
    text = Path(ahead.BOOT).read_text(encoding="utf-8")
    asked, told = os.pipe(), os.pipe()
    boot = tmp_path / "boot.py"
    boot.write_text(text.replace("sys.version_info < (3, 10)", "True"), encoding="utf-8")
    words = [sys.executable, str(boot), str(asked[0]), str(told[1]), str(tmp_path)]
    process = subprocess.Popen(words, pass_fds=(asked[0], told[1]))
    os.close(told[1])
    assert b"too old" in os.read(told[0], 1000)
    assert process.wait(30) == 0
    for fd in (*asked, told[0]):
        os.close(fd)
