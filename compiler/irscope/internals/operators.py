"""PyTorch's classes of operators, which are what the nodes of a graph call."""

from __future__ import annotations

from typing import Any

from irscope.internals.names import PrivateName

_OPERATOR = PrivateName("facts about the nodes of graphs", "torch._ops", "OpOverload", "2.9 to 2.15")
_HIGHER_ORDER = PrivateName("values of nodes that run a graph", "torch._ops", "HigherOrderOperator", "2.9 to 2.15")


def operator_class() -> Any:
    """The class of operators such as ``aten.mm.default``."""
    return _OPERATOR.get()


def is_higher_order(target: object) -> bool:
    """Whether what a node calls takes graphs as arguments, as ``torch.cond`` does."""
    return isinstance(target, _HIGHER_ORDER.get())
