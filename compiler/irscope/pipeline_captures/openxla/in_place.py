"""The executable that XLA made in place of the user's program, for the calls that it is right for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from irscope.internals.exporting import flatten, unflatten
from irscope.pipeline_captures.openxla.lowering import Input, Torchax


def is_plain(inputs: list[Input]) -> bool:
    """Whether XLA can take the tensors among the inputs as they are: dense, on the CPU, of no class of their own."""
    torch: Any = sys.modules["torch"]
    tensors = [one.value for one in inputs if isinstance(one.value, torch.Tensor)]
    kinds = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return all(type(one) in kinds and one.layout is torch.strided and one.device.type == "cpu" for one in tensors)


class Executable:
    """Calls what XLA made with the tensors of PyTorch.

    Args:
        compiled: JAX's executable; it takes the tensors among ``inputs``, in their order.
        exported: The exported program, which says what it returns.
    """

    def __init__(self, jax: Torchax, compiled: Callable[..., Any], inputs: list[Input], exported: Any) -> None:
        torch: Any = sys.modules["torch"]
        self._torch, self._jax, self._compiled = torch, jax, compiled
        self._inputs = [one for one in inputs if isinstance(one.value, torch.Tensor)]
        values: dict[str, Any] = {node.name: node.meta.get("val") for node in exported.graph.nodes}
        outputs = [one for one in exported.graph_signature.output_specs if one.kind.name == "USER_OUTPUT"]
        self._results = [(getattr(one.arg, "value", None), values.get(getattr(one.arg, "name", ""))) for one in outputs]
        self._tensors: list[Any] = [value for _, value in self._results if _is_tensor(value)]
        self._spec = exported.call_spec.out_spec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives for these arguments."""
        given = self.tensors(args, kwargs)
        with self._jax.exact():
            found = self._jax.run(self._compiled, *(self._jax.array(one) for one in given))
            return self.nested(self.separate(self._jax.tensor(one) for one in found))

    @property
    def are_floats(self) -> list[bool]:
        """For each tensor that the program returns whether it is of floating point."""
        return [one.dtype.is_floating_point or one.dtype.is_complex for one in self._tensors]

    def tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """What the executable takes for a call: weights as they are now, and tensors among the arguments."""
        leaves = flatten((args, kwargs))[0]
        return [one.value if one.number < 0 else leaves[one.number] for one in self._inputs]

    def separate(self, tensors: Iterable[Any]) -> list[Any]:
        """Copies of what the executable gave, with the strides that PyTorch would give them."""
        return [
            self._torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(tensor)
            for tensor, value in zip(tensors, self._tensors, strict=False)
        ]

    def nested(self, tensors: Iterable[Any]) -> Any:
        """What the program returns, with these tensors."""
        given = iter(tensors)
        return unflatten([next(given) if _is_tensor(value) else one for one, value in self._results], self._spec)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "stride")
