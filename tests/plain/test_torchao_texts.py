"""What the pipeline ``torchao`` reads in output code: which calls compute with integers."""

from __future__ import annotations

from irscope.pipeline_captures.torchao.report import fused_text

CODE = """\
cpp_fused_quantize_per_tensor_0 = async_compile.cpp_pybinding(['const float*', 'uint8_t*'], r'''
cpp_fused__softmax_1 = async_compile.cpp_pybinding(['const float*'], r'''
        cpp_fused_quantize_per_tensor_0(arg8_1, buf0)
        buf1 = torch.ops.onednn.qlinear_pointwise.tensor(buf0, 0.01, 129, _frozen_param8, 'none', [], '')
        extern_kernels.mm(buf2, reinterpret_tensor(buf2, (16, 4), (1, 16), 0), out=buf3)
        buf5 = torch.ops.onednn.qlinear_pointwise.tensor(buf4, 0.09, 0, _frozen_param9, 'none', [], '')
"""


def test_integer_operators_are_counted_apart_from_other_calls() -> None:
    assert fused_text(CODE, is_frozen=True) == (
        "Integer operators: 2\n  2 x onednn.qlinear_pointwise\n\n"
        "Other library calls: 1\n  1 x mm\n\n"
        "Kernels that quantize or dequantize: 1\n  1 x cpp_fused_quantize_per_tensor_0\n"
    )


def test_code_that_only_quantizes_says_what_is_missing() -> None:
    alone = "\n".join(line for line in CODE.split("\n") if "onednn" not in line)
    assert fused_text(alone, is_frozen=False).endswith("only with freezing, below torch.no_grad().\n")
    assert "freezing" not in fused_text(alone, is_frozen=True)
    assert fused_text("", is_frozen=False) == (
        "Integer operators: 0\n\nOther library calls: 0\n\nKernels that quantize or dequantize: 0\n"
    )
