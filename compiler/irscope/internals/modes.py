"""The modes in which PyTorch runs operations, and what it counts meanwhile."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Iterator
from typing import Any

from irscope.internals.names import PrivateName

_CHECKED = "2.9 to 2.15"
_WHAT = "values, computed outside of what the script is in"
_MODE = PrivateName("which operations run", "torch.utils._python_dispatch", "TorchDispatchMode", "2.13")
_INNERMOST = PrivateName("which operations run", "torch.utils._python_dispatch", "_get_current_dispatch_mode", "2.9")
_NO_MODES = PrivateName(_WHAT, "torch.utils._python_dispatch", "_disable_current_modes", _CHECKED)
_NO_AUTOCAST = PrivateName(_WHAT, "torch._C", "_DisableAutocast", _CHECKED)
_NO_FUNCTIONS = PrivateName("the sizes of arguments", "torch._C", "DisableTorchFunction", "2.13")
_NODE = PrivateName("the lines of a backward", "torch._C", "_current_autograd_node", "2.9")
_NEXT = PrivateName("the lines of a backward", "torch._C", "_autograd._get_sequence_nr", "2.9")
_COUNTERS = PrivateName(
    "values, computed without a trace in Dynamo's counters", "torch._dynamo.utils", "counters", _CHECKED
)


def dispatch_mode() -> Any:
    """The class from which a mode derives that sees each operation."""
    return _MODE.get()


def innermost_mode() -> Any:
    """The mode that sees operations first in this thread; None if there is none."""
    return _INNERMOST.get()()


@contextlib.contextmanager
def plain_modes() -> Iterator[None]:
    """What the script is in does not hold inside: autocast, gradients, inference mode, a mode that counts operations."""
    torch: Any = sys.modules["torch"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.no_grad())
        stack.enter_context(_NO_AUTOCAST.get()())
        stack.enter_context(_NO_MODES.get()())
        yield


def unseen() -> Any:
    """A context in which modes of the user's do not see that properties of tensors are read."""
    return _NO_FUNCTIONS.get()()


def sizes_of(tensor: Any) -> tuple[int, ...] | None:
    """The sizes of a plain tensor, without the knowledge of a mode of the user's; None if it has none (a nested one).

    A symbolic size, which has no value yet, is -1.
    """
    with unseen():
        if tensor.is_nested:
            return None
        return tuple(size if type(size) is int else -1 for size in tensor.shape)


@contextlib.contextmanager
def same_counters() -> Iterator[None]:
    """Dynamo's counters are afterwards what they were before."""
    counters = _COUNTERS.get()
    before = copy.deepcopy(counters)
    try:
        yield
    finally:
        counters.clear()
        counters.update(before)


def autograd_node() -> int | None:
    """The number of the forward's operation whose gradient autograd computes in this thread; None if it computes none."""
    node = _NODE.get()()
    return None if node is None else int(node._sequence_nr())


def sequence_number() -> int:
    """The number that autograd has given to the operation which runs now in this thread."""
    return int(_NEXT.get()()) - 1
