"""A run in the fast lane finds what a full run finds, or says why it may differ."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from irscope.cli.report import report_lines
from irscope.cli.text import Paint
from irscope.protocol import OutcomeKind
from irscope.worker.client import Worker
from support import run_captured, write

WORLD = Path(__file__).parents[2] / "data" / "world"
CUSTOM_OPERATOR = """\
import torch

@torch.library.custom_op("own::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

@torch.compile
def f(x):
    return torch.ops.own.twice(x).sum()

f(torch.ones(3, requires_grad=True))
"""
PLAIN = "import torch\nx = torch.ones(3, requires_grad=True)\ntorch.compile(lambda x: x.sin().sum())(x).backward()\n"
# After pytorch's tests: the mean over the ragged dimension has no backward.
NESTED = """\
import torch

@torch.compile
def f(x):
    return x.mean(1)

rows = [torch.randn(3, 4), torch.randn(2, 4)]
f(torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)).sum().backward()
"""


@pytest.mark.parametrize("source", [CUSTOM_OPERATOR, NESTED], ids=["custom operator", "nested"])
def test_both_lanes_find_what_aot_autograd_refuses(source: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    script, store = write(tmp_path, source), tmp_path / "runs.db"
    deep, fast = (run_captured(script, store, lane, worker=shared_worker).report for lane in ("deep", "fast"))
    found = [[(one.kind, one.code, one.range, one.message) for one in report.findings] for report in (deep, fast)]
    assert found[1] == [one for one in found[0] if one[0] != "cache-miss"] != []
    assert fast.outcome.kind is deep.outcome.kind
    assert [compile.outcome for compile in fast.compiles] == [compile.outcome for compile in deep.compiles]


@pytest.mark.parametrize("name", ["float_schedule", pytest.param("onecycle_plain", marks=pytest.mark.nightly)])
def test_a_number_that_aot_autograd_compiles_in_is_seen_in_the_fast_lane(
    name: str, tmp_path: Path, shared_worker: Worker | None
) -> None:
    """Dynamo alone would make one graph for all values: eight of them, and the limit, are what Inductor shows, too."""
    report = run_captured(WORLD / f"{name}.py", tmp_path / "runs.db", "fast", worker=shared_worker).report
    assert {finding.code: finding.count for finding in report.findings if finding.kind != "graph-break"} == {
        "recompile-value": 7, "specialize-value": 7, "GB0039": 1
    }  # fmt: skip


def test_a_subclass_that_cannot_be_taken_apart_compiles_in_the_fast_lane(
    tmp_path: Path, shared_worker: Worker | None
) -> None:
    """AOTAutograd with eager mode after it fails on the subclass, Inductor's kernels do not."""
    source = PLAIN.replace("x = torch", "class Own(torch.Tensor): pass\nx = torch").replace(
        "True)", "True).as_subclass(Own)"
    )
    report = run_captured(write(tmp_path, source), tmp_path / "runs.db", "fast", worker=shared_worker).report
    assert (report.outcome.kind, report.findings) == (OutcomeKind.COMPLETED, ())


SIZES = """\
import torch

@torch.compile
def f(x):
    return torch.nn.functional.adaptive_avg_pool1d(x, 2)

for size in (4, 6):
    f(torch.ones(1, size))
"""
OF_DATA = """\
import torch
torch._dynamo.config.capture_dynamic_output_shape_ops = True

@torch.compile
def f(x):
    return x.nonzero() * 2

f(torch.eye(3))
"""
TWICE = """\
import torch

@torch.compile
def f(x):
    return (x.sin() ** 2).sum()

x = torch.ones(3, requires_grad=True)
(gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
gradient.sum().backward()
"""


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param(SIZES, "sizes that vary", id="sizes"),
        pytest.param(OF_DATA, "depends on the data", id="sizes of data"),
        pytest.param(TWICE, "refuse to run its backward twice, or to differentiate it", id="double backward"),
        pytest.param(PLAIN, "", id="nothing"),
        pytest.param(SIZES.replace(".compile", ".compile(backend='eager')"), "", id="eager"),
    ],
)
def test_a_run_says_why_a_full_one_may_differ(
    source: str, why: str, tmp_path: Path, shared_worker: Worker | None
) -> None:
    report = run_captured(write(tmp_path, source), tmp_path / "runs.db", "fast", worker=shared_worker).report
    said = [
        line for line in report_lines(report, Paint(io.StringIO())) if line.startswith("may differ from a full run: ")
    ]
    assert len(said) == len(report.may_differ)
    assert report.capture_gaps == ()
    assert bool(said) == bool(why)
    assert why in "".join(said)
