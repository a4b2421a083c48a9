"""What a script holds beside its compiled graphs: parameters, and the states of optimizers."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Iterable
from typing import Any

from irscope.internals import fake_run
from irscope.internals.hooks import Hook, Undo, replace_attribute

_VERSIONS = "2.11 and 2.13"


class Optimizers:
    """The optimizers of a run.

    Parameters
    ----------
    keeps
        Whether they are kept alive to the end, which costs nothing if their tensors have no storage.
    """

    def __init__(self, keeps: bool) -> None:
        self._keeps = keeps
        self._kept: list[Any] = []
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def hook(self) -> Hook:
        """What sees them being made."""

        def apply(module: types.ModuleType) -> Undo:
            initialize = module.Optimizer.__init__

            def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
                initialize(optimizer, *args, **kwargs)
                self._seen.add(optimizer)
                if self._keeps:
                    self._kept.append(optimizer)

            return replace_attribute(module.Optimizer, "__init__", made)

        return Hook("the memory of optimizers", "torch.optim.optimizer", _VERSIONS, apply)

    def state_bytes(self) -> int:
        """The bytes of all tensors in their states, as they are now."""
        torch: Any = sys.modules["torch"]
        return bytes_of(
            value
            for optimizer in list(self._seen)
            for state in list(optimizer.state.values())
            for value in (state.values() if isinstance(state, dict) else ())
            if isinstance(value, torch.Tensor)
        )


def parameters() -> list[Any]:
    """All parameters of the script that are alive, each once: without the fake tensors that Dynamo traces with."""
    torch: Any = sys.modules["torch"]
    tensors = (each for each in gc.get_objects() if issubclass(type(each), torch.Tensor))
    return [each for each in tensors if is_parameter(each) and fake_run.is_the_scripts(each)]


def is_parameter(tensor: Any) -> bool:
    """True also for a fake tensor that stands for a parameter."""
    return isinstance(tensor, sys.modules["torch"].nn.Parameter)


def bytes_of(tensors: Iterable[Any]) -> int:
    """The bytes of the elements of tensors, with the hint in place of a symbol; a dimension without one counts once."""
    total = 0
    for tensor in tensors:
        size = int(tensor.element_size())
        for length in tensor.shape:
            hint = length if isinstance(length, int) else getattr(length.node, "hint", None)
            size *= 1 if hint is None else int(hint)
        total += size
    return total
