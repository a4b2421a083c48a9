"""The executable that TVM made in place of the user's program."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from irscope.internals.exporting import flatten, unflatten


class Executable:
    """Calls TVM's virtual machine as the user's program was called.

    Args:
        parameters: The names of what the function of Relax takes.
        core: The program that was imported.
        exported: The program as it was exported.
    """

    def __init__(self, executable: Any, parameters: tuple[str, ...], core: Any, exported: Any) -> None:
        self._torch: Any = sys.modules["torch"]
        self._tvm: Any = importlib.import_module("tvm")
        self._run = self._tvm.relax.VirtualMachine(executable, self._tvm.cpu())["main"]
        inputs = core.graph_signature.input_specs
        given = [spec.arg.name for spec in inputs if spec.kind.name == "USER_INPUT"]
        numbers = {name: number for number, name in enumerate(given)}
        kept = {spec.arg.name: core.state_dict[spec.target] for spec in inputs if spec.target in core.state_dict}
        self._inputs = [numbers[name] if name in numbers else kept[name] for name in parameters]
        self._values = _results_of(core)
        self._exported = exported
        self._spec = exported.call_spec.out_spec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives for these arguments."""
        leaves = flatten((args, kwargs))[0]
        given = [leaves[one] if isinstance(one, int) else one for one in self._inputs]
        found = self._run(*(self._tvm.runtime.from_dlpack(one.detach().contiguous()) for one in given))
        tensors = [self._separate(one, value) for one, value in zip(found, self._values, strict=True)]
        return unflatten(tensors, self._spec)

    def differs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """How the result for these arguments differs from that of the exported program; empty if it does not."""
        with self._torch.no_grad():
            found, expected = self(*args, **kwargs), self._exported.module()(*args, **kwargs)
        try:
            self._torch.testing.assert_close(found, expected, equal_nan=True)
        except AssertionError as error:
            told = " ".join(line.strip() for line in str(error).split("\n") if line.strip())
            return f"TVM computes other numbers ({told})"
        return ""

    def _separate(self, result: Any, value: Any) -> Any:
        """A copy of a result, with the strides that PyTorch would give it."""
        tensor = self._torch.from_dlpack(result)
        if any(type(one) is not int for one in (*value.shape, *value.stride())):
            return tensor.clone()
        return self._torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(tensor)


def unlike(core: Any) -> str:
    """Why TVM would not give what the program gives; empty if it does."""
    values = _results_of(core)
    if any(not hasattr(value, "stride") for value in values):
        return "it returns something that is not a tensor"
    if any(type(size) is not int for one in values for size in one.shape) and not all(map(_is_contiguous, values)):
        return "a result with dynamic sizes has strides that TVM does not have"
    kept = [*core.state_dict.values(), *core.constants.values()]
    tensors = [*kept, *(node.meta.get("val") for node in core.graph.nodes if node.op == "placeholder")]
    if any(one.device.type != "cpu" for one in tensors if hasattr(one, "stride")):
        return "irscope compiles it for the CPU, and its tensors are elsewhere"
    return ""


def _results_of(core: Any) -> list[Any]:
    """What is known about the results of the program, those that change its inputs left out."""
    values = {node.name: node.meta.get("val") for node in core.graph.nodes}
    outputs = [one for one in core.graph_signature.output_specs if one.kind.name == "USER_OUTPUT"]
    return [values.get(getattr(one.arg, "name", "")) for one in outputs]


def _is_contiguous(value: Any) -> bool:
    return bool(value.is_contiguous())
