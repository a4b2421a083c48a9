"""A part of a graph, compiled by itself with Inductor as it is set at this moment.

It does not use PyTorch's caches of graphs, and is not captured (see `irscope.pipeline_captures.inductor.value_run`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.internals.inductor_calls import compiled_graph, inductor_set
from irscope.values.run.copies import clones
from irscope.vocabulary.records import dataclass


@dataclass
class Region:
    """Some nodes of a graph as a separate graph.

    Args:
        module: Takes ``inputs`` and returns the values of ``outputs``.
        names: Names of the nodes that became its inputs.
        nodes: Names of the nodes in it, in order.
    """

    module: Any
    names: list[str]
    inputs: list[Any]
    outputs: list[str]
    nodes: list[str]


def region_of(nodes: Sequence[Any], value_of: Callable[[Any], Any], outputs: Sequence[str]) -> Region:
    """The nodes (in graph order) with everything that they use and that is not among them as inputs.

    Inputs that are not tensors become constants.
    """
    torch: Any = sys.modules["torch"]
    fx: Any = sys.modules["torch.fx"]
    graph, inside = fx.Graph(), set(nodes)
    mapping: dict[Any, Any] = {}
    constants: dict[Any, Any] = {}
    names: list[str] = []
    inputs: list[Any] = []
    for node in nodes:
        for used in node.all_input_nodes:
            if used in inside or used in mapping or used in constants:
                continue
            value = value_of(used)
            if isinstance(value, torch.Tensor):
                mapping[used] = graph.placeholder(used.name)
                names.append(used.name)
                inputs.append(value)
            else:
                constants[used] = value
    for node in nodes:
        args, kwargs = (
            fx.node.map_arg(part, lambda used: constants[used] if used in constants else mapping[used])
            for part in (node.args, node.kwargs)
        )
        new = graph.create_node(node.op, node.target, args, kwargs, name=node.name)
        new.meta = {key: value for key, value in node.meta.items() if key in ("stack_trace", "original_aten")}
        mapping[node] = new
    wanted = [node for node in nodes if node.name in set(outputs)]
    graph.output(tuple(mapping[node] for node in wanted))
    return Region(
        fx.GraphModule(torch.nn.Module(), graph), names, inputs, [n.name for n in wanted], [n.name for n in nodes]
    )


def compiled_outputs(region: Region, config: Mapping[str, Any], **patches: Any) -> list[Any]:
    """What the compiled region returns on its inputs.  Raises whatever Inductor raises."""
    uncached = {"fx_graph_cache": False, "fx_graph_remote_cache": False, **patches}
    with inductor_set(config, uncached):
        compiled = compiled_graph(_copied(region.module), clones(region.inputs))
        return list(compiled(clones(region.inputs)))


def _copied(module: Any) -> Any:
    """Inductor's passes change the graph that they get."""
    fx: Any = sys.modules["torch.fx"]
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    return fx.GraphModule(module, graph)


class Drawing:
    """Draws what compiled code draws: Inductor's own random operations, compiled for themselves, from the same seeds."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._known: dict[Any, Any] = {}

    def __call__(self, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of a random operation of Inductor's, as compiled code computes it from the same seeds."""
        torch: Any = sys.modules["torch"]
        if not any(isinstance(each, torch.Tensor) for each in args):
            return node.target(*args, **kwargs)  # the seeds themselves, where the compiled code's were not seen
        fx: Any = sys.modules["torch.fx"]
        graph = fx.Graph()
        inputs: list[Any] = []
        given: list[Any] = []
        for arg in args:
            if isinstance(arg, torch.Tensor):
                given.append(graph.placeholder(f"seed_{len(inputs)}"))
                inputs.append(arg)
            else:
                given.append(arg)
        drawn = graph.create_node("call_function", node.target, tuple(given), dict(kwargs), name=node.name)
        graph.output((drawn,))
        region = Region(fx.GraphModule(torch.nn.Module(), graph), [], inputs, [node.name], [node.name])
        return compiled_outputs(region, self._config)[0]
