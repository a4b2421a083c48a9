"""Graph breaks in called functions with ``nested_graph_breaks`` on and off: the same causes, and what goes on after each."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import run_forked, write

SCRIPT = """\
import torch

torch._dynamo.config.nested_graph_breaks = {}

def inner(x):
    y = x.sin()
    print("first")
    z = y.cos()
    print("second")
    return z + 1

def middle(x):
    b = inner(x * 2)
    print("third")
    return b * 3

@torch.compile(backend="eager")
def outer(x):
    return middle(x + 1) - 1

outer(torch.ones(4))
"""
CHAINS = {7: [21, 19, 13], 9: [21, 19, 13], 14: [21, 19]}
"""By the line of a break the lines of the calls that lead there, each once."""


@pytest.mark.parametrize("nested", [False, True])
def test_a_break_in_a_called_function(nested: bool, tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, SCRIPT.format(nested)), tmp_path / "runs.db")
    assert (ran.report.capture_gaps, ran.stdout) == ((), "first\nsecond\nthird\n")
    breaks = ran.findings("graph-break")
    assert {f.range.start.line: [r.range.start.line for r in f.related] for f in breaks} == CHAINS
    compiles = [(c.title, c.graph_ops) for c in ran.report.compiles]
    if not nested:
        assert [f.cost.graphs for f in breaks] == [2, 1, 1], "the outermost goes on after the first, too"
        assert [title for title, _ in compiles[3:]] == [
            "inner, after line 7", "inner, after line 9", "middle, after line 13", "middle, after line 14",
            "outer, after line 19",
        ]  # fmt: skip
        return
    assert [(f.count, f.compiles) for f in breaks] == [(1, ("0/0",)), (1, ("1/0",)), (1, ("2/0",))]
    assert compiles == [
        ("outer", 3),
        ("inner, after line 7", 1),
        ("inner, after line 9", 1),
        ("middle, after line 14", 2),
    ]
    assert [f.cost.graphs for f in breaks] == [1, 1, 1]
    seconds = [c.seconds for c in ran.report.compiles[1:]]
    assert [f.cost.seconds for f in breaks] == seconds, "each costs what goes on after it"


LEFT = """\
import torch

torch._dynamo.config.nested_graph_breaks = {}

def scaled(x):
    scale = float(x.max())
    return x / scale

@torch.compile(backend="eager")
def outer(x):
    return scaled(x) + 1

outer(torch.ones(4))
outer(torch.full((4,), 3.0))
"""


@pytest.mark.parametrize("nested", [False, True])
def test_a_value_that_a_break_in_a_called_function_leaves(nested: bool, tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, LEFT.format(nested)), tmp_path / "runs.db")
    (again,) = ran.findings("recompilation")
    assert (again.range.start.line, again.range.start.column) == (6, 12)
    assert "`float(x.max())` was 1.0 when this was compiled and is 3.0 now" in again.message
    assert again.follows is not None and again.follows.range.start.line == 6
