"""Watched runs: the step, the line and the culprit of the first number that is not finite."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import NonFiniteFacts, ValuesRequest
from support import run_cli, run_forked, write

PLANTED = Path(__file__).parents[3] / "benchmarks" / "watch_cases.py"
A_FEW = ("wrong-pass-later",)


def planted() -> Any:
    spec = importlib.util.spec_from_file_location("watch_cases", PLANTED)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["watch_cases"] = module  # its dataclass looks there
    spec.loader.exec_module(module)
    return module


CASES: dict[str, Any] = planted().CASES


@pytest.mark.parametrize(
    "name", [name if name in A_FEW else pytest.param(name, marks=pytest.mark.nightly) for name in CASES]
)
def test_a_planted_fault_is_named_at_its_step_and_line_with_its_culprit(name: str, tmp_path: Path) -> None:
    assert planted().judged(name, CASES[name], tmp_path) == ""


def test_the_steps_before_are_run_again_and_the_parameters_become_the_same(tmp_path: Path) -> None:
    watched = ValuesRequest(statistics=False, divergence=True, watch=True)
    ran = run_forked(write(tmp_path, CASES["bad-target"].text), tmp_path / "runs.db", "deep", values=watched)
    [facts] = [finding.facts for finding in ran.report.findings if finding.kind == "non-finite"]
    assert isinstance(facts, NonFiniteFacts)
    assert (facts.step, facts.replayed_from, facts.is_same_bits) == (20, 10, True)


@pytest.mark.nightly
def test_the_exit_code_and_the_output_are_the_scripts(tmp_path: Path) -> None:
    path = write(tmp_path, "import sys\nprint('mine')\nsys.exit(5)\n")
    done = run_cli("watch", "--store", str(tmp_path / "runs.db"), str(path))
    assert (done.returncode, done.stdout.split("\n")[0]) == (5, "mine")
