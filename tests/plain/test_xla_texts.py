"""What is read from the texts of PyTorch/XLA, as they were recorded for ``torch.relu(x @ w)`` (torch_xla 2.9.0)."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

from irscope.capture.operation_graphs import Operation, Tensor
from irscope.pipeline_captures.xla.findings import difference
from irscope.pipeline_captures.xla.frames import BEFORE_STEP, asked_by
from irscope.pipeline_captures.xla.graphs import operation_of
from irscope.pipeline_captures.xla.texts import lazy_lines, stablehlo_lines

LAZY = """\
IR {
  %0 = f32[3,4]{1,0} xla::device_data(), location=__call__@_ops.py:841, xla_shape=f32[3,4]{1,0}
  %1 = f32[2,3]{1,0} xla::device_data(), location=__call__@_ops.py:841, xla_shape=f32[2,3]{1,0}
  %2 = f32[2,4]{1,0} aten::mm(%1, %0), scope=mm~net.py:5.4, location=__call__@_ops.py:841, xla_shape=f32[2,4]{1,0}
  %3 = f32[2,4]{1,0} aten::relu(%2), scope=outer~net.py:6.5/relu~net.py:6.6/aten::relu.1, location=__call__@_ops.py:841, xla_shape=f32[2,4]{1,0}, ROOT=0
}
"""
STABLEHLO = """\
#loc1 = /tmp/net.py:6:0
#loc7 = "<module>"(#loc1)
#loc14 = #loc7
 at #loc1
#loc17 = "mm~net.py_5.4/aten__mm"(#loc14)
module @IrToHlo.9 attributes {mhlo.is_dynamic = false} {
  func.func @main(%arg0: tensor<3x4xf32> "mm~net.py_5.4/xla__device_data"(#loc7), %arg1: tensor<2x3xf32> "xla__device_data"(#loc7)) -> tensor<2x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x4xf32> "relu~net.py_6.6/aten__relu"(#loc17)
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32> "mm~net.py_5.4/aten__mm"(#loc17)
    %1 = stablehlo.maximum %0, %cst : tensor<2x4xf32> "relu~net.py_6.6/aten__relu"(#loc17)
    return %1 : tensor<2x4xf32> [unknown]
  } [unknown]
} [unknown]
"""


def test_the_innermost_scope_names_the_operation() -> None:
    assert operation_of("outer~net.py_6.5/relu~net.py_6.6/aten__relu") == "relu"
    assert operation_of("aten__relu") == operation_of("") == ""


def test_lines_of_lazy_ir_have_operations_and_no_places_in_pytorch() -> None:
    text, lines = lazy_lines(LAZY, operation_of)
    assert lines == [(4, "mm"), (5, "relu")]
    assert "_ops.py" not in text
    assert "aten::mm(%1, %0), scope=mm~net.py:5, xla_shape" in text
    assert "scope=outer~net.py:6/relu~net.py:6/aten::relu.1, xla_shape" in text


def test_lines_of_stablehlo_lead_to_lines_of_lazy_ir() -> None:
    above = [(4, "mm"), (5, "relu")]
    text, lines, of_scope = stablehlo_lines(STABLEHLO, above, operation_of)
    assert "loc" not in text and "aten__" not in text and "unknown" not in text
    assert text.startswith("module @IrToHlo.9")
    assert lines == [(3, "5"), (4, "4"), (5, "5")]
    assert of_scope == {"relu~net.py_6.6/aten__relu": ["3", "5"], "mm~net.py_5.4/aten__mm": ["4"]}


def graph(size: int, target: str = "aten.relu.default") -> list[Operation]:
    value = Tensor("float32", (size, 3))
    return [
        Operation("x", "placeholder", "x", value=value),
        Operation("y", "call_function", target, ("x",), ("x",), value, (("/home/me/net.py", 7, "f"),)),
    ]


def test_what_changed_between_two_graphs() -> None:
    assert difference(graph(2), graph(5)) == ("x was f32[2, 3], now f32[5, 3]", ())
    what, [related] = difference(graph(2), graph(2, "aten.tanh.default"))
    assert what == "y was aten.relu.default(x), now aten.tanh.default(x)"
    assert (related.file, related.range.start.line) == ("/home/me/net.py", 7)
    assert difference(graph(2), graph(2))[0].startswith("a number that is a constant")
    assert difference(graph(2), graph(2)[:1]) == ("it had 1 operations, now 0", ())


def test_an_input_of_another_size_leads_to_the_line_that_moved_it() -> None:
    def moved(size: int) -> list[Operation]:
        first, *rest = graph(size)
        return [
            dataclasses.replace(
                first, frames=(("/home/me/net.py", 3, "main"), ("/usr/lib/python3/site-packages/torch/_ops.py", 1, "f"))
            ),
            *rest,
        ]

    what, [related] = difference(moved(2), moved(5))
    assert what == "x was f32[2, 3], now f32[5, 3]"
    assert (related.file, related.range.start.line) == ("/home/me/net.py", 3)


XLA = "/x/site-packages/torch_xla/"


def told_of(*frames: tuple[str, str]) -> str:
    """What the user called, from file and function of each frame, innermost first."""
    codes = [SimpleNamespace(co_filename=file, co_name=function) for file, function in frames]
    return asked_by(SimpleNamespace(f_code=code) for code in codes)  # type: ignore[misc]


def test_who_asks_for_the_values_is_what_the_user_called() -> None:
    user, sync = ("/home/me/net.py", "main"), (f"{XLA}torch_xla.py", "sync")
    assert told_of(sync, user) == "sync"
    assert told_of(sync, (f"{XLA}core/xla_model.py", "optimizer_step"), user, sync) == "optimizer_step"
    leaves = ((f"{XLA}torch_xla.py", "_compile"), ("/usr/lib/python3/contextlib.py", "__exit__"), user)
    assert told_of(sync, *leaves) == "step"
    assert told_of(sync, (f"{XLA}torch_xla.py", "_clear_pending_ops_before_compile"), *leaves) == BEFORE_STEP
    assert told_of(sync, (f"{XLA}_dynamo/dynamo_bridge.py", "extract_graph_helper"), user) == "openxla"
