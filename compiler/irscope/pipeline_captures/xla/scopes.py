"""The operation that a scope of PyTorch/XLA names; scopes lie in each other."""

from __future__ import annotations

from irscope.pipeline_captures.openxla.lowering import node_of


def operation_of(scope: str) -> str:
    """The operation of the innermost scope: ``max_pool2d~m.py:7/relu~m.py:7/aten__relu`` → ``relu``; empty if there is none."""
    return next((node for part in reversed(scope.split("/")) if (node := node_of(part))), "")
