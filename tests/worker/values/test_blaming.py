"""Which pass changed what a graph computes, on graphs made by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from irscope.values.blame.blaming import Blame, PassCheck, Version
from irscope.values.blame.steps import CannotCompare, StepCheck, _Run
from irscope.values.run.interpreting import KeptGraph


@torch.library.custom_op("irscope_tests::third", mutates_args=())
def third(x: torch.Tensor) -> torch.Tensor:
    if x.dtype is not torch.float16:
        raise NotImplementedError("has no other form")
    return x / 3


class NothingDrawn:
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
    check = PassCheck(lambda: inputs, {}, None, NothingDrawn())  # type: ignore[arg-type]
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


def test_metadata_that_is_not_there_is_told() -> None:
    """In a version of PyTorch that describes its graphs in another way nothing is compared in silence."""
    mul = graph(torch.ops.aten.mul.Tensor, 2.0)
    inputs = {"x": torch.ones(4, dtype=torch.float16)}
    check = PassCheck(lambda: inputs, {}, None, NothingDrawn())  # type: ignore[arg-type]
    found, [note] = check.blame([Version("joint-graph", "", mul), Version("post-grad-graph", "", mul)])
    assert found == [] and "its outputs are not described" in note
    with pytest.raises(CannotCompare, match="its inputs are not described"):
        StepCheck(mul, mul, lambda: inputs)
    placed = next(node for node in mul.graph.nodes if node.op == "placeholder")
    placed.meta["desc"] = type("PlainAOTInput", (), {"idx": 0})()
    step = StepCheck(mul, mul, lambda: inputs)
    run = _Run(values=dict.fromkeys(mul.graph.nodes, torch.ones(4)))
    assert step._forward_blame(run, run, run, 2.0).node == ""
    assert step._backward_blame(run, run, 2.0).node == ""
    assert [note.partition(": ")[2].partition(" (")[0] for note in step.notes] == [
        "nodes have no from_node", "nodes have no from_node and no seq_nr and no partitioner_tag",
    ]  # fmt: skip
