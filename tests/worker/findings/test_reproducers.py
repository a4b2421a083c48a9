"""The script that shows a failed compile by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from irscope.worker.client import Worker
from support import run_captured, write

SCRIPT = """\
import torch

@torch.compile
def f(x):
    return x.sin() + torch.full([], 1).cumsum(0)

f(torch.ones(3))
"""
OF_A_LIBRARY = """\
import torch

@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

@torch.compile
def f(x):
    return twice(x) + torch.full([], 1).cumsum(0)

f(torch.ones(3))
"""


@pytest.mark.nightly
@pytest.mark.until_torch("2.14", "this failure may be mended")
def test_a_failed_compile_has_a_script_that_raises_the_same_error(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(write(tmp_path, SCRIPT), tmp_path / "runs.db", "deep", worker=shared_worker)
    (finding,) = ran.findings("compile-error")
    stage = f"{finding.compiles[0]}/reproducer"
    assert f"`irscope show --stage {stage}`" in finding.hints[-1]
    alone = tmp_path / "alone" / "reproducer.py"
    alone.parent.mkdir()
    alone.write_text(ran.text(stage))
    assert str(tmp_path) not in alone.read_text()
    done = subprocess.run([sys.executable, str(alone)], cwd=alone.parent, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "InductorError: IndexError: tuple index out of range" in done.stderr


@pytest.mark.nightly
@pytest.mark.until_torch("2.14", "this failure may be mended")
def test_no_script_is_offered_that_needs_the_users_code(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(write(tmp_path, OF_A_LIBRARY), tmp_path / "runs.db", "deep", worker=shared_worker)
    (finding,) = ran.findings("compile-error")
    assert not [hint for hint in finding.hints if "reproducer" in hint]
    assert not [stage for stage in ran.report.compiles[0].stages if "reproducer" in stage.id]


BACKEND_GIVES_UP = """\
import torch
from torch._higher_order_ops.while_loop import while_loop

@torch.compile
def f(x):
    _, y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.sin()), (torch.tensor(0), x.t()))
    return y.sum()

f(torch.randn(3, 5, requires_grad=True)).backward()
"""


@pytest.mark.nightly
@pytest.mark.until_torch("2.14", "this failure may be mended")
def test_a_backend_that_fails_twice_with_a_function_is_one_finding(
    tmp_path: Path, shared_worker: Worker | None
) -> None:
    ran = run_captured(write(tmp_path, BACKEND_GIVES_UP), tmp_path / "runs.db", "deep", worker=shared_worker)
    (finding,) = (found for found in ran.report.findings if found.code == "GB0219")
    assert "the backend `inductor` failed with the graph that ends at `return y.sum()`" in finding.message
    assert "torch.compiler.disable" in finding.hints[0]
    assert not ran.findings("pytorch-warning")
    (skipped,) = (found for found in ran.findings("skipped-frame") if found.range.start.line == 5)
    assert "`f` is not compiled" in skipped.message
    assert not any(found.hints for found in ran.findings("cache-miss"))
