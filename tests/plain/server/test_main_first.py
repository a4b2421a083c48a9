"""Which of several things that one became a debugger's step in goes to."""

from __future__ import annotations

import pytest
from irscope.pipelines.registry import pipelines
from irscope.protocol import StageRef
from irscope.provenance.elements import Item, items_of
from irscope_server.base.main_first import in_order, weight

GRAPH = """
class G(torch.nn.Module):
    def forward(self, x: "f32[2]"):
        Constant_3: "f32[2]" = self.Constant_3
        storage: "f32[2]" = torch.ops.relax.vm.alloc_storage([128], 0)
        transpose_2: "f32[2]" = torch.ops.hlo.transpose(x, dimensions=[1, 0])
        add_4: "f32[2]" = torch.ops.hlo.add(x, transpose_2)
        dot_general_2: "f32[2]" = torch.ops.hlo.dot(x, transpose_2)
        return (dot_general_2,)
"""
TEXT = """\
%0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
%cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
%2 = stablehlo.multiply %arg1, %cst : tensor<16xf32>
%3 = stablehlo.dot_general %arg4, %0, contracting_dims = [1] x [0]
%0 = f32[4]{0} xla::device_data(), xla_shape=f32[4]{0}
%2 = f32[16,4]{0,1} aten::permute(%1), scope=t_1~script.py:11, xla_shape=f32[16,4]{0,1}
%7 = f32[2,16]{1,0} aten::addmm(%6, %5, %3), scope=addmm~script.py:11
f:f32[8,16] = transpose[permutation=(1, 0)] a
k:f32[2,16] = add j i"""


def graph_items() -> dict[str, Item]:
    return items_of(StageRef("0/0/hlo", "hlo", "python", 0), GRAPH, None).by_name


def test_what_computes_comes_before_layouts_and_these_before_what_is_given() -> None:
    items = graph_items()
    names = ["x", "Constant_3", "storage", "transpose_2", "add_4", "dot_general_2"]
    assert [weight("hlo", items[name], "") for name in names] == [3, 3, 3, 2, 1, 0]


def test_a_line_of_a_text_tells_its_operation() -> None:
    assert "stablehlo" in {stage.name for one in pipelines().values() for stage in one.stages}
    line = Item(next(iter(graph_items().values())).element)
    assert [weight("stablehlo", line, row) for row in TEXT.split("\n")] == [2, 3, 1, 0, 3, 2, 0, 2, 1]


@pytest.mark.parametrize("row", ["%cst = stablehlo.constant dense<1.0>", "", "=" * 10_000])
def test_lines_of_a_kernel_stay_as_they_are(row: str) -> None:
    line = Item(next(iter(graph_items().values())).element)
    assert weight("kernel", line, row) == 0


def test_siblings_stay_in_their_stage() -> None:
    siblings = [("near", 3), ("near", 0), ("far", 0), ("near", 1), ("far", 0)]
    assert in_order(siblings) == [1, 3, 0, 2, 4]
    assert in_order([]) == []
