"""Out of memory: the finding is at the line that asked for it, and names the lines that hold most."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.protocol import OutcomeKind, Severity
from irscope.runner.out_of_memory import asked_bytes
from support import lines_marked, run_forked, write

INSIDE = """\
import torch

@torch.compile
def f(x, n):
    h = torch.relu(x @ x)  # holds
    g = h.cos()
    w = torch.cat([h, g]).cumsum(0)  # holds
    return (w[None].expand(n, -1, -1) * 2).sort(0)[0] + x[0], g  # asks

x = torch.randn(512, 512, requires_grad=True)
f(x, 1 << 24)
"""
OUTSIDE = """\
import torch

f = torch.compile(lambda x: x.sin(), backend="eager")
x = torch.randn(512, 512)
y = f(x)
z = y[None].expand(1 << 27, -1, -1).clone()  # asks
"""
CUDA = (
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free."
)


def test_compiled_code_that_has_no_memory_names_the_lines_that_hold_most(tmp_path: Path) -> None:
    script = write(tmp_path, INSIDE)
    report = run_forked(script, tmp_path / "runs.db", "deep").report
    (finding,) = [one for one in report.findings if one.severity is Severity.ERROR]
    assert (finding.kind, finding.code) == ("memory-at-peak", "out-of-memory")
    assert {finding.range.start.line} == lines_marked(INSIDE, "# asks")
    assert "35.2 TB were to be allocated here" in finding.message and "`x` (1.05 MB)" in finding.message
    held = [one.range.start.line for one in finding.related if one.message == "holds 2.1 MB"]
    assert {*held} == lines_marked(INSIDE, "# holds")
    assert report.outcome.kind is OutcomeKind.SCRIPT_ERROR


def test_eager_code_that_has_no_memory_names_the_variables(tmp_path: Path) -> None:
    report = run_forked(write(tmp_path, OUTSIDE), tmp_path / "runs.db").report
    (finding,) = [one for one in report.findings if one.code == "out-of-memory"]
    assert {finding.range.start.line} == lines_marked(OUTSIDE, "# asks")
    assert "`x` (1.05 MB)" in finding.message and "`y` (1.05 MB)" in finding.message


@pytest.mark.parametrize(
    ("text", "asked"),
    [(CUDA, 2_684_354_560), ("you tried to allocate 4096 bytes. Error code 12", 4096), ("a size mismatch", None)],
)
def test_what_was_asked_for(text: str, asked: int | None) -> None:
    assert asked_bytes(text) == asked
