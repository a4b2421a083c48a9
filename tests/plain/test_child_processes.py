"""Which programs are followed, what an interpreter sees that is, and the bounds."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import irscope.driver.children
import pytest
from facts import a_compile, an_outcome
from irscope.comparing.ranks.folded import folded
from irscope.driver.children import Children
from irscope.protocol import (
    CaptureGap,
    CompileSeen,
    FactsWritten,
    Lane,
    RankReport,
    RunRequest,
    ScriptEnded,
    pack_message,
)
from irscope.protocol.frames import frame
from irscope.runner.following import in_fork
from irscope.runner.joining import joined
from irscope.runner.starting import runs_python, variables
from irscope.store.store import Store

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")


@pytest.mark.parametrize(
    ("program", "arguments", "wanted"),
    [
        ("/usr/bin/python3.12", ["python3.12", "serve.py"], True),
        (sys.executable, ["-c", "from multiprocessing.spawn import spawn_main"], True),
        ("/bin/sh", ["sh", "-c", "python worker.py"], True),
        ("/bin/sh", ["sh", "-c", "ls -l"], False),
        ("/usr/bin/g++", ["g++", "kernel.cpp"], False),
        ("/no/such", ["such"], False),
        (sys.executable, ["python", "/site-packages/torch/_inductor/compile_worker/__main__.py"], False),
    ],
)
def test_programs_that_are_followed(program: str, arguments: list[str], wanted: bool) -> None:
    assert runs_python(program, arguments) is wanted


def test_a_script_that_names_python_is_followed(tmp_path: Path) -> None:
    for name, first in (("torchrun", "#!/opt/bin/python3\n"), ("tool", "#!/bin/sh\n")):
        (tmp_path / name).write_text(first, encoding="utf-8")
    assert [runs_python(str(tmp_path / name), [name]) for name in ("torchrun", "tool")] == [True, False]


SHOW = "import os, sys; print(os.environ.get('PYTHONPATH'), 'IRSCOPE_PROCESS' in os.environ, 'in_children' in str(sys.path), *sys.argv[1:])"


@pytest.mark.parametrize("before", [None, "own"])
def test_an_interpreter_finds_its_variables_and_its_own_sitecustomize(tmp_path: Path, before: str | None) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('mine')", encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"PYTHONPATH": str(own)} if before else {}

    def said(env: dict[str, str]) -> tuple[str, str]:
        done = subprocess.run([sys.executable, "-c", SHOW], env=env, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    assert said(variables("/tmp/none", env)) == said(env)
    assert said(env)[0].startswith("mine") is bool(before)


def test_processes_beyond_the_bound_are_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(irscope.driver.children, "MOST_PROCESSES", 1)
    gaps: list[CaptureGap] = []
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/serve.py", (), Lane.FAST, "")
        children = Children(
            store, lambda number: store.create_run("/serve.py", (), Lane.FAST, "", is_made=False), gaps.append
        )
        try:
            request = RunRequest(run, "/serve.py", (), Lane.FAST, store.path)
            children.answer_with(request)
            connections = [socket.socket(socket.AF_UNIX) for _ in range(3)]
            for number, connection in enumerate(connections):
                connection.connect(children.address)
                children.read()
                facts = FactsWritten({"process": {"pid": 7, "title": "worker\u202e"}})
                messages: list[Any] = [facts, CompileSeen(a_compile(id="0/0")), ScriptEnded(0, "")]
                if number == 0:
                    connection.sendall(b"".join(frame(at, pack_message(one)) for at, one in enumerate(messages)))
                children.read()
                connection.close()
            children.finish()
            findings = children.merged(run, an_outcome(), "serve.py")
            report = store.report(run)
        finally:
            children.close()
    assert findings == [] and [one.compiles for one in report.ranks] == [0, 1]
    assert report.ranks[1].process.startswith("worker") and report.ranks[1].process.endswith(", pid 7")
    assert [gap.what for gap in gaps] == ["what 2 more processes compiled"]
    assert not os.path.exists(os.path.dirname(children.address))


def test_a_process_that_gets_no_run_is_counted_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were connected when the first one compiled something, and took the last run."""
    monkeypatch.setattr(irscope.driver.children, "MOST_PROCESSES", 1)
    gaps: list[CaptureGap] = []
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/serve.py", (), Lane.FAST, "")
        children = Children(
            store, lambda number: store.create_run("/serve.py", (), Lane.FAST, "", is_made=False), gaps.append
        )
        try:
            children.answer_with(RunRequest(run, "/serve.py", (), Lane.FAST, store.path))
            connections = [socket.socket(socket.AF_UNIX) for _ in range(2)]
            for connection in connections:
                connection.connect(children.address)
                children.read()
            sent = [CompileSeen(a_compile(id=f"0/{number}")) for number in range(500)]
            for connection in connections:
                connection.sendall(b"".join(frame(at, pack_message(one)) for at, one in enumerate(sent)))
                while children.read():
                    pass
            kept = [len(child.waiting) for child in children._connections.values()]
            for connection in connections:
                connection.close()
            children.finish()
        finally:
            children.close()
    assert len(children.runs) == 1 and kept[0] == 0 and kept[1] <= 64
    assert [gap.what for gap in gaps] == ["what 1 more process compiled"]


def test_nobody_answers(tmp_path: Path) -> None:
    assert joined(str(tmp_path / "none")) is None


def test_ranks_that_are_equal_are_one_row() -> None:
    ranks = [RankReport(rank, f"run-{rank}", an_outcome(), 3 if rank == 37 else 2, 1) for rank in range(1024)]
    first, other = folded(ranks)
    assert (first.rank, len(first.alike), other.rank, other.alike) == (0, 1022, 37, ())
    assert folded(ranks[:16]) == ranks[:16]


def test_an_error_in_a_process_is_a_gap_of_the_run(tmp_path: Path) -> None:
    gaps: list[CaptureGap] = []
    with Store(str(tmp_path / "runs.db")) as store:
        children = Children(store, lambda number: "", gaps.append)
        children.answer_with(RunRequest("run", "/serve.py", (), Lane.FAST, ""))
        try:
            worker = threading.Thread(target=in_fork, args=(children.address, ValueError("no hook")))
            worker.start()
            while worker.is_alive() or not gaps:
                children.read()
        finally:
            children.close()
    (gap,) = gaps
    assert gap.why == "irscope failed there: ValueError('no hook')" and f"pid {os.getpid()}" in gap.what
