"""What a script holds beside its compiled graphs: parameters, and the states of optimizers."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
import types
import weakref
from collections.abc import Iterable
from typing import Any

from irscope.internals import fake_run
from irscope.internals.frames import report
from irscope.internals.hooks import Hook, Undo, replace_attribute
from irscope.protocol import CaptureGap

_VERSIONS = "2.11 and 2.13"
CUBLAS_WORKSPACES = (4096 * 8 * 1024, 4096 * 2 * 1024 + 16 * 8 * 1024)
"""What PyTorch gives cuBLAS for each of its threads, in bytes: on Hopper and later, and before (CUDABlas.cpp of 2.11)."""


class Optimizers:
    """The optimizers of a run.

    Args:
        keeps: Whether they are kept alive to the end, which costs nothing if their tensors have no storage.
    """

    def __init__(self, keeps: bool) -> None:
        self.step_bytes = 0
        """The most bytes that a step of one of PyTorch's optimizers makes beside its states."""
        self._keeps, self._is_weighing = keeps, False
        self._kept: list[Any] = []
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def hook(self) -> Hook:
        """What sees them being made."""

        def apply(module: types.ModuleType) -> Undo:
            initialize = module.Optimizer.__init__

            def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
                initialize(optimizer, *args, **kwargs)
                if self._is_weighing:
                    return
                self._seen.add(optimizer)
                if self._keeps:
                    self._kept.append(optimizer)
                self._weigh(optimizer)

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

    def _weigh(self, optimizer: Any) -> None:
        if not type(optimizer).__module__.startswith("torch.optim."):
            return
        self._is_weighing = True
        try:
            self.step_bytes = max(self.step_bytes, _made_by_step(sys.modules["torch"], optimizer))
        except Exception as error:  # noqa: BLE001  an optimizer that cannot be made from its groups
            report(CaptureGap("what a step of the optimizer needs beside its states", repr(error)))
        finally:
            self._is_weighing = False


def _made_by_step(torch: Any, optimizer: Any) -> int:
    """Bytes, measured on a copy of PyTorch's optimizer with tensors that have no storage.

    A GPU takes all parameters at once (``foreach``) where the script does not say otherwise, so the copy does, too.
    """
    fakes: Any = importlib.import_module("torch._subclasses.fake_tensor")
    step = inspect.unwrap(type(optimizer).step)  # without the hooks of the script
    with fakes.unset_fake_temporarily(), fakes.FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        groups = [
            {**group, "params": [torch.empty(tuple(each.shape), dtype=each.dtype) for each in group["params"]]}
            for group in optimizer.param_groups
        ]
        for group in groups:
            if group.get("foreach", False) is None and not group.get("fused"):
                group["foreach"] = True
            for each in group["params"]:
                each.requires_grad_()
                each.grad = torch.empty_like(each)
        copy = type(optimizer)(groups)
        step(copy)  # makes the states
        with _counting(torch) as count:
            step(copy)
    return int(count.most)


def _counting(torch: Any) -> Any:
    """A mode with ``most``: the bytes of storages that operators made in it and that were alive at the same time."""

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
        live = most = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = {id(each.untyped_storage()) for each in tensors_in(torch, (args, kwargs))}
            result = func(*args, **(kwargs or {}))
            for each in tensors_in(torch, result):
                storage = each.untyped_storage()
                if id(storage) not in given:
                    size = int(storage.nbytes())
                    self.live += size
                    weakref.finalize(each, self._freed, size)
            self.most = max(self.most, self.live)
            return result

        def _freed(self, size: int) -> None:
            self.live -= size

    return Counting()


def tensors_in(torch: Any, given: Any) -> list[Any]:
    """The tensors in nested arguments.  Checked on torch 2.9 to 2.15."""
    leaves = torch.utils._pytree.tree_leaves(given)
    return [each for each in leaves if isinstance(each, torch.Tensor)]


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
