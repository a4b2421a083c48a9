"""What a run begins with: a module behaves as under `python -m`, tests as under `python -m pytest`; findings land in
every file."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import EntryKind, OutcomeKind
from irscope.worker.client import Worker, WorkerState, wait_for
from support import Ran, run_captured, run_cli, write

MODEL = """\
import torch

@torch.compile(backend="eager")
def f(x):
    print("in the middle")
    return x.sin() * 2
"""
TRAIN = """\
import os, sys
print(sys.argv[1:], os.path.basename(sys.argv[0]), sys.path[0] == os.getcwd(), sorted(globals()))
print(__name__, __package__, __spec__.name, os.path.basename(__file__), __loader__.name, __doc__)
from . import helper
from .model import f
import torch, __main__

class C:
    pass

import pickle
print(type(pickle.loads(pickle.dumps(C()))).__module__, sys.modules["__main__"].__dict__ is globals())
f(torch.ones(3))
if len(sys.argv) > 1:
    raise ValueError(helper.WORD)
"""


def project(folder: Path) -> Path:
    write(folder, "", "pkg/__init__.py")
    write(folder, MODEL, "pkg/model.py")
    write(folder, TRAIN, "pkg/train.py")
    write(folder, "WORD = 'on disk'\n", "pkg/helper.py")
    write(folder, "from . import train\n", "pkg/__main__.py")
    return folder


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(sys.executable, {"PYTHONDONTWRITEBYTECODE": ""})  # compiled files must not mix texts up
    assert wait_for(worker, 120) is WorkerState.READY, worker.reason
    yield worker
    worker.stop()
    assert not worker.unfit


RunEntry = Callable[..., Ran]


@pytest.fixture
def run_module(worker: Worker) -> RunEntry:
    """In a fork of the worker."""
    return functools.partial(run_entry, EntryKind.MODULE, worker)


@pytest.fixture
def run_tests(worker: Worker) -> RunEntry:
    return functools.partial(run_entry, EntryKind.PYTEST, worker)


def run_entry(entry: EntryKind, worker: Worker | None, folder: Path, name: str, *args: str, **spec: Any) -> Ran:
    store = folder.parent / "runs.db"
    return run_captured(Path(name), store, "fast", args, cwd=str(folder), entry=entry, worker=worker, **spec)


def plain(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *args], capture_output=True, text=True, cwd=folder, timeout=100, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize("args", [("pkg.train", "--steps", "3"), ("pkg.gone",), ("pkg.gone.f",), ("gone.too",)])
def test_a_module_behaves_as_under_python_m(args: tuple[str, ...], worker: Worker, tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    expected = plain(folder, *args)
    # A fresh process for a module that runs; those that are missing are told by the same code in both.
    for ran in (run_entry(EntryKind.MODULE, who, folder, *args) for who in (worker, None)[: 2 if len(args) > 1 else 1]):
        assert (ran.stdout, ran.stderr) == (expected.stdout, expected.stderr)
        assert ran.report.outcome.exit_code == expected.returncode
        assert ran.report.script == f"-m {args[0]}"


def test_findings_land_in_the_file_of_the_library(run_module: RunEntry, tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    ran = run_module(folder, "pkg.train")
    (finding,) = ran.findings("graph-break")
    assert (finding.file, finding.range.start.line) == (str(folder / "pkg" / "model.py"), 5)
    assert [related.file for related in finding.related] == [str(folder / "pkg" / "train.py")]


def test_what_a_missing_module_is_told(run_module: RunEntry, tmp_path: Path) -> None:
    outcome = run_module(project(tmp_path / "project"), "pkg.gone").report.outcome
    assert (outcome.kind, outcome.message) == (OutcomeKind.SCRIPT_ERROR, "No module named pkg.gone")


def test_unsaved_texts_of_the_module_and_of_what_it_imports(run_module: RunEntry, tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    ran_before = run_module(folder, "pkg.train")  # which leaves compiled files of the texts on disk
    overlays = {
        str(folder / "pkg" / "train.py"): TRAIN + "\nprint('unsaved', helper.WORD)\n",
        str(folder / "pkg" / "helper.py"): "WORD = 'in the editor'\n",
        str(folder / "pkg" / "model.py"): MODEL.replace('    print("in the middle")\n', ""),
    }
    ran = run_module(folder, "pkg.train", overlays=overlays)
    assert ran_before.findings("graph-break") and not ran.findings("graph-break")
    assert ran.stdout.endswith("unsaved in the editor\n")
    assert run_module(folder, "pkg.train").stdout == ran_before.stdout, "nothing of it is left on disk"


TESTS = """\
import sys
import torch
from pkg.model import f

def test_good():
    assert f(torch.ones(3)).shape == (3,)

def test_wrong():
    x = f(torch.ones(4)).sum() > 100
    assert x, "too small"

def test_raises():
    raise KeyError("k")
"""


def test_tests_run_in_this_process_and_those_that_fail_are_named(run_tests: RunEntry, tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    write(folder, TESTS, "tests/test_model.py")
    ran = run_tests(folder, "tests/test_model.py", "-q")
    outcome = ran.report.outcome
    assert (outcome.kind, outcome.exit_code) == (OutcomeKind.SCRIPT_ERROR, 1)
    assert outcome.message == (
        "pytest: 2 failed: tests/test_model.py::test_wrong (AssertionError: too small), "
        "tests/test_model.py::test_raises (KeyError: 'k')"
    )
    assert "2 failed, 1 passed" in ran.stdout
    assert ran.report.script == "pytest tests/test_model.py"
    (finding,) = ran.findings("graph-break")
    assert (finding.file, finding.range.start.line) == (str(folder / "pkg" / "model.py"), 5)
    assert {related.file for related in finding.related} == {str(folder / "tests" / "test_model.py")}
    assert ran.findings("recompilation")


def test_one_test_with_an_unsaved_text(run_tests: RunEntry, tmp_path: Path) -> None:
    """pytest rewrites asserts and keeps compiled files: neither may mix the two texts up."""
    folder = project(tmp_path / "project")
    path = write(folder, TESTS, "tests/test_model.py")
    node = "tests/test_model.py::test_wrong"
    assert run_tests(folder, node).report.outcome.kind is OutcomeKind.SCRIPT_ERROR
    unsaved = {str(path): TESTS.replace("> 100", "> 0.1")}
    ran = run_tests(folder, node, overlays=unsaved)
    assert (ran.report.outcome.kind, ran.report.outcome.message) == (
        OutcomeKind.COMPLETED,
        "The script ran to its end.",
    )
    assert ran.report.capture_gaps == ()
    assert run_tests(folder, node).report.outcome.kind is OutcomeKind.SCRIPT_ERROR


def test_no_such_test_and_no_pytest(run_tests: RunEntry, tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    write(folder, TESTS, "tests/test_model.py")
    outcome = run_tests(folder, "tests/test_model.py::test_gone").report.outcome
    assert (outcome.kind, outcome.exit_code) == (OutcomeKind.SCRIPT_ERROR, 4)
    assert "no such test" in outcome.message
    # As in an interpreter without pytest.
    write(
        tmp_path,
        """
        import importlib.util
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, package=None: None if name == "pytest" else find(name, package)
        """,
        "site/sitecustomize.py",
    )
    env = {"PYTHONPATH": str(tmp_path / "site")}
    ran = run_entry(EntryKind.PYTEST, None, folder, "tests/test_model.py", env=env)
    assert ran.report.outcome.kind is OutcomeKind.ENVIRONMENT_ERROR
    assert ran.report.outcome.message.startswith(f"pytest is not installed in {sys.executable}. Install it there")


def test_on_the_command_line(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    done = run_cli("run", "-m", "pkg", "a", "--lane", "fast", "--", "--steps", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("['a', '--steps'] __main__.py True"), done.stdout
    listed = run_cli("list", "--limit", "1", cwd=folder)
    assert " -m pkg " in listed.stdout
