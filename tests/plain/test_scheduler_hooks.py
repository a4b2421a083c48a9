"""Hooks into Inductor's scheduler that do not fit leave a gap in the capture."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
from irscope.internals.frames import report_to
from irscope.internals.hooks import Hooks
from irscope.internals.scheduler_hooks import scheduler_hooks
from irscope.protocol import CaptureGap

WHAT = "a kernel's lines without those of what reads it"


class Node:
    """An IR node whose lines are those of its origins."""

    origins: Any = frozenset({1, 2})

    def get_stack_traces(self) -> list[int]:
        return sorted(self.origins)


@pytest.fixture
def ir(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = types.ModuleType("torch._inductor.ir")
    module.IRNode = type("IRNode", (Node,), dict(vars(Node)))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def gaps_of(ir: Any) -> tuple[list[CaptureGap], Any]:
    """What is missing, and what a node tells, under the hook alone."""
    gaps = list[CaptureGap]()
    undo = report_to(gaps.append)
    (hook,) = [each for each in scheduler_hooks(*[lambda *_: None] * 3) if each.what == WHAT]
    with Hooks([hook]):
        told = ir.IRNode().get_stack_traces() if hasattr(ir.IRNode, "get_stack_traces") else None
    undo()
    return gaps, told


def test_what_tells_the_lines_of_a_node_was_renamed(ir: Any) -> None:
    ir.IRNode = type("IRNode", (), {})
    (gap,), _ = gaps_of(ir)
    assert gap.what == WHAT and "torch._inductor.ir is not as expected" in gap.why


def test_nodes_that_are_not_as_expected_keep_the_lines_that_pytorch_tells(ir: Any) -> None:
    (gap,), told = gaps_of(ir)  # this module has no kinds of nodes
    assert told == [1, 2] and (gap.what, gap.why.partition(":")[0]) == (WHAT, "AttributeError")
