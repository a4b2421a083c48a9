"""What in a script makes a full run find other things than Dynamo with an eager backend.

Where AOTAutograd shows it, the fast lane runs that.  What only Inductor or the backward shows is said, as a gap of the
run.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Sequence
from typing import Any

from irscope.internals.frames import report
from irscope.internals.hooks import Hook, Undo, replace_attribute
from irscope.protocol import FULL_RUN, CaptureGap

_PYTORCHS_OWN = ("aten", "prim", "prims", "quantized", "inductor", "_c10d_functional")
"""Namespaces of operators that PyTorch registers."""
_HIGHER_ORDER = "higher_order"
_LOOPS = ("while_loop", "scan", "associative_scan", "map", "map_impl")
"""Operators whose backward AOTAutograd compiles by itself."""


def takes_aot(graph: Any, inputs: Sequence[Any], always: bool) -> bool:
    """Whether AOTAutograd is to run a graph: wherever it works, or where it may refuse what eager mode runs, or compile it
    for fewer inputs.

    It compiles for one value of a number that it cannot make a tensor, so that the next value compiles again.  It traces
    the backward ahead, for which custom operators may have no formula, and which reads by a mask what was written by it:
    a result whose size depends on data.  It takes apart tensor subclasses that can be.
    Operations on the others fail after AOTAutograd where nothing makes kernels of them, as Inductor does.
    """
    torch: Any = sys.modules["torch"]
    plain = (torch.nn.Parameter, torch._subclasses.FakeTensor)
    tensors = [given for given in inputs if isinstance(given, torch.Tensor) and not isinstance(given, plain)]
    subclasses = [type(tensor) for tensor in tensors if type(tensor) is not torch.Tensor]
    if not all(hasattr(subclass, "__tensor_flatten__") for subclass in subclasses):
        return False
    if always or subclasses:
        return True
    return any(
        isinstance(node.meta.get("example_value"), torch.SymFloat) or _is_custom(node.target) or _writes_by_mask(node)
        for node in graph.graph.nodes
    )


def _writes_by_mask(node: Any) -> bool:
    """Whether an operation is ``x[mask] = values``, where ``values`` is a tensor, or ``index_put`` with a mask."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if node.target is not operator.setitem and name.rstrip("_") != "index_put":
        return False
    index, values = [*node.args, *node.kwargs.values()][1:3]
    indices = index if isinstance(index, (tuple, list)) else [index]
    return _example(values) is not None and any(
        getattr(_example(part), "dtype", None) == sys.modules["torch"].bool for part in indices
    )


def _example(argument: Any) -> Any:
    """The fake tensor that a node of a graph stands for; None for all else."""
    return getattr(argument, "meta", {}).get("example_value")


def _is_custom(target: Any) -> bool:
    namespace = _namespace(target)
    if namespace == _HIGHER_ORDER:
        return target.name() in _LOOPS
    return namespace not in ("", *_PYTORCHS_OWN)


def _namespace(target: Any) -> str:
    """Of an operator, or of all its overloads, as ``torch.ops.own.twice`` is; empty for what is none."""
    found = getattr(target, "namespace", None) or getattr(target, "_qualified_op_name", "").partition("::")[0]
    return found if isinstance(found, str) else ""


def report_what_inductor_shows(graph: Any, inputs: Sequence[Any], has_cuda_graphs: bool) -> None:
    """Says why Inductor may compile again where Dynamo does not, or fail."""
    torch: Any = sys.modules["torch"]
    sizes = [value for node in graph.graph.nodes if isinstance(value := node.meta.get("example_value"), torch.SymInt)]
    if sizes:
        _say("Inductor may compile a graph with sizes that vary again for some of them")
    if any(str(size).startswith("u") for size in sizes):
        _say("Inductor may fail on a size that depends on the data of a tensor")
    if any(_is_custom(node.target) and _namespace(node.target) != _HIGHER_ORDER for node in graph.graph.nodes):
        _say("Inductor may fail on a custom operator: it lowers it, and checks what its fake kernel says of strides")
    is_on_gpu = any(getattr(getattr(given, "device", None), "type", "") == "cuda" for given in inputs)
    if is_on_gpu and not torch.cuda.is_available():
        _say("Inductor may fail for a GPU that this machine does not have")
    if is_on_gpu and has_cuda_graphs:
        _say("CUDA graphs keep the memory of results, and may record again")


def report_what_identity_shows() -> None:
    """Says that the guards that fail on another object may be others in a full run."""
    _say("whether an object is another one depends on when Python frees the first one")


def kept_backwards() -> Hook:
    """Says that a full run may fail where a script differentiates the backward, or runs it twice: compiled code cannot."""

    def apply(autograd: types.ModuleType) -> Undo:
        original = autograd.__dict__["_engine_run_backward"]

        @functools.wraps(original)
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            _gradients, keeps, *_ = args
            if keeps:
                _say("compiled code may refuse to run its backward twice, or to differentiate it")
            return original(outputs, *args, **kwargs)

        return replace_attribute(autograd, "_engine_run_backward", run)

    return Hook("whether a backward is kept", "torch.autograd", "2.9 to 2.13", apply)


def _say(why: str) -> None:
    report(CaptureGap(FULL_RUN, why))
