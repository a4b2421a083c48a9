"""What PyTorch/XLA changes in PyTorch's dispatcher, and when it must be imported."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
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


_COMPOSITE = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd")
_MAY_BE_READ = {"data_dependent_output", "dynamic_output_shape"}


def may_cut(func: Any, kwargs: Mapping[str, Any]) -> bool:
    """Whether an operation may need the values of its inputs: it gives a number or a size that depends on them, copies
    them to the host, or has no implementation for XLA and runs on the host."""
    if {getattr(tag, "name", "") for tag in getattr(func, "tags", ())} & _MAY_BE_READ:
        return True
    device = kwargs.get("device")
    if device is not None and getattr(device, "type", device) != "xla":
        return True
    try:
        name = func.name()
        return not any(_HAS_KERNEL.get()(name, key) for key in ("XLA", *_COMPOSITE))
    except (AttributeError, RuntimeError):
        return False


def inner(tensor: Any) -> Any:
    """The tensor that operations see in place of one that a program has."""
    return _INNER.get()(tensor) if _IS_WRAPPER.get()(tensor) else tensor
