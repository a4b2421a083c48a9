"""Which pass changed what a graph computes, on graphs made by hand."""

from __future__ import annotations

from typing import Any

import torch
from irscope.values.blaming import Blame, PassCheck, Version
from irscope.values.interpreting import KeptGraph


@torch.library.custom_op("irscope_tests::third", mutates_args=())
def third(x: torch.Tensor) -> torch.Tensor:
    if x.dtype is not torch.float16:
        raise NotImplementedError("has no other form")
    return x / 3


class Moment:
    def rewind(self) -> None:
        pass


def graph(target: Any, *constants: float) -> KeptGraph:
    made = torch.fx.Graph()
    x = made.placeholder("x")
    x.meta["val"] = torch.empty(4, dtype=torch.float16, device="meta")
    node = made.call_function(target, (x, *constants))
    node.meta["val"] = torch.empty(4, dtype=torch.float16, device="meta")
    made.output((node,))
    return KeptGraph(torch.fx.GraphModule(torch.nn.Module(), made))


def blamed(*kept: KeptGraph) -> list[Blame]:
    inputs = {"x": torch.tensor([0.1, 0.2, 0.7, 5.0], dtype=torch.float16)}
    check = PassCheck(lambda: inputs, {}, None, Moment())  # type: ignore[arg-type]  # nothing is drawn
    found, notes = check.blame([Version("joint-graph", f"pass {n}" if n else "", each) for n, each in enumerate(kept)])
    assert notes == []
    return found


def test_a_pass_that_changes_numbers_is_blamed() -> None:
    div = torch.ops.aten.div.Tensor
    [blame] = blamed(graph(div, 3.0), graph(torch.ops.aten.mul.Tensor, 1 / 3), graph(div, 3.001))
    assert (blame.name, blame.stage) == ("pass 2", "joint-graph")


def test_roundings_of_an_operation_that_has_no_float64_form_are_not_blamed_on_a_pass() -> None:
    assert blamed(graph(torch.ops.aten.div.Tensor, 3.0), graph(torch.ops.irscope_tests.third.default)) == []


def test_results_that_are_several_tensors_are_compared_one_by_one() -> None:
    sort = torch.ops.aten.sort.default
    assert blamed(graph(sort, -1, False), graph(sort, -1, False)) == []
    assert [blame.name for blame in blamed(graph(sort, -1, False), graph(sort, -1, True))] == ["pass 1"]
