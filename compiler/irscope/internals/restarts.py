"""Restarts of Dynamo that a compile asks for.

With dynamic shapes a Python float is an input of the graph.  Where an operation cannot take it as one, AOTAutograd notes its
name, and Dynamo traces the function again with the number as a constant (``torch.fx.passes._tensorify_python_scalars``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from irscope.internals.names import PrivateName

_WHAT = "kernels of programs with Python floats that change"
_ERROR = PrivateName(_WHAT, "torch._dynamo.exc", "TensorifyScalarRestartAnalysis", "2.11 and 2.13")
_NAMES = PrivateName(_WHAT, "torch._dynamo.symbolic_convert", "TensorifyState.force_specializations", "2.11 and 2.13")


def is_restart(error: BaseException) -> bool:
    """Whether a compile has ended so that Dynamo traces its function again."""
    kind = _ERROR.find()
    return kind is not None and isinstance(error, kind)


def constants() -> list[str]:
    """The names of the numbers that are constants from the next trace on."""
    return sorted(_NAMES.get())


def restart(names: Iterable[str]) -> None:
    """Asks Dynamo for another trace, with these numbers as constants.  Raises what Dynamo catches for that."""
    _NAMES.get().update(names)
    raise _ERROR.get()


def has_floats(program: Any) -> bool:
    """Whether a graph of Dynamo's has Python floats among its inputs, so that its compile may ask for a restart."""
    torch: Any = sys.modules["torch"]
    nodes = program.graph.nodes if hasattr(program, "graph") else ()
    given = [node.meta.get("example_value") for node in nodes if node.op == "placeholder"]
    # Dynamo passes the number in a tensor without dimensions, and takes it out of it with item().
    return any(isinstance(each, torch.Tensor) and not each.dim() and each.dtype is torch.float64 for each in given)
