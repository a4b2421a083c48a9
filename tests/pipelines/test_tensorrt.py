"""Real runs through the pipeline ``tensorrt``, in an environment with Torch-TensorRT: its partitioner, and no engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from five_models import SCRIPTS, lines_kept
from irscope.provenance import Provenance
from irscope.store.store import Store
from runtimes import PythonWith
from support import Ran, lines_marked, run_captured, write

pytestmark = pytest.mark.worker

STAGES = (
    "exported-program", "export-signature", "export-constraints", "decomposed-program", "tensorrt-lowered",
    "tensorrt-partitioned", "tensorrt-report",
)  # fmt: skip
GRAPHS = tuple(f"0/0/{name}" for name in STAGES if name.startswith("tensorrt") and name != "tensorrt-report")
CUT = """\
import logging
import warnings

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = x * 2 + torch.ones(6) * 3  # folded
        x = torch.special.i0e(x)  # no converter
        x = x.mean((2, 3))
        x = x.sigmoid() * 3
        x = self.head(x).tanh()  # second engine
        x = torch.special.i0e(x)  # no converter
        return x.exp()  # too small


def state():
    return len(logging.root.handlers), warnings.showwarning, torch.cuda.current_device


model, x = Net().eval(), torch.ones(2, 3, 8, 8)
fast, before = torch.compile(model), state()
with torch.no_grad():
    print(torch.equal(fast(x), model(x)), state() == before)
"""


def ran_tensorrt(folder: Path, source: str, python: str) -> Ran:
    return run_captured(write(folder, source), folder / "runs.db", lane="deep", pipeline="tensorrt", python=python)


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory, python_with: PythonWith) -> Ran:
    return ran_tensorrt(tmp_path_factory.mktemp("tensorrt"), CUT, python_with("tensorrt"))


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_models(name: str, tmp_path: Path, python_with: PythonWith) -> None:
    """All stages are there, and each operation has a line in each of them."""
    ran = ran_tensorrt(tmp_path, SCRIPTS[name], python_with("tensorrt"))
    assert ran.report.capture_gaps == ()
    assert ran.stdout.startswith("agree")
    assert tuple(stage.name for stage in ran.compile("0/0").stages if not stage.passed) == STAGES
    for stage in GRAPHS:
        kept, count = lines_kept(ran, stage)
        assert count > 0, stage
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
    whole = {"mlp": "0 of 4", "conv": "6 of 6", "bert": "35 of 35", "gpt2": "50 of 50", "vit": "37 of 37"}[name]
    assert f"{whole} operations are in" in ran.text("0/0/tensorrt-report")  # as its own ``dryrun`` says


def test_an_operator_without_a_converter_cuts_the_program(cut: Ran) -> None:
    assert cut.report.capture_gaps == ()
    assert cut.stdout == "True True\n"
    report = cut.text("0/0/tensorrt-report")
    assert "no engine is built" in report
    assert " in 2 TensorRT engines." in report
    found = {(one.code, one.range.start.line) for one in cut.report.findings}
    none, small = lines_marked(CUT, "# no converter"), lines_marked(CUT, "# too small")
    assert found == {
        *(("no-tensorrt-converter", line) for line in none),
        *(("tensorrt-small-block", line) for line in small),
    }


def test_parts_keep_the_lines(cut: Ran) -> None:
    rows = cut.text("0/0/tensorrt-partitioned").split("\n")
    with Store(cut.store) as store:
        provenance = Provenance(store, cut.report)
        engine_of = {
            origin.line: rows[item.element.line - 1].rpartition("# ")[2]
            for item in provenance.items("0/0/tensorrt-partitioned").items
            if item.op == "call"
            for origin in provenance.origins(item.element)
        }
    [second], [small] = lines_marked(CUT, "# second engine"), lines_marked(CUT, "# too small")
    assert engine_of[second] == "TensorRT engine 1"
    assert engine_of[small].startswith("PyTorch: a block of 1")
    assert {engine_of[line] for line in lines_marked(CUT, "# no converter")} == {"PyTorch: no converter"}


def test_passes_that_change_the_program_are_versions(cut: Ran) -> None:
    assert "constant_fold" in {stage.passed for stage in cut.compile("0/0").stages}
