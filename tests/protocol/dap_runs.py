"""Runs for the debug adapter's tests and its benchmark, written into a store by hand."""

from __future__ import annotations

from pathlib import Path

from irscope.protocol import (
    Compile,
    CompileOutcome,
    Finding,
    Kernel,
    Lane,
    Origin,
    Outcome,
    OutcomeKind,
    Position,
    Range,
    Severity,
    StageRef,
)
from irscope.store import Store

MODEL = """\
import torch


def block(x, w):
    h = x @ w
    h = torch.relu(h)
    return h * 2 + 1


@torch.compile
def step(x, w):
    y = block(
        x,
        w,
    )
    print("broke")
    return y


step(torch.ones(8, 16), torch.ones(16, 32))
"""

_DYNAMO = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8, 16][16, 1]cpu", L_w_: "f32[16, 32][32, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_

        # File: {file}:5 in block, code: h = x @ w
        h: "f32[8, 32][32, 1]cpu" = l_x_ @ l_w_;  l_x_ = l_w_ = None

        # File: {file}:6 in block, code: h = torch.relu(h)
        h_1: "f32[8, 32][32, 1]cpu" = torch.relu(h);  h = None

        # File: {file}:7 in block, code: return h * 2 + 1
        mul: "f32[8, 32][32, 1]cpu" = h_1 * 2;  h_1 = None
        y: "f32[8, 32][32, 1]cpu" = mul + 1;  mul = None
        return (y,)
"""

_FORWARD = """\
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[8, 16][16, 1]cpu", primals_2: "f32[16, 32][32, 1]cpu"):
        # File: {file}:5 in block, code: h = x @ w
        mm: "f32[8, 32][32, 1]cpu" = torch.ops.aten.mm.default(primals_1, primals_2);  primals_1 = primals_2 = None

        # File: {file}:6 in block, code: h = torch.relu(h)
        relu: "f32[8, 32][32, 1]cpu" = torch.ops.aten.relu.default(mm);  mm = None

        # File: {file}:7 in block, code: return h * 2 + 1
        mul: "f32[8, 32][32, 1]cpu" = torch.ops.aten.mul.Tensor(relu, 2);  relu = None
        add: "bf16[8, 32][32, 1]cpu" = torch.ops.aten.add.Tensor(mul, 1);  mul = None
        return (add,)
"""

_POST_GRAD = _FORWARD.replace("torch.ops.aten.mul.Tensor(relu, 2)", "torch.ops.aten.mul.Scalar(relu, 2)")

_OUTPUT_CODE = """\
# AOT ID: ['0_forward']
cpp_fused_add_mul_relu_0 = async_compile.cpp_pybinding(['const float*', 'float*'], '''
void kernel() {}
''')


def call(args):
    primals_1, primals_2 = args
    buf0 = empty_strided_cpu((8, 32), (32, 1))
    extern_kernels.mm(primals_1, primals_2, out=buf0)
    cpp_fused_add_mul_relu_0(buf0, buf1)
    return (buf1,)
"""

_KERNEL = """\
#include <torch/csrc/inductor/cpp_prefix.h>
void kernel(const float* in_ptr0, float* out_ptr0)
{
    for (int64_t x0 = 0; x0 < 256; x0 += 16) {
    }
}
"""

_ASSEMBLY = """\
\t.file\t"kernel.cpp"
\t.globl\tkernel
kernel:
\t.loc 1 2 0
\tpushq\t%rbp
\tmovq\t%rsp, %rbp
.L2:
\tvmaxps\t%zmm0, %zmm1, %zmm2
\tjmp\t.L2
\tpopq\t%rbp
\tret
"""


def small_run(store_path: Path, folder: Path, model: str = MODEL) -> str:
    """One compile with six stages and a graph break, of a script in ``folder``; returns the script's path."""
    script = folder / "model.py"
    script.write_text(model)
    file = str(script)
    with Store(str(store_path)) as store:
        run = store.create_run(file, (), Lane.DEEP, "digest")
        store.set_torch(run, "2.13.0")
        store.put_source(run, file, MODEL)
        store.put_compile(run, _compile("0/0", file, 11, CompileOutcome.GRAPH_BREAK))
        texts = {
            "bytecode": ("python-bytecode", "  11  RESUME\n\n  12  LOAD_GLOBAL (block)\n"),
            "dynamo-graph": ("python", _DYNAMO.format(file=file)),
            "guards": ("irscope-guards", "TREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- GLOBAL_STATE: check()\n"),
            "cache-key": ("plaintext", "key\n"),
            "forward-graph": ("python", _FORWARD.format(file=file)),
            "post-grad-graph": ("python", _POST_GRAD.format(file=file)),
            "output-code": ("python", _OUTPUT_CODE),
            "kernel/cpp_fused_add_mul_relu_0": ("cpp", _KERNEL),
            "kernel/cpp_fused_add_mul_relu_0/assembly": ("asm", _ASSEMBLY),
        }
        for position, (name, (language, text)) in enumerate(texts.items()):
            kind = "assembly" if language == "asm" else name.partition("/")[0]
            data = {"lines": [[5, 2], [6, 2], [8, 4], [9, 4]]} if language == "asm" else None
            store.put_stage(run, "0/0", StageRef(f"0/0/{name}", kind, language, len(text)), text, position, data)
        store.put_compile(run, _compile("1/0", file, 16, CompileOutcome.COMPILED))
        text = "  16  RESUME\n"
        store.put_stage(run, "1/0", StageRef("1/0/bytecode", "bytecode", "python-bytecode", len(text)), text, 0)
        lines = (Origin(file, 6), Origin(file, 7))
        kernel = "0/0/kernel/cpp_fused_add_mul_relu_0"
        store.put_kernel(run, Kernel("cpp_fused_add_mul_relu_0", "cpp", "0/0", kernel, lines))
        store.put_kernel(run, Kernel("extern_kernels.mm", "extern", "0/0", "0/0/output-code", (Origin(file, 5),)))
        store.put_finding(run, _graph_break(file))
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 1.0))
    return file


def _compile(id: str, file: str, line: int, outcome: CompileOutcome) -> Compile:
    return Compile(id, "step", file, line, outcome, restarts=0, graph_ops=4, seconds=0.5)


def _graph_break(file: str) -> Finding:
    return Finding(
        kind="graph-break",
        code="GB0059",
        severity=Severity.WARNING,
        message='Graph break: `print("broke")` writes while tracing.',
        explanation="Dynamo cannot trace it.",
        hints=("Remove it.",),
        link="https://example.org/gb0059.html",
        file=file,
        range=Range(Position(16, 4), Position(16, 18)),
        count=1,
        compiles=("0/0",),
    )


def large_run(store_path: Path, folder: Path, nodes: int) -> str:
    """One compile with three graphs of so many nodes each; returns the script's path."""
    script = folder / "large.py"
    script.write_text("".join(f"y = x{number}\n" for number in range(1000)))
    file = str(script)
    with Store(str(store_path)) as store:
        run = store.create_run(file, (), Lane.DEEP, "digest")
        store.put_source(run, file, script.read_text())
        store.put_compile(run, _compile("0/0", file, 1, CompileOutcome.COMPILED))
        for position, (name, target) in enumerate(
            {
                "dynamo-graph": "torch.sin",
                "forward-graph": "torch.ops.aten.sin.default",
                "post-grad-graph": "torch.ops.aten.sin.default",
            }.items()
        ):
            text = _large_graph(file, target, nodes)
            store.put_stage(run, "0/0", StageRef(f"0/0/{name}", name, "python", len(text)), text, position)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 1.0))
    return file


def _large_graph(file: str, target: str, nodes: int) -> str:
    lines = ["class GraphModule(torch.nn.Module):", '    def forward(self, n0: "f32[64, 64][64, 1]cuda:0"):']
    for number in range(1, nodes):
        line = number * 1000 // nodes + 1
        lines.append(f"        # File: {file}:{line} in forward, code: y = x{line - 1}")
        lines.append(f'        n{number}: "f32[64, 64][64, 1]cuda:0" = {target}(n{number - 1});  n{number - 1} = None')
        lines.append("")
    return "\n".join([*lines, f"        return (n{nodes - 1},)", ""])


def with_a_pass(store_path: Path, folder: Path) -> str:
    """As `small_run`, with the version of the post-grad graph that its one pass made."""
    file = small_run(store_path, folder)
    with Store(str(store_path)) as store:
        run = store.find_run()
        text = _POST_GRAD.format(file=file)
        name = "post-grad-graph/01-scalarize"
        stage = StageRef(f"0/0/{name}", "post-grad-graph", "python", len(text), "scalarize", 0.25)
        data = {"pass": "scalarize", "seconds": 0.25, "added": [], "removed": [], "changed": ["mul"], "moved": False}
        store.put_stage(run, "0/0", stage, text, 4.5, data)
    return file


_LOOP = """\
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8][1]cpu"):
        # File: {file}:5 in f, code: x = x.sin()
        a: "f32[8][1]cpu" = x.sin();  x = None
        # File: {file}:6 in f, code: x = x.cos()
        b: "f32[8][1]cpu" = a.cos();  a = None
        # File: {file}:5 in f, code: x = x.sin()
        c: "f32[8][1]cpu" = b.sin();  b = None
        # File: {file}:6 in f, code: x = x.cos()
        d: "f32[8][1]cpu" = c.cos();  c = None
        return (d,)
"""


def with_a_loop(store_path: Path, folder: Path) -> str:
    """One compile whose two lines were traced twice, with two kernels of which only the machine code is there."""
    script = folder / "model.py"
    script.write_text(MODEL)
    file = str(script)
    with Store(str(store_path)) as store:
        run = store.create_run(file, (), Lane.DEEP, "digest")
        store.put_compile(run, _compile("0/0", file, 1, CompileOutcome.COMPILED))
        text = _LOOP.format(file=file)
        store.put_stage(run, "0/0", StageRef("0/0/dynamo-graph", "dynamo-graph", "python", len(text)), text, 0)
        for position, name in enumerate(("one", "two")):
            text = f"\tnop\n\t{name}\n"
            stage = StageRef(f"0/0/kernel/{name}/assembly", "assembly", "asm", len(text))
            store.put_stage(run, "0/0", stage, text, position + 1)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 1.0))
    return file
