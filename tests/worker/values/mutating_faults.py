"""Graphs with operators that write in which one step is wrong: each function makes the fault and compiles a graph.

`clone_of_input` is after pytorch#198031, a fault of PyTorch's own.
"""

from collections.abc import Callable
from typing import Any

import torch
from mutating_graphs import ROW, add_and_sum, shift_into
from torch._inductor import config, decomposition, lowering

aten = torch.ops.aten


def clone_of_input() -> None:
    @torch.compile
    def shifted(state: torch.Tensor) -> torch.Tensor:
        before = state.clone()
        shift_into(before, state)  # @pass
        return state + 1

    shifted(ROW.clone())


def only_an_input() -> None:
    @torch.compile
    def shifted(state: torch.Tensor) -> None:
        shift_into(state.clone(), state)  # @input

    shifted(ROW.clone())


def own_pass() -> None:
    def scale_sin(graph: Any) -> None:
        for node in graph.find_nodes(op="call_function", target=aten.sin.default):
            with graph.inserting_after(node):
                scaled = graph.call_function(aten.mul.Tensor, (node, 1.01))
            scaled.meta.update(node.meta)
            node.replace_all_uses_with(scaled)
            scaled.args = (node, 1.01)

    @torch.compile
    def written(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()  # @own
        add_and_sum(y, 1.0)
        return y * 2

    with config.patch(post_grad_custom_post_pass=scale_sin):
        written(ROW.clone())


def own_lowering() -> None:
    right: Callable[..., Any] = lowering.lowerings[aten.erf.default]
    lowering.lowerings[aten.erf.default] = lambda x: lowering.mul(right(x), 1.01)

    @torch.compile
    def written(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        add_and_sum(y, 1.0)
        return y.erf()  # @lowering

    written(ROW.clone())
    lowering.lowerings[aten.erf.default] = right


def own_decomposition() -> None:
    right = decomposition.decompositions[aten.gelu.default]
    wrong = lambda x, approximate="none": x * torch.sigmoid(1.7 * x)  # noqa: E731
    decomposition.decompositions[aten.gelu.default] = wrong
    decomposition.fast_random_decomps.cache_clear()

    @torch.compile
    def written(x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(x)  # @step
        add_and_sum(y, 1.0)
        return y * 2

    written(ROW.clone())
    decomposition.decompositions[aten.gelu.default] = right


if __name__ == "__main__":
    for fault in (clone_of_input, only_an_input, own_pass, own_lowering, own_decomposition):
        fault()

# mypy: disable-error-code="untyped-decorator"
