"""The launches of kernels in output code, and the heads of kernels."""

from __future__ import annotations

from irscope.ir.launches import (
    Tensor,
    concatenated,
    head_of,
    launches_in,
    parts_of_results,
    returned_nodes,
    unfinished,
    without_bias,
)
from irscope.provenance.elements import Element, Item, Items
from irscope.values.kernel.asking import prepared, with_bias_apart
from irscope.values.kernel.chain import Chain

KERNEL = """\
import triton

@triton_heuristics.persistent_reduction(
    size_hints={'x': 32, 'r0_': 64}, reduction_hint=ReductionHint.INNER,
    triton_meta={'signature': {'in_out_ptr0': '*fp32', 'in_ptr0': '*bf16', 'ks0': 'i64', 'xnumel': 'i32', 'XBLOCK': 'constexpr'},
                 'device': DeviceProperties(type='cuda'), 'constants': {}, 'configs': [{(0,): [['tt.divisibility', 16]]}]},
    inductor_meta={'grid_type': 'Grid1D', 'autotune_hints': set(), 'mutated_arg_names': ['in_out_ptr0']},
)
@triton.jit
def triton_per_0(in_out_ptr0, in_ptr0, ks0, xnumel, XBLOCK : tl.constexpr):
    pass
"""
CODE = """\
# Graph fragment:
#   %mul : Tensor "f32[4, 8]" = call_function[target=torch.ops.aten.mul.Tensor](args = (%arg0_1, 2), kwargs = {})
#   return %getitem,%mul
triton_per_0 = async_compile.triton('triton_per_0', '''…''')

class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        s77 = arg1_1
        assert_size_stride(arg0_1, (4, s77), (s77, 1), 'input')
        with torch.cuda._DeviceGuard(0):
            buf0 = empty_strided_cuda((4, 8), (8, 1), torch.float32)
            extern_kernels.mm(arg0_1, arg0_1, out=buf0)
            buf1 = reinterpret_tensor(buf0, (32, ), (1, ), 0); del buf0  # reuse
            triton_per_0_xnumel = 4*s77
            triton_per_0.run(buf1, reinterpret_tensor(arg0_1, (8, 4), (1, 8), 2), s77, triton_per_0_xnumel, stream=raw_stream0)
            triton_per_0.run(buf1, arg0_1, s77, 5, stream=raw_stream0)
            buf2 = empty_strided_cuda((3, ), (1, ), torch.int64)
            buf2.zero_()
            triton_per_0.run(buf2, buf1, 1, 5, stream=raw_stream0)
"""


def test_the_arguments_of_a_launch_are_followed_to_their_memory() -> None:
    first, second, third = launches_in(CODE)
    assert first.arguments == (
        Tensor("buf0", "buf0", (32,), (1,), 0, "float32", "buf1", ((4, 8), (8, 1), 0)),
        Tensor("arg0_1", "arg0_1", (8, 4), (1, 8), 2, "", "arg0_1", ((4, "s77"), ("s77", 1), 0)),
        Tensor("arg1_1", "arg1_1", None, (), 0, "", "s77"),
        "4 * s77",
    )
    # The first launch has written the memory under its new name.
    assert isinstance(second.arguments[0], Tensor) and second.arguments[0].holds == "buf1"
    assert second.arguments[1] == Tensor("arg0_1", "arg0_1", (4, "s77"), ("s77", 1), 0, "", "arg0_1")
    assert isinstance(third.arguments[0], Tensor) and (third.arguments[0].holds, third.arguments[0].dtype) == (
        "0",
        "int64",
    )


def test_the_nodes_that_a_kernel_returns() -> None:
    assert returned_nodes(CODE) == {"triton_per_0": ("getitem", "mul")}


def test_the_head_of_a_kernel() -> None:
    head = head_of(KERNEL, "triton_per_0")
    assert (head.heuristic, head.size_hints, head.blocks) == ("persistent_reduction", {"x": 32, "r0_": 64}, ("XBLOCK",))
    assert (head.signature["in_ptr0"], head.meta["grid_type"]) == ("*bf16", "Grid1D")
    assert head.named(["a", "b", 3, 4, 7, 1, 1], {"XBLOCK": 8}) == (
        {"in_out_ptr0": "a", "in_ptr0": "b", "ks0": 3, "xnumel": 4},
        [7, 1, 1],
    )


def _kernel(name: str, body: str) -> str:
    return f"@triton_heuristics.reduction()\n@triton.jit\ndef {name}(in_ptr0, out_ptr0, XBLOCK : tl.constexpr):\n    {body}\n"


_COPY = "tl.store(out_ptr0 + x, tl.load(in_ptr0 + x))"
SPLIT = """\
class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        buf0 = empty_strided_cuda((4, 2), (2, 1), torch.float32)
        part.run(arg0_1, buf0, stream=s)
        buf1 = empty_strided_cuda((4, ), (1, ), torch.float32)
        whole.run(buf0, buf1, stream=s)
        buf2 = empty_strided_cuda((4, ), (1, ), torch.float32)
        zeros.run(arg1_1, buf2, stream=s)
        scatter.run(buf1, buf2, stream=s)
        later.run(buf2, buf1, stream=s)
"""
TEXTS = {
    "part": _kernel("part", _COPY), "whole": _kernel("whole", _COPY), "zeros": _kernel("zeros", "tl.store(out_ptr0 + x, 0)"),
    "scatter": _kernel("scatter", "tl.atomic_add(out_ptr0 + x, tl.load(in_ptr0 + x))"), "later": _kernel("later", _COPY),
}  # fmt: skip


def test_the_launches_that_one_launch_needs() -> None:
    """Half of a split reduction has no node, and what a scatter adds to is complete only after it."""
    launches = launches_in(SPLIT)
    chain = Chain(launches, TEXTS.__getitem__, {"buf1": "sum_1", "buf2": "scatter_add"})

    def names(kernel: str) -> tuple[list[str], list[str], list[str]]:
        before, after, partial = chain.of(next(each for each in launches if each.kernel == kernel))
        return [each.kernel for each in before], [each.kernel for each in after], partial

    assert names("part") == ([], ["whole"], ["buf0"])
    assert names("whole") == (["part"], [], [])
    assert names("zeros") == ([], ["scatter"], ["buf2"])
    assert names("scatter") == (["zeros"], [], [])
    assert names("later") == ([], [], [])


def test_a_convolution_to_which_a_kernel_adds_the_bias() -> None:
    code = "    buf1 = extern_kernels.convolution(buf0, arg1_1, stride=(1, 1), bias=None)\n    buf3 = buf2[1]\n"
    assert (without_bias(code), parts_of_results(code)) == (("buf1",), {"buf3": ("buf2", 1)})
    graph = '    convolution: "f32[2, 3, 4, 4][48, 16, 4, 1]cuda:0" = torch.ops.aten.convolution.default(a, b, c, [1, 1]);  a = None\n'
    text, name = with_bias_apart(graph, "convolution", "buf1")
    assert name == "buf1" and [row.strip().partition(" = ")[2] for row in text.split("\n")[:3]] == [
        "torch.ops.aten.convolution.default(a, b, None, [1, 1])",
        "torch.ops.aten.reshape.default(c, [1, -1, 1, 1])",
        "torch.ops.aten.add.Tensor(buf1, buf1_bias)",
    ]
    assert with_bias_apart(graph.replace(" c,", " None,"), "convolution", "buf1")[1] == "convolution"


def test_what_a_kernel_prepares_for_a_library_though_it_reads_a_part_of_a_reduction() -> None:
    names = {"x": (), "w": (), "y": ("x",), "library": ("y", "w")}
    items = [Item(Element("graph", name, 1, 1), inputs=inputs) for name, inputs in names.items()]
    graph = Items(tuple(items), {each.element.name: each for each in items})
    rows = [
        {"kind": "SchedulerNode", "reads": [["x", 8], ["squares", 4]], "writes": [["buf0", 8]]},
        {"kind": "ExternKernelSchedulerNode", "reads": [["buf0", 8], ["w", 8]], "writes": [["buf1", 8]]},
    ]
    assert prepared(graph, rows, {"buf0": "library", "buf1": "library"}) == {"buf0": "y"}


JOINED = """\
class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        buf2 = empty_strided_cuda((2, 4), (4, 1), torch.float32)
        buf0 = reinterpret_tensor(buf2, (2, 3), (4, 1), 1)  # alias
        first.run(arg0_1, buf0, stream=s)
        buf1 = reinterpret_tensor(buf2, (2, 1), (4, 1), 0)  # alias
        second.run(buf0, buf1, stream=s)
        whole.run(buf2, stream=s)
"""


def test_a_concatenation_that_several_kernels_write_in_parts() -> None:
    graph = '    cat: "f32[2, 4]" = torch.ops.aten.cat.default([sin, cos], 1);  sin = None\n'
    assert concatenated(JOINED, graph, {"buf0": "cat"}) == {"buf2": "cat", "buf1": "sin", "buf0": "cos"}
    assert concatenated(JOINED, graph, {"buf0": "sin"}) == {}
    first, second, whole = launches_in(JOINED)
    held = [each.holds for launch in (first, second, whole) for each in launch.arguments if isinstance(each, Tensor)]
    assert held == ["arg0_1", "", "buf0", "", "buf2"]


def test_a_sum_that_a_later_kernel_divides_is_not_the_mean() -> None:
    code = "#   return %buf0,%var\nmean_0 = async_compile.triton('mean_0', '')\n"
    graph = '    mean: "f32[3]" = torch.ops.aten.mean.dim(x, [0]);  x = None\n    var: "f32[3]" = torch.ops.aten.var.correction(x, [0])\n'
    assert unfinished(code, graph, {"buf0": "mean", "buf1": "var"}) == {"buf0"}
