"""The executable that XLA made in place of the user's program, for the calls that it is right for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from irscope.internals.exporting import flatten, unflatten
from irscope.pipelines.openxla.lowering import Input, Torchax


def returned_view(graph: Any) -> bool:
    """Whether a graph gives an input back, or a view of one: what XLA gives has memory of its own."""
    aliases = set()
    for node in graph.nodes:
        is_view = getattr(node.target, "is_view", False) and node.args and node.args[0] in aliases
        if node.op in ("placeholder", "get_attr") or is_view:
            aliases.add(node)
        elif node.op == "output":
            return any(one in aliases for one in node.all_input_nodes)
    return False


class Executable:
    """Calls what XLA made with the tensors of PyTorch.

    Parameters
    ----------
    compiled
        JAX's executable; it takes the tensors among ``inputs``, in their order.
    exported
        The exported program, which says what it returns.
    """

    def __init__(self, jax: Torchax, compiled: Callable[..., Any], inputs: list[Input], exported: Any) -> None:
        torch: Any = sys.modules["torch"]
        self._torch, self._jax, self._compiled = torch, jax, compiled
        self._inputs = [one for one in inputs if isinstance(one.value, torch.Tensor)]
        kept = [one for one in self._inputs if one.number < 0]
        with jax.exact():
            self._arrays = {one.name: jax.array(one.value) for one in kept}
        values = {node.name: node.meta.get("val") for node in exported.graph.nodes}
        outputs = [one for one in exported.graph_signature.output_specs if one.kind.name == "USER_OUTPUT"]
        self._results = [(getattr(one.arg, "value", None), values.get(getattr(one.arg, "name", ""))) for one in outputs]
        self._spec = exported.call_spec.out_spec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives for these arguments."""
        leaves = flatten((args, kwargs))[0]
        with self._jax.exact():
            arrays = [
                self._arrays[one.name] if one.number < 0 else self._jax.array(leaves[one.number])
                for one in self._inputs
            ]
            given = iter(self._compiled(*arrays))
            found = [
                self._result(next(given), value) if _is_tensor(value) else constant for constant, value in self._results
            ]
        return unflatten(found, self._spec)

    def _result(self, array: Any, value: Any) -> Any:
        """A separate tensor, with the strides that PyTorch would give it."""
        result = self._torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
        return result.copy_(self._jax.tensor(array))


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "stride")
