"""`irscope compare`: one script through several pipelines, with numbers where they are known and reasons where they are not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import run_cli, run_cli_forked, write

pytestmark = pytest.mark.worker

NET = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 8)

    def forward(self, x):
        y = torch.relu(self.first(x)) * 2 + 1
        return torch.softmax(self.second(y), dim=-1)


fast = torch.compile(Net().eval())
with torch.no_grad():
    print("printed", fast(torch.ones(4, 8)).shape)
"""
Command = Callable[..., subprocess.CompletedProcess[str]]
OPERATORS = 6
"""linear, relu, mul, add, linear, softmax."""


def compared(
    folder: Path, script: Path, pipelines: str, *more: str, run: Command = run_cli_forked, **how: Any
) -> dict[str, dict[str, Any]]:
    """The figures of each pipeline by its name."""
    done = run(
        "compare",
        script,
        "--pipelines",
        pipelines,
        "--rounds",
        "3",
        "--json",
        "--store",
        folder / "runs.db",
        *more,
        **how,
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["script"] == str(script)
    return {one["pipeline"]: one for one in told["pipelines"]}


def test_pipelines_side_by_side(tmp_path: Path) -> None:
    found = compared(tmp_path, write(tmp_path, NET), "inductor,torchscript,export")
    assert list(found) == ["inductor", "torchscript", "export"]
    for one in found.values():
        assert one["problem"] == "" and one["operators"]["value"] == one["taken"]["value"] == OPERATORS
        assert one["gone"] == one["left"] == []
        for timing in (one["call"], one["eager"]):
            assert 0 < timing["low"] <= timing["median"] <= timing["high"] and timing["rounds"] == 3
        assert one["compile_seconds"]["value"] > 0
        assert 0 <= one["difference"]["value"] < 1e-6 and 0 <= one["relative_difference"]["value"] < 1e-5
    inductor, torchscript, export = found.values()
    assert inductor["fused"]["value"] >= 3 and inductor["kernels"]["value"] == 2, "relu, mul, add; softmax"
    assert inductor["library_calls"]["value"] == 1 and inductor["moved_bytes"]["value"] > 0
    assert torchscript["fused"]["value"] == export["fused"]["value"] == 0
    assert torchscript["kernels"]["value"] is None and "does not include its kernels" in torchscript["kernels"]["why"]
    assert torchscript["moved_bytes"]["value"] is None and torchscript["moved_bytes"]["why"]
    assert export["moved_bytes"]["value"] > inductor["moved_bytes"]["value"], "each operation by itself moves more"
    assert "0/0/decomposed-program" in export["stages"]
    done = run_cli("show", export["run"], "--store", tmp_path / "runs.db")
    assert done.returncode == 0, "its run stays in the store"


PRINTS = """\
import torch


def scale(x):
    print("called")
    return x * 2


fast = torch.compile(scale)
fast(torch.ones(3))
"""


def test_what_runs_as_python_has_no_time(tmp_path: Path) -> None:
    found = compared(tmp_path, write(tmp_path, PRINTS), "export,torchscript")
    export, torchscript = found["export"], found["torchscript"]
    assert export["call"]["median"] is None and export["difference"]["value"] is None
    assert export["call"]["why"] == ("scale runs as Python: it prints while it runs, and an exported program does not")
    assert export["eager"]["median"] > 0
    assert ("scale", export["call"]["why"]) in [(one["what"], one["why"]) for one in export["left"]]
    assert torchscript["call"]["median"] > 0 and torchscript["difference"]["value"] == 0


RANDOM = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5)).train()
fast = torch.compile(model)
fast(torch.ones(4, 8))
"""


def test_a_program_with_random_numbers_has_no_difference(tmp_path: Path) -> None:
    """In a process of its own, as on the command line."""
    [one] = compared(tmp_path, write(tmp_path, RANDOM), "torchscript", run=run_cli).values()
    assert one["difference"] == {"value": None, "why": "The program itself gives other numbers from call to call."}
    assert one["eager"]["median"] > 0


MISSING = """\
from irscope.pipelines.base import Package, Pipeline

PIPELINE = Pipeline("made-up", "A made-up pipeline", (), needs=(Package("no_such_module", "no-such-package>=2"),))
"""


def test_a_pipeline_that_cannot_run_says_why_and_the_others_are_compared(tmp_path: Path) -> None:
    env = {"IRSCOPE_PIPELINES": str(write(tmp_path, MISSING, "made_up.py"))}
    found = compared(tmp_path, write(tmp_path, NET), "made-up,torchscript", run=run_cli, env=env)
    one = found["made-up"]
    assert "pip install 'no-such-package>=2'" in one["problem"]
    assert one["call"]["median"] is None and one["call"]["why"] == one["problem"]
    assert one["operators"]["value"] is None and one["operators"]["why"] == one["problem"]
    assert found["torchscript"]["call"]["median"] > 0


def test_a_script_that_fails_is_a_problem_of_each_pipeline(tmp_path: Path) -> None:
    script = write(tmp_path, "raise RuntimeError('out of order')\n")
    done = run_cli("compare", script, "--pipelines", "torchscript", "--store", tmp_path / "runs.db")
    assert done.returncode == 1
    assert f"failed: RuntimeError: out of order ({script}:1)" in done.stdout


def test_an_unknown_pipeline_is_refused_before_anything_runs(tmp_path: Path) -> None:
    script = write(tmp_path, "raise SystemExit('not reached')\n")
    done = run_cli("compare", script, "--pipelines", "inductor,indctor", "--store", tmp_path / "runs.db")
    assert (done.returncode, done.stdout) == (2, "") and "Unknown pipeline: 'indctor'" in done.stderr
