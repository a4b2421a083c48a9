"""Kernels and their origins in output code: C++ of torch 2.13 on a CPU, Triton of torch 2.11 on a real H100."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from facts import a_kernel
from irscope.ir import kernels
from irscope.ir.graph_statements import GraphNode
from irscope.ir.graphs import Graph, parse_graph
from irscope.ir.kernels import kernels_in, origins_from_comments, origins_from_stacks
from irscope.protocol import Origin, library_calls
from irscope.usercode import user_files as usercode

HERE = Path(__file__).parent
MODEL = "/home/me/model.py"


def output_code(name: str) -> str:
    return (HERE / "output_code" / f"{name}.txt").read_text()


def stacks(name: str) -> str:
    return (HERE / "output_code" / f"{name}_stacks.json").read_text()


@pytest.fixture
def torch_folder(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "site-packages" / "torch"
    usercode.set_torch_folder(str(folder))
    yield str(folder)
    usercode._torch.clear()
    usercode._forget()


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        (
            "cpp",
            [("cpp_fused_mul_relu_sum_threshold_backward_0", "cpp"), ("extern_kernels.mm", "extern")],
        ),
        (
            "cpp_backward",
            [("cpp_fused_expand_mul_threshold_backward_0", "cpp"), ("extern_kernels.mm", "extern")],
        ),
        (
            "triton",
            [
                ("triton_per_fused_native_layer_norm_0", "triton"),
                ("triton_poi_fused_addmm_gelu_1", "triton"),
                ("extern_kernels.mm", "extern"),
                ("extern_kernels.addmm", "extern"),
            ],
        ),
    ],
)
def test_kernels_of_output_code(name: str, kernels: list[tuple[str, str]]) -> None:
    assert [(kernel.name, kernel.language) for kernel in kernels_in(output_code(name))] == kernels


def test_each_call_of_a_library_counts() -> None:
    code = "extern_kernels.mm(a, b, out=c)\nextern_kernels.bmm(c, d, out=e)\nextern_kernels.mm(e, f, out=g)\n"
    for text in (code, f"{code}async_compile = (\n"):  # the second cannot be cut line by line
        found = kernels_in(text)
        assert [(each.name, each.calls) for each in found] == [("extern_kernels.mm", 2), ("extern_kernels.bmm", 1)]
    kernels = [a_kernel(name=each.name, language="extern", calls=each.calls) for each in found] + [a_kernel()]
    assert library_calls(kernels) == {"0/0": 3}


def test_the_text_of_a_cpp_kernel() -> None:
    kernel = kernels_in(output_code("cpp"))[0]
    assert kernel.text.startswith("#include <torch/csrc/inductor/cpp_prefix.h>\n")
    assert kernel.text.endswith("\n}\n")
    assert kernel.text in output_code("cpp")


def test_the_text_of_a_triton_kernel() -> None:
    kernel = kernels_in(output_code("triton"))[0]
    assert kernel.text.startswith("import triton\n")
    assert "\ndef triton_per_fused_native_layer_norm_0(" in kernel.text
    assert "DeviceProperties(type='cuda'" in kernel.text  # the longest string, not the name or the device


def test_an_extern_kernel_has_no_text() -> None:
    assert [kernel.text for kernel in kernels_in(output_code("triton")) if kernel.language == "extern"] == ["", ""]


@pytest.mark.parametrize("text", ["", "not ( python", "x = async_compile.triton()", "x = other.triton('a', 'b')", "\0"])
def test_output_code_without_kernels(text: str) -> None:
    assert kernels_in(text) == []


def test_calls_of_aten_are_extern_kernels() -> None:
    code = "def call(args):\n    buf0 = torch.ops.aten.convolution.default(a, b)\n    buf1 = torch.ops.aten.convolution.default(b, a)\n"
    assert [(kernel.name, kernel.language) for kernel in kernels_in(code)] == [
        ("torch.ops.aten.convolution.default", "extern")
    ]


def test_origins_from_stacks() -> None:
    assert origins_from_stacks(stacks("cpp"), output_code("cpp")) == {
        "extern_kernels.mm": (Origin(MODEL, 9),),
        "cpp_fused_mul_relu_sum_threshold_backward_0": (Origin(MODEL, 10), Origin(MODEL, 9)),
    }


def test_the_lines_of_a_score_mod_are_those_of_its_template() -> None:
    call = Origin("/w/train.py", 9)
    nodes = [
        GraphNode("score_mod_0", "get_attr", "score_mod_0", "", (), 1),
        GraphNode("flex", "call", "torch.ops.higher_order.flex_attention", "", ("q", "score_mod_0"), 2, Origin("/t/f.py", 7)),
        GraphNode("score_mod_0.tanh", "call", "torch.tanh", "", (), 3, Origin("/w/train.py", 3)),
        GraphNode("other.sin", "call", "torch.sin", "", (), 4, Origin("/w/train.py", 4)),
    ]  # fmt: skip
    told = {"triton_tem_fused_flex_attention_0": (call,), "triton_poi_fused_mul_1": (call,)}
    found = kernels.with_inlined(told, Graph(tuple(nodes)))
    assert found == {**told, "triton_tem_fused_flex_attention_0": (call, Origin("/w/train.py", 3))}
    assert kernels.with_inlined(told, None) == told


def test_stacks_of_earlier_output_code_are_passed_over() -> None:
    """The table of this backward graph still holds the forward's kernels (torch 2.13)."""
    assert len(json.loads(stacks("cpp_backward"))) == 4
    assert origins_from_stacks(stacks("cpp_backward"), output_code("cpp_backward")) == {
        "cpp_fused_expand_mul_threshold_backward_0": (Origin(MODEL, 9), Origin(MODEL, 10)),
        "extern_kernels.mm": (Origin(MODEL, 9),),
    }


def test_an_origin_is_the_innermost_user_frame(torch_folder: str) -> None:
    stack = f'  File "{MODEL}", line 3, in step\n    a\n  File "{MODEL}", line 9, in loss\n    b\n  File "{torch_folder}/nn/modules/linear.py", line 130, in forward\n    c\n'
    assert origins_from_stacks(json.dumps({"k:1": [stack]}), "") == {"k": (Origin(MODEL, 9),)}


def test_a_model_of_a_library_compiled_as_it_is(torch_folder: str) -> None:
    bert = str(Path(torch_folder).parent / "transformers" / "bert.py")
    stack = f'  File "{bert}", line 200, in forward\n    a\n  File "{torch_folder}/nn/modules/linear.py", line 130, in forward\n    b\n'
    assert origins_from_stacks(json.dumps({"k:1": [stack]}), "") == {"k": (Origin(bert, 200),)}


@pytest.mark.parametrize("payload", ["", "nonsense", "[]", "3", '{"k:1": null}', '{"k:1": "text"}', '{"k:1": [1]}'])
def test_stacks_that_cannot_be_read(payload: str) -> None:
    assert not any(origins_from_stacks(payload, "").values())


def test_origins_from_comments_of_triton_code() -> None:
    graph = parse_graph(
        "class G:\n    def forward(self, x, w):\n"
        + "".join(
            f"        # File: {MODEL}:{line} in f, code: …\n        {name} = torch.op({value})\n"
            for line, (name, value) in enumerate(
                [("input_1", "x"), ("input_2", "input_1"), ("input_3", "input_2"), ("input_4", "input_3")], 5
            )
        )
        + "        return (input_4,)\n"
    )
    assert origins_from_comments(output_code("triton"), graph) == {
        "triton_per_fused_native_layer_norm_0": (Origin(MODEL, 5),),
        "extern_kernels.mm": (Origin(MODEL, 5), Origin(MODEL, 6)),
        "triton_poi_fused_addmm_gelu_1": (Origin(MODEL, 6), Origin(MODEL, 7)),
        "extern_kernels.addmm": (Origin(MODEL, 6), Origin(MODEL, 7), Origin(MODEL, 8)),
    }


def test_a_call_without_a_comment_takes_no_other_call_s_origin() -> None:
    """In C++ output code only library calls have a comment; the kernel after it must not inherit it."""
    graph = parse_graph((HERE / "graphs" / "dynamo.txt").read_text())
    assert origins_from_comments(output_code("cpp"), graph) == {"extern_kernels.mm": (Origin(MODEL, 9),)}
    assert origins_from_comments(output_code("cpp"), None) == {}


@pytest.mark.parametrize("name", ["cpp", "cpp_backward", "triton"])
def test_output_code_is_read_without_its_syntax_tree(name: str) -> None:
    code = (
        output_code(name)
        + """
def more(args):
    # aten.not_called.default(buf0)
    assert_size_stride(buf0, (4,), (1,), 'torch.ops.aten.named.default')
    buf1 = torch.ops.mine.op.default(buf0)
    aten.index_put_(buf1, [buf0], buf2)
    torch.ops.inductor.resize_storage_bytes_(buf1, 0)
    with torch.cuda._DeviceGuard(0):
        extern_kernels.bmm(buf1, buf2, out=buf3)
"""
    )
    assert kernels._definitions(code) is not None
    found, known = kernels_in(code), kernels._kernels_in_tree(code)
    assert sorted(found, key=lambda one: one.name) == sorted(known, key=lambda one: one.name)
    assert {"torch.ops.mine.op.default", "aten.index_put_", "extern_kernels.bmm"} <= {one.name for one in found}


def test_output_code_that_is_no_text_of_lines_is_read_by_its_syntax_tree() -> None:
    code = '''note = """
k = async_compile.triton('k', "not this")
"""
real = async_compile.triton('real', "def real(): pass")
'''
    assert [kernel.name for kernel in kernels_in(code)] == ["real"]
