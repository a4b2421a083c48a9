"""What PyTorch/XLA changes in PyTorch's dispatcher, and when it must be imported."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.names import PrivateName

_HAS_KERNEL = PrivateName("operations of lazy tensors", "torch._C", "_dispatch_has_kernel_for_dispatch_key", "2.9")
_IS_WRAPPER = PrivateName("operations of lazy tensors", "torch", "_is_functional_tensor", "2.9")
_WRAPPED = PrivateName("operations of lazy tensors", "torch", "_to_functional_tensor", "2.9")
_DECOMPOSITIONS = PrivateName("the backward of batch normalization", "torch._decomp", "get_decompositions", "2.9")
_INNER = PrivateName("operations of lazy tensors", "torch", "_from_functional_tensor", "2.9")


def hook(start: Callable[[], Undo]) -> Hook:
    """Calls ``start`` when torch has been imported, and what it returns at the end: autograd asks for the devices at the
    first backward, and never again."""

    def apply(_torch: types.ModuleType) -> Undo:
        return start()

    return Hook("lazy tensors", "torch", "2.9", apply)


def bridge_hook(around: Mapping[str, Callable[..., Any]]) -> Hook:
    """Calls ``around[name](function, …)`` in place of functions of the bridge between Dynamo and lazy tensors."""

    def apply(bridge: types.ModuleType) -> Undo:
        return undo_all(
            [
                replace_attribute(bridge, name, functools.partial(call, getattr(bridge, name)))
                for name, call in around.items()
            ]
        )

    return Hook("what the backend openxla compiles", "torch_xla._dynamo.dynamo_bridge", "2.9", apply)


def has_own_gradient(function: str) -> bool:
    """Whether PyTorch/XLA replaces a function as a whole, such as ``max_pool2d``, so that no mode sees what it does."""
    try:
        return bool(_HAS_KERNEL.get()(f"aten::{function}", "AutogradXLA"))
    except RuntimeError:  # PyTorch has no operator of this name
        return False


def instead_of(func: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """PyTorch's own decomposition of an operation that PyTorch/XLA 2.9 cannot compute; None for all others.

    The backward of a batch normalization in eval mode: PyTorch/XLA divides by the statistics of the batch, which there
    are none of, where it needs the running ones.
    """
    if str(func) != "aten.native_batch_norm_backward.default" or len(args) < 8 or args[7]:  # in training mode
        return None
    found: Any = _DECOMPOSITIONS.get()([func])
    return found.get(func)  # type: ignore[no-any-return]


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


def target_of(func: Any) -> str:
    """The name of an operation.  PyTorch/XLA has ``t_copy`` in place of the view ``t``, which has the name that people know."""
    target = str(func)
    name, overload = (*target.split(".")[1:], "", "")[:2]
    if not name.endswith("_copy"):
        return target
    view = name.removesuffix("_copy")
    operators: Any = sys.modules["torch"].ops.aten
    is_view = getattr(getattr(getattr(operators, view, None), overload, None), "is_view", False)
    return f"aten.{view}.{overload}" if is_view else target


def as_lazy(value: Any) -> Any:
    """A tensor of PyTorch/XLA in what keeps track of its views; any other value as it is."""
    is_new = getattr(getattr(value, "device", None), "type", "") == "xla" and not _IS_WRAPPER.get()(value)
    return _WRAPPED.get()(value) if is_new else value


def inner(tensor: Any) -> Any:
    """The tensor that operations see in place of one that a program has."""
    return _INNER.get()(tensor) if _IS_WRAPPER.get()(tensor) else tensor
