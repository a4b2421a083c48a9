"""A file beside the script that hides a module of the standard library: Python imports the file, so irscope must too."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest
from irscope.protocol import OutcomeKind
from irscope.worker.client import Worker
from support import BREAKS, run_captured, run_plain, write

SAYS = "import sys\nprint(__name__, 'of the user', file=sys.stderr)\n"
SCRIPT = "import NAME\nprint(NAME.__file__)\nprint(sorted(name for name in vars(NAME) if name[0] != '_'))\n"
PACKAGE_SCRIPT = "import json.decoder\nprint(json.decoder.__file__)\n"


@pytest.mark.parametrize(
    "name",
    [
        "json",
        "logging",
        "sqlite3",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("queue", "selectors", "textwrap")),
    ],
)
def test_the_script_gets_the_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, SAYS, f"{name}.py")
    script = write(tmp_path, SCRIPT.replace("NAME", name))
    ran, plain = run_captured(script, tmp_path / "runs.db"), run_plain(script)
    assert str(tmp_path / f"{name}.py") in ran.stdout
    assert (ran.stdout, ran.stderr) == (plain.stdout, plain.stderr)
    assert ran.report.capture_gaps == ()


def test_a_package(tmp_path: Path) -> None:
    write(tmp_path, SAYS, "json/__init__.py")
    write(tmp_path, "", "json/decoder.py")
    script = write(tmp_path, PACKAGE_SCRIPT)
    ran, plain = run_captured(script, tmp_path / "runs.db"), run_plain(script)
    assert str(tmp_path / "json" / "decoder.py") in ran.stdout
    assert (ran.stdout, ran.stderr) == (plain.stdout, plain.stderr)


@pytest.mark.parametrize("name", ["os", "io", "time"])
def test_a_module_that_the_interpreter_has_before_hides_the_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, SAYS, f"{name}.py")
    script = write(tmp_path, f"import {name}\nprint(getattr({name}, '__file__', 'built in'))\n")
    assert run_captured(script, tmp_path / "runs.db").stdout == run_plain(script).stdout


@pytest.mark.nightly  # a deep run in a process of its own, since no fork can be used
@pytest.mark.parametrize("in_worker", [False, True])
def test_the_capture_has_the_standard_library_s(tmp_path: Path, shared_worker: Worker | None, in_worker: bool) -> None:
    """Torch runs on the user's module, and irscope's own modules, also those imported after torch, on the other."""
    write(tmp_path, inspect.getsource(dataclasses) + "\nmine = True\n", "dataclasses.py")
    script = write(tmp_path, BREAKS + "import dataclasses\nprint(dataclasses.mine)\n")
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker if in_worker else None)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.stderr
    assert ran.stdout == run_plain(script, env={"TORCH_COMPILE_DISABLE": "1"}).stdout
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    assert ran.report.capture_gaps == ()
    assert ran.report.kernels


def test_a_fork_gives_way_to_a_fresh_process(tmp_path: Path, shared_worker: Worker | None) -> None:
    """A worker has imported the standard library's module for good."""
    write(tmp_path, SAYS, "json.py")
    script = write(tmp_path, SCRIPT.replace("NAME", "json"))
    assert run_captured(script, tmp_path / "runs.db", worker=shared_worker).stdout == run_plain(script).stdout
