"""Models as OpenVINO 2026.4 writes them, shortened: after a pass, and as its CPU plugin runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.capture.operation_graphs import Operation, Tensor
from irscope.pipeline_captures.openvino.models import ModelReader, read_layers
from irscope.pipeline_captures.openvino.passes import changes_in

PROGRAM = [
    Operation("x", "placeholder", "x"),
    Operation("linear", "call_function", "aten.linear.default", ("x",), frames=(("net.py", 3, "forward"),)),
    Operation("relu", "call_function", "aten.relu.default", ("linear",), frames=(("net.py", 4, "forward"),)),
    Operation("output", "output", "output", ("relu",)),
]
PORT = '<port id="{0}" precision="FP32" names="{1}"><dim>-1</dim><dim>8</dim></port>'


def layer(id: int, name: str, type: str, data: str = "", names: str = "", fused: str = "") -> str:
    kept = f'<rt_info><attribute name="fused_names" version="0" value="{fused}"/></rt_info>' if fused else ""
    output = "" if type == "Result" else f"<output>{PORT.format(9, names)}</output>"
    return f'<layer id="{id}" name="{name}" type="{type}"><data {data}/>{kept}{output}</layer>'


def model(*layers: str, edges: str) -> str:
    drawn = "".join(
        f'<edge from-layer="{edge[0]}" from-port="9" to-layer="{edge[1]}" to-port="{number}"/>'
        for number, edge in enumerate(edges.split())
    )
    return f'<?xml version="1.0"?><net name="Model0"><layers>{"".join(layers)}</layers><edges>{drawn}</edges></net>'


CONVERTED = model(
    layer(0, "x", "Parameter", 'shape="?,8" element_type="f32"', "x"),
    layer(1, "Constant_3", "Const", 'offset="0" size="64"'),
    layer(2, "linear/aten.linear.default/MatMul", "MatMul", 'transpose_a="false" transpose_b="true"'),
    layer(3, "relu/aten.relu.default/Relu", "ReLU", names="relu:0"),
    layer(4, "Result_5", "Result"),
    edges="02 12 23 34",
)
RUN = model(
    layer(0, "x", "Input", 'originalLayersNames="x" primitiveType="unknown_f32"'),
    layer(1, "Constant_3", "Const", 'originalLayersNames="Constant_3" primitiveType="unknown_f32"'),
    layer(
        2,
        "linear/aten.linear.default/MatMul",
        "FullyConnected",
        'originalLayersNames="linear/aten.linear.default/MatMul,relu/aten.relu.default/Relu" primitiveType="gemm_f32"',
    ),
    layer(3, "Result_5", "Output", 'originalLayersNames="Result_5"'),
    edges="02 12 23",
)


def test_layers_of_a_model_have_their_inputs_in_order() -> None:
    product = read_layers(CONVERTED)[2]
    assert product.inputs == (("x", 0), ("Constant_3", 0))
    assert product.attributes == (("transpose_a", "false"), ("transpose_b", "true"))
    assert product.outputs == (Tensor("float32", ("?", 8)),)


def test_a_layer_came_from_the_node_in_its_name_and_a_fused_one_from_all_its_parts() -> None:
    reader = ModelReader(PROGRAM)
    converted = {one.name: one for one in reader.read(read_layers(CONVERTED))}
    assert list(converted) == ["x", "Constant_3", "linear_MatMul", "relu_Relu", "output"]
    assert converted["linear_MatMul"].sources == ("linear",)
    assert converted["linear_MatMul"].written == ("x", "Constant_3", "transpose_a=False", "transpose_b=True")
    assert converted["relu_Relu"].frames == (("net.py", 4, "forward"),)
    run = {one.name: one for one in reader.read(read_layers(RUN))}
    assert list(run) == ["x", "Constant_3", "relu_Relu", "output"]
    assert run["relu_Relu"].sources == ("linear_MatMul", "relu_Relu")
    assert run["output"].inputs == ("relu_Relu",)


def test_what_is_not_a_model_is_refused() -> None:
    with pytest.raises(ValueError, match="not a model of OpenVINO"):
        read_layers("<net><layers><layer/></layers></net>")


def test_only_passes_that_change_the_model_are_kept(tmp_path: Path) -> None:
    texts = {
        "Model2_000_InitNodeInfo": CONVERTED,
        "Model2_001_ov::pass::Validate": CONVERTED,
        "Model2_002_ov::pass::ConvertMatMulToFC": RUN,
        "Model7_000_Body": RUN,
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.xml").write_text(text)
    assert [one.name for one in changes_in(str(tmp_path))] == ["InitNodeInfo", "ConvertMatMulToFC"]
