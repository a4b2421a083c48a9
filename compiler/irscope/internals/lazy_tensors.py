"""What PyTorch/XLA changes in PyTorch's dispatcher, and when it must be imported."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo
from irscope.internals.names import PrivateName

_HAS_KERNEL = PrivateName("operations of lazy tensors", "torch._C", "_dispatch_has_kernel_for_dispatch_key", "2.9")
_IS_WRAPPER = PrivateName("operations of lazy tensors", "torch", "_is_functional_tensor", "2.9")
_INNER = PrivateName("operations of lazy tensors", "torch", "_from_functional_tensor", "2.9")


def hook(start: Callable[[], None]) -> Hook:
    """Calls ``start`` when torch has been imported: autograd asks for the devices at the first backward, and never again."""

    def apply(_torch: types.ModuleType) -> Undo:
        start()
        return lambda: None

    return Hook("lazy tensors", "torch", "2.9", apply)


def has_own_gradient(function: str) -> bool:
    """Whether PyTorch/XLA replaces a function as a whole, such as ``max_pool2d``, so that no mode sees what it does."""
    try:
        return bool(_HAS_KERNEL.get()(f"aten::{function}", "AutogradXLA"))
    except RuntimeError:  # PyTorch has no operator of this name
        return False


def inner(tensor: Any) -> Any:
    """The tensor that operations see in place of one that a program has."""
    return _INNER.get()(tensor) if _IS_WRAPPER.get()(tensor) else tensor
