"""What a run compiled, in a line."""

from __future__ import annotations

from facts import a_compile, a_kernel, an_outcome
from irscope.protocol import Compile, Finding, Kernel, OutcomeKind, Report
from irscope.provenance.kernel_paths import _op
from irscope_server.base.compiled import compiles_text
from irscope_server.language.line_views import short_kernel

ENDED = an_outcome(kind=OutcomeKind.COMPLETED)


def report(
    *findings: Finding, compiles: tuple[Compile, ...] = (a_compile(program="Model"),), kernels: tuple[Kernel, ...] = ()
) -> Report:
    return Report(1, "r1", "/home/me/main.py", "2.13.0", ENDED, compiles, findings, kernels, ())


def test_only_compiles_with_kernels_are_named_and_few_of_them() -> None:
    compiles = tuple(a_compile(id=f"{number}/0", function=f"f{number}") for number in range(6))
    kernels = tuple(a_kernel(compile=f"{number}/0") for number in range(1, 6))
    said = "1/0 f1 (1 kernel), 2/0 f2 (1 kernel), 3/0 f3 (1 kernel), and 2 more compiles"
    assert compiles_text(report(compiles=compiles, kernels=kernels)) == said


def test_long_names_of_kernels_keep_their_numbers() -> None:
    name = "cpp_fused_" + "_".join(["add", "mul", "softmax"] * 9) + "_where_17"
    short = short_kernel(name)
    assert len(short) == 48 and short.startswith("cpp_fused_add_mul_softmax") and short.endswith("…max_where_17")
    assert short_kernel("cpp_fused_relu_0") == "cpp_fused_relu_0"


def test_operations_of_library_calls_are_named_without_their_overload() -> None:
    names = ("torch.ops.aten.cumsum.default", "extern_kernels.mm", "aten._softmax.default", "kernel")
    assert [_op(name) for name in names] == ["cumsum", "mm", "softmax", "kernel"]
