"""A run with Triton kernels for an H100, written into a store by hand: a row sum, and the same with a bug each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from irscope.protocol import Compile, CompileOutcome, Kernel, Lane, Origin, Outcome, OutcomeKind, StageRef
from irscope.store.store import Store

MODEL = """\
import torch

@torch.compile
def f(x):
    y = torch.log(x + 9)  # @log
    return y.sum(-1)  # @sum
"""
_GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[5, 6][6, 1]cuda:0"):
        # File: {file}:5 in f, code: y = torch.log(x + 9)
        add: "f32[5, 6][6, 1]cuda:0" = torch.ops.aten.add.Tensor(arg0_1, 9);  arg0_1 = None
        log: "f32[5, 6][6, 1]cuda:0" = torch.ops.aten.log.default(add);  add = None

        # File: {file}:6 in f, code: return y.sum(-1)
        sum_1: "f32[5][1]cuda:0" = torch.ops.aten.sum.dim_IntList(log, [-1]);  log = None
        return (sum_1,)
"""
KERNEL = """\
import triton
import triton.language as tl

@triton_heuristics.persistent_reduction(
    size_hints={'x': 8, 'r0_': 8},
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'r0_numel': 'i32', 'XBLOCK': 'constexpr'}},
    inductor_meta={'grid_type': 'Grid1D'},
)
@triton.jit
def triton_per_fused_log_sum_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    xnumel = 5
    r0_numel = 6
    R0_BLOCK: tl.constexpr = 8
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_mask = r0_index < r0_numel
    r0_1 = r0_index
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (r0_1 + 6*x0), r0_mask & xmask, other=0.0)
    tmp1 = tl.full([1, 1], 9.0, tl.float32)
    tmp2 = tmp0 + tmp1
    tmp3 = tl_math.log(tmp2)
    tmp4 = tl.broadcast_to(tmp3, [XBLOCK, R0_BLOCK])
    tmp6 = tl.where(r0_mask & xmask, tmp4, 0)
    tmp7 = tl.sum(tmp6, 1)[:, None].to(tl.float32)
    tl.store(out_ptr0 + (x0), tmp7, xmask)
"""
NAME = "triton_per_fused_log_sum_0"
_CODE = f"""\
# Graph fragment:
#   return %sum_1
{NAME} = async_compile.triton('{NAME}', '''
{KERNEL}''', device_str='cuda')

class Runner:
    def call(self, args):
        arg0_1, = args
        assert_size_stride(arg0_1, (5, 6), (6, 1), 'input')
        buf0 = empty_strided_cuda((5, ), (1, ), torch.float32)
        {NAME}.run(arg0_1, buf0, 5, 6, stream=raw_stream0)
        return (buf0, )
"""
STAGE = f"0/0/kernel/{NAME}"


def line_of(part: str, text: str = KERNEL) -> int:
    """The line (1-based) that has a text."""
    return next(number for number, row in enumerate(text.split("\n"), 1) if part in row)


def with_a_kernel(store_path: Path, folder: Path, text: str = KERNEL, how: Mapping[str, object] | None = None) -> str:
    """Returns the script's path.

    Args:
        how: How the run was made, as `Store.create_run` has it.
    """
    script = folder / "model.py"
    script.write_text(MODEL)
    file = str(script)
    rows = [{"name": "op0", "kind": "SchedulerNode", "origins": ["add", "log", "sum_1"], "reads": [["arg0_1", 120]], "writes": [["buf0", 20]]}]  # fmt: skip
    calls = [{"kernel": NAME, "nodes": ["op0"], "origins": ["add", "log", "sum_1"]}]
    stages: list[tuple[str, str, str, Any]] = [
        ("0/0/post-grad-graph", "post-grad-graph", _GRAPH.format(file=file), None),
        ("0/0/ir-pre-fusion", "ir-pre-fusion", "op0: SchedulerNode(ComputedBuffer)\n", {"nodes": rows}),
        ("0/0/output-code", "output-code", _CODE.replace(KERNEL, text), {"calls": calls}),
        (STAGE, "kernel", text, None),
    ]
    with Store(str(store_path)) as store:
        run = store.create_run(file, (), Lane.DEEP, "digest", how)
        store.put_source(run, file, MODEL)
        store.put_compile(
            run, Compile("0/0", "f", file, 4, CompileOutcome.COMPILED, restarts=0, graph_ops=3, seconds=0.5)
        )
        for position, (id, kind, text, data) in enumerate(stages):
            store.put_stage(run, "0/0", StageRef(id, kind, "python", len(text)), text, position, data)
        store.put_kernel(run, Kernel(NAME, "triton", "0/0", STAGE, (Origin(file, 5), Origin(file, 6))))
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 1.0))
    return file
