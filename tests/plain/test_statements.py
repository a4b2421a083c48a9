"""Which node a statement of a kernel computes; texts as Inductor writes them."""

from __future__ import annotations

from collections.abc import Mapping

from irscope.protocol import StageRef
from irscope.provenance.elements import items_of
from irscope.provenance.statements import arguments_in, arguments_of, nodes_of_statements

GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, 64][64, 1]cuda:0", arg1_1: "f32[64][1]cuda:0"):
        # File: /s.py:5 in f, code: y = x / 8
        div: "f32[8, 64]" = torch.ops.aten.div.Tensor(arg0_1, 8.0);  arg0_1 = None

        # File: /s.py:6 in f, code: y = y.softmax(-1)
        amax: "f32[8, 1]" = torch.ops.aten.amax.default(div, [-1], True)
        sub: "f32[8, 64]" = torch.ops.aten.sub.Tensor(div, amax);  div = amax = None
        exp: "f32[8, 64]" = torch.ops.aten.exp.default(sub);  sub = None
        sum_1: "f32[8, 1]" = torch.ops.aten.sum.dim_IntList(exp, [-1], True)
        div_1: "f32[8, 64]" = torch.ops.aten.div.Tensor(exp, sum_1);  exp = sum_1 = None

        # File: /s.py:7 in f, code: return (y * w + 1).relu()
        mul: "f32[8, 64]" = torch.ops.aten.mul.Tensor(div_1, arg1_1);  div_1 = arg1_1 = None
        add: "f32[8, 64]" = torch.ops.aten.add.Tensor(mul, 1);  mul = None
        add_1: "f32[8, 64]" = torch.ops.aten.add.Tensor(add, add)
        relu: "f32[8, 64]" = torch.ops.aten.relu.default(add_1);  add_1 = None
        return (relu,)
"""

TRITON = """\
@triton.jit
def triton_per_fused_0(in_ptr0, in_ptr1, out_ptr2, xnumel, r0_numel, XBLOCK : tl.constexpr):
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    tmp0 = tl.load(in_ptr0 + (r0_1 + 64*x0), xmask, other=0.0)  #| amax div sub
    tmp15 = tl.load(in_ptr1 + (r0_1), None, eviction_policy='evict_last')  #| mul
    tmp1 = 8.0  #| div
    tmp2 = (tmp0 / tmp1)  #| div
    tmp3 = tl.broadcast_to(tmp2, [XBLOCK, R0_BLOCK])  #| amax sub
    tmp5 = tl.where(xmask, tmp3, float("-inf"))
    tmp6 = triton_helpers.max2(tmp3, 1)[:, None].to(tl.float32)  #| amax
    tmp7 = tmp2 - tmp6  #| sub
    tmp8 = libdevice.exp(tmp7)  #| exp
    tmp12 = tl.sum(tmp8, 1)[:, None].to(tl.float32)  #| sum_1
    tmp13 = (tmp8 / tmp12)  #| div_1
    tmp16 = tmp13 * tmp15  #| mul
    tmp17 = 1.0  #| add
    tmp18 = tmp16 + tmp17  #| add
    tmp19 = tmp18 + tmp18  #| add_1
    tmp20 = tl.full([1, 1], 0, tl.int32)  #| relu
    tmp21 = triton_helpers.maximum(tmp20, tmp19)  #| relu
    tl.store(out_ptr2 + (r0_1 + 64*x0), tmp21, xmask)  #| relu
"""

CPP = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    float tmp_acc0 = 0;  #| sum_1
    auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1), static_cast<int64_t>(16));  #| exp
    auto tmp1 = tmp0.exp();  #| exp
    tmp_acc0_vec = tmp_acc0_vec + tmp1;  #| sum_1
    tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](V& x, V& y) { return x + y; }, tmp_acc0_vec);  #| sum_1
    out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);  #| sum_1
}
"""


def check(kernel: str, *, origins: str = "", buffers: Mapping[str, tuple[str, ...]] | None = None) -> None:
    """A kernel whose statements say behind ``#|`` which nodes they compute; of loads at least which are among them."""
    items = items_of(StageRef("0/0/post-grad-graph", "post-grad-graph", "python", 0), GRAPH, None)
    rows = [row.partition("  #| ") for row in kernel.split("\n")]
    text = "\n".join(row for row, _, _ in rows)
    nodes = origins.split() or [item.element.name for item in items.items]
    found = nodes_of_statements(text, items, GRAPH, nodes, buffers or {})
    for number, (row, _, expected) in enumerate(rows, 1):
        got = set(found.get(number, ()))
        if "load" in row or "broadcast" in row:
            assert got and got <= set(expected.split()), f"{row}: {got}"
        elif "tl.where(xmask" not in row:
            assert got == set(expected.split()), f"{row}: {got}"


def test_each_statement_of_a_triton_kernel() -> None:
    check(TRITON, buffers={"in_ptr0": ("arg0_1",), "in_ptr1": ("arg1_1",)})


def test_each_statement_of_a_cpp_kernel() -> None:
    check(CPP, origins="exp sum_1")


def test_what_fits_no_node_has_none_and_several_fit_without_operands() -> None:
    items = items_of(StageRef("g", "post-grad-graph", "python", 0), GRAPH, None)
    text = "    tmp2 = tmp0 + tmp1\n    tmp3 = tl_math.sin(tmp2)\n"
    found = nodes_of_statements(text, items, GRAPH, ["add_1", "sum_1", "exp"], {})
    assert found == {1: ("add_1",)}, "two nodes are left for the sine, and neither is one"
    both = nodes_of_statements("    tmp2 = tmp0 / tmp1\n", items, GRAPH, ["div", "div_1"], {})
    assert both == {1: ("div", "div_1")}


def test_a_kernel_of_one_operation_of_many_statements() -> None:
    pool = GRAPH.replace("aten.relu.default", "prims._low_memory_max_pool_with_offsets.default")
    items = items_of(StageRef("g", "post-grad-graph", "python", 0), pool, None)
    text = "    tmp0 = tl.load(in_ptr0 + (x0), xmask)\n    tmp7 = tmp0 > tmp1\n    tl.store(out_ptr0 + (x0), tmp7, xmask)\n"
    assert set(nodes_of_statements(text, items, pool, ["relu"], {}).values()) == {("relu",)}


def test_arguments() -> None:
    call = (
        "        triton_per_fused_0.run(arg0_1, reinterpret_tensor(buf9, (16, 8), (1, 16), 0), buf3, 8, 64, stream=s)"
    )
    assert arguments_in(call)[:4] == ["arg0_1", "buf9", "buf3", "8"]
    assert arguments_of(TRITON, arguments_in(call)) == {
        "in_ptr0": "arg0_1", "in_ptr1": "buf9", "out_ptr2": "buf3", "xnumel": "8", "r0_numel": "64", "XBLOCK": "stream=s",
    }  # fmt: skip
    assert arguments_of(CPP, ["buf0", "buf1"]) == {"in_ptr0": "buf0", "out_ptr0": "buf1"}
