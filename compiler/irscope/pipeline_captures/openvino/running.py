"""OpenVINO's compiled model, called as the user's program was."""

from __future__ import annotations

import sys
from typing import Any

from irscope.internals.exporting import flatten, unflatten
from irscope.pipeline_captures.export.in_place import draws_random_numbers


class Runnable:
    """A compiled model with the arguments and results of the program.

    Args:
        model: The converted model.  Its inputs get the sizes of the exported program, and those that nothing uses are
            removed.
        module: The graph module that was converted: its inputs are the leaves of the arguments, in their order.
    """

    def __init__(self, model: Any, module: Any, exported: Any) -> None:
        self._torch: Any = sys.modules["torch"]
        self.compiled: Any = None
        self.result_spec = exported.call_spec.out_spec
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        sizes: dict[Any, list[int]] = {}
        self._numbers: list[int] = []
        for parameter in list(model.get_parameters()):
            result = parameter.output(0)
            if not result.get_target_inputs():
                model.remove_parameter(parameter)
                continue
            names = {parameter.get_friendly_name(), *result.get_names()}
            number = next(at for at, node in enumerate(inputs) if names & {node.name, str(node.target)})
            self._numbers.append(number)
            shape = getattr(inputs[number].meta.get("val"), "shape", None)
            if shape is not None:
                sizes[result] = [size if type(size) is int else -1 for size in shape]
        if sizes:
            model.reshape(sizes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        leaves = flatten((args, kwargs))[0]
        given = [leaves[number].detach().numpy() for number in self._numbers]
        results = self.compiled(given)
        tensors = [self._torch.from_numpy(results[number]) for number in range(len(self.compiled.outputs))]
        return unflatten(tensors, self.result_spec)


def unlike(model: Any, runnable: Runnable, core: Any) -> str:
    """Why a model would not compute what the program computes; empty if it does.

    Args:
        core: The program in core ATen, which has no dropout but that of training; OpenVINO leaves that out.
    """
    types = {output.get_element_type().get_type_name() for op in model.get_ops() for output in op.outputs()}
    if "f64" in types:
        return "it computes in float64, and OpenVINO would compute that in float32"
    if {"bf16", "f16"} & types:
        return "it computes in a half precision, and OpenVINO would compute that in float32"
    if any(output.get_element_type().get_type_name() in ("i64", "u64") for output in model.outputs):
        return "it returns 64-bit integers, and OpenVINO would compute them in 32 bits"
    if draws_random_numbers(core.graph):
        return "it draws random numbers, and OpenVINO would draw others"
    if len(model.outputs) != runnable.result_spec.num_leaves:
        return "it returns something that is not a tensor"
    return ""
