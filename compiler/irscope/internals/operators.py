"""PyTorch's classes of operators, which are what the nodes of a graph call."""

from __future__ import annotations

import sys
from typing import Any

from irscope.internals.names import PrivateName

_OPERATOR = PrivateName("facts about the nodes of graphs", "torch._ops", "OpOverload", "2.9 to 2.15")
_STEPS = PrivateName("steps of transforms that no cache keeps", "torch._functorch.predispatch", "", "2.13")
_HIGHER_ORDER = PrivateName("values of nodes that run a graph", "torch._ops", "HigherOrderOperator", "2.9 to 2.15")


def operator_class() -> Any:
    """The class of operators such as ``aten.mm.default``."""
    return _OPERATOR.get()


def is_higher_order(target: object) -> bool:
    """Whether what a node calls takes graphs as arguments, as ``torch.cond`` does."""
    return isinstance(target, _HIGHER_ORDER.get())


def is_higher_order_name(name: str) -> bool:
    """Whether an operator of this name takes functions, as ``while_loop`` does."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and hasattr(torch.ops.higher_order, name)


def is_pytorchs_operator(name: str) -> bool:
    """Whether PyTorch itself defines what a graph calls by this name: an operator that takes functions, or a step of a
    transform, such as ``_jvp_increment_nesting``."""
    return is_higher_order_name(name) or (name.startswith("_") and hasattr(_STEPS.find(), name))


def falls_back_by_default() -> bool:
    """Whether Inductor is to generate code for those operations alone that are marked: the mode ``lite`` (2.11 to 2.14)."""
    return getattr(sys.modules.get("torch._inductor.config"), "fallback_by_default", False) is True
