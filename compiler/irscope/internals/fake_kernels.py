"""The fake implementation of a custom operator: which function the script has registered."""

from __future__ import annotations

import sys
import types
from typing import Any

from irscope.internals.names import PrivateName
from irscope.vocabulary.records import dataclass

_WHAT = "the function that is registered as the fake implementation of an operator"
_VERSIONS = "2.13"
_DEFINITIONS = PrivateName(_WHAT, "torch._library.custom_ops", "OPDEFS", _VERSIONS)
_REGISTRY = PrivateName(_WHAT, "torch._library.simple_registry", "singleton", _VERSIONS)


@dataclass(frozen=True)
class FakeKernel:
    """A fake implementation: its code, and the names of the operator's arguments."""

    code: types.CodeType
    arguments: tuple[str, ...]


def fake_kernel(operator: str) -> FakeKernel | None:
    """The fake implementation of an operator, called ``library::name``; None if it has none in Python, or is not known."""
    function = getattr((_DEFINITIONS.find() or {}).get(operator), "_abstract_fn", None) or _registered(operator)
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return None
    return FakeKernel(code, _arguments(operator))


def _registered(operator: str) -> Any:
    """What ``torch.library.register_fake`` got, below PyTorch's own wrappers."""
    registry = _REGISTRY.find()
    kernels = getattr(registry.find(operator).fake_impl, "kernels", ()) if registry is not None else ()
    function = kernels[-1].func if kernels else None
    return getattr(function, "__wrapped__", function)


def _arguments(operator: str) -> tuple[str, ...]:
    library, _, name = operator.partition("::")
    overload = getattr(getattr(getattr(sys.modules["torch"].ops, library), name), "default", None)
    return tuple(argument.name for argument in getattr(getattr(overload, "_schema", None), "arguments", ()))
