"""What nodes of a graph are called and coloured as, in the panel and in pictures."""

from __future__ import annotations

import pytest
from irscope.vocabulary.graph_looks import family_of, input_name, title_of


@pytest.mark.parametrize(
    ("operation", "title", "family"),
    [
        ("aten.addmm", "addmm", "matmul, convolution"),
        ("aten.add.Tensor", "add", "pointwise and others"),
        ("torch._C._nn.linear", "linear", "matmul, convolution"),
        ("aten._softmax", "_softmax", "normalization, reduction"),
        ("operator.getitem", "getitem", "view, layout"),
        ("flash_attention", "flash_attention", "attention"),
        ("aten.embedding", "embedding", "indexing, random"),
        ("aten.t", "t", "view, layout"),
        ("aten.tanh", "tanh", "pointwise and others"),
        ("aten.scaled_dot_product_attention", "scaled_dot_product_attention", "attention"),
        ("aten.constant_pad_nd", "constant_pad_nd", "pointwise and others"),
        ("prims.convert_element_type", "convert_element_type", "pointwise and others"),
        ("_c10d_functional.reduce_scatter_tensor", "_c10d_functional.reduce_scatter_tensor", "indexing, random"),
        ("onnx.MatMul", "onnx.MatMul", "matmul, convolution"),
        ("com_microsoft.FusedGemm", "com_microsoft.FusedGemm", "matmul, convolution"),
        ("onnx.LayerNormalization", "onnx.LayerNormalization", "normalization, reduction"),
        ("onnx.Resize", "onnx.Resize", "pointwise and others"),
        ("openvino.Convert", "openvino.Convert", "pointwise and others"),
        ("openvino.FullyConnected", "openvino.FullyConnected", "matmul, convolution"),
        ("relax.permute_dims", "relax.permute_dims", "view, layout"),
        ("tir.fused_matmul1_add1_gelu", "tir.fused_matmul1_add1_gelu", "matmul, convolution"),
        ("hlo.constant", "hlo.constant", "parameter, constant"),
        ("hlo.reduce", "hlo.reduce", "normalization, reduction"),
        ("hlo.broadcast", "hlo.broadcast", "view, layout"),
        ("hlo.select", "hlo.select", "pointwise and others"),
    ],
)
def test_titles_and_families_of_operations(operation: str, title: str, family: str) -> None:
    found = family_of("call", "n", operation)
    assert (title_of(operation), found and found.name) == (title, family)


def test_families_of_what_is_not_an_operation() -> None:
    inputs = ("x", "up_x", "l_self_parameters_w_", "p_first_weight", "b_norm_running_mean")
    kinds = [*(("placeholder", name) for name in inputs), ("get_attr", "c"), ("output", "output")]
    found = [family_of(kind, name, "") for kind, name in kinds]
    assert [each and each.name for each in found] == ["input", "input", *["parameter, constant"] * 4, None]
    assert input_name("l_self_modules_0_parameters_weight_") == "weight"
