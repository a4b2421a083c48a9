"""While a graph is lowered to Inductor's IR and its code is written no metadata of nodes is copied.

Provenance tracking lets every interpreter of a graph copy each node's metadata, its ancestors among them, for the nodes
that are made meanwhile.  The passes need that.  Lowering makes no node that anybody sees, but interprets the graph
once and the body of each loop many times: copying is as much work there as printing all of the IR.  Without provenance
tracking PyTorch copies nothing there either, so the code is that of a run without irscope.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute

_SETTING = "should_preserve_node_meta"
_METHODS = ("run", "codegen", "codegen_with_cpp_wrapper")


def hook() -> Hook:
    """The hook that turns the copying off."""
    return Hook(
        "lowering without copies of metadata: it takes longer", "torch._inductor.graph", "2.9 to 2.15", _copy_nothing
    )


def _copy_nothing(graph: types.ModuleType) -> Undo:
    lowering: Any = graph.GraphLowering
    traceback = sys.modules["torch.fx.traceback"]
    if not hasattr(traceback, _SETTING):
        raise AttributeError(f"torch.fx.traceback has no {_SETTING}")
    undo = [replace_attribute(lowering, name, _without(getattr(lowering, name), traceback)) for name in _METHODS]

    def restore() -> None:
        for step in undo:
            step()

    return restore


def _without(method: Any, traceback: types.ModuleType) -> Any:
    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        before = getattr(traceback, _SETTING)
        setattr(traceback, _SETTING, False)  # by its context manager it cannot be turned off in torch 2.9
        try:
            return method(*args, **kwargs)
        finally:
            setattr(traceback, _SETTING, before)

    return called
