"""The pipeline ``tensorrt`` where Torch-TensorRT is installed and cannot be imported: it says so, and pretends nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from irscope.driver.availability import Status, availability_of
from irscope.pipelines.registry import pipelines
from support import run_captured, write

pytestmark = pytest.mark.worker

SCRIPT = """\
import logging
import warnings

import torch


def program(x):
    return (x + 1).relu()


def state():
    return len(logging.root.handlers), warnings.showwarning, torch.cuda.current_device, torch.is_grad_enabled()


before = state()
print(torch.compile(program)(torch.ones(2)), state() == before)
"""
BROKEN = """\
import logging
import os

logging.captureWarnings(True)  # as torch_tensorrt.logging
logging.debug("lowering")  # as its lowering passes: the root logger gets a handler
os.write(1, b"[TRT] a warning of TensorRT's C++\\n")
raise FileNotFoundError("Could not find libnvinfer.so.11\\n  Search paths: ['/usr/lib']")
"""
WHY = "torch_tensorrt cannot be imported: FileNotFoundError: Could not find libnvinfer.so.11 Search paths: ['/usr/lib']"


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A folder with a Torch-TensorRT that lacks the libraries of TensorRT."""
    package = tmp_path / "site" / "torch_tensorrt"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(BROKEN)
    return str(package.parent)


def test_its_trial_says_what_is_missing(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", broken)
    [found] = availability_of([pipelines()["tensorrt"]], sys.executable, str(tmp_path / "trials.json"))
    assert (found.status, found.why) == (Status.UNSUPPORTED, f"A trial failed: {WHY}")


def test_a_run_has_the_exported_program_and_a_gap(broken: str, tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT)
    ran = run_captured(script, tmp_path / "runs.db", "deep", pipeline="tensorrt", env={"PYTHONPATH": broken})
    assert ran.stdout == "tensor([2., 2.]) True\n"
    assert [(gap.what, gap.why) for gap in ran.report.capture_gaps] == [("the dry run of 0/0", WHY)]
    stages = [stage.name for stage in ran.compile("0/0").stages]
    assert stages == ["exported-program", "export-signature", "export-constraints"]
    assert "no TensorRT engine is built" in ran.text("0/0/export-signature")
    assert ran.report.findings == ()
