"""Runs for the debug adapter's tests and its benchmark, written into a store by hand."""

from __future__ import annotations

import dataclasses
import sysconfig
from pathlib import Path
from typing import Any

from irscope.protocol import (
    Compile,
    CompileOutcome,
    FileLines,
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
from irscope.store.store import Store
from irscope.symbolic.text import text_of
from irscope.symbolic.trace import Walk

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


def with_callers(store_path: Path, folder: Path) -> str:
    """As `small_run`, called from a library that the script calls, with a backward; returns the library's path."""
    file = small_run(store_path, folder)
    library = f"{sysconfig.get_paths()['purelib']}/lib/layers.py"
    with Store(str(store_path)) as store:
        run = store.find_run()
        report = store.report(run)
        text = _FORWARD.format(file=library)
        stage = StageRef("0/0/backward-graph", "backward-graph", "python", len(text))
        store.put_stage(run, "0/0", stage, text, 20)
        store.put_stage_data(run, "0/0/dynamo-graph", _stack_of_relu(file, library))
        compile = _compile("0/0", file, 11, CompileOutcome.GRAPH_BREAK)
        callers, backward_callers = (Origin(library, 40), Origin(file, 20)), (Origin(file, 21),)
        store.put_compile(run, dataclasses.replace(compile, callers=callers, backward_callers=backward_callers))
        store.put_kernel(run, dataclasses.replace(report.kernels[0], lines=(FileLines(library, (30,)),)))
    return library


def _stack_of_relu(file: str, library: str) -> dict[str, Any]:
    """What is kept of a node of `_DYNAMO`: a line of the user's that calls a library, which calls the node's line."""
    columns = {
        "name": ["h_1"], "op": ["call_function"], "target": [0], "inputs": [[]], "value": [-1], "flops": [None],
        "stack": [0], "module": [-1], "aten": [-1], "seq": [None], "from": [[]],
    }  # fmt: skip
    torch = f"{sysconfig.get_paths()['purelib']}/torch/nn/modules/module.py"
    frames = [[file, 12, "step"], [library, 30, "__call__"], [torch, 1, "_call_impl"], [file, 6, "block"]]
    return {
        "graph": 1, "nodes": columns, "views": [], "backward": [], "targets": ["torch.relu"], "values": [],
        "frames": frames, "stacks": [[0, 1, 2, 3]], "modules": [], "sources": [], "symbols": {},
    }  # fmt: skip


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


class TraceWriter:
    """Writes the data of a symbolic trace by hand, as `irscope.symbolic.trace` has it."""

    def __init__(self, *, attempt: int = 0, last: bool = True) -> None:
        self._strings: dict[str, int] = {}
        self._instructions: dict[tuple[Any, ...], int] = {}
        self._listings: list[list[int]] = []
        self._frames: list[int] = []
        steps: dict[str, list[int]] = {
            name: [] for name in ("frame", "instruction", "caller", "kept", "pushes", "pushed")
        }
        self.data: dict[str, Any] = {
            "version": 1, "attempt": attempt, "last": last, "seconds": 0.1, "codes": [], "instructions": [],
            "listings": self._listings, "frames": [], "steps": steps, "locals": [], "nodes": [], "gone": [], "guards": [],
            "guards_gone": [], "outcomes": [],
        }  # fmt: skip

    def _text(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def code(self, file: str, function: str, line: int) -> int:
        self.data["codes"].append([self._text(file), self._text(function), line])
        self._listings.append([])
        return len(self._listings) - 1

    def enter(self, code: int) -> int:
        """A function is entered; its frame."""
        self.data["frames"].append([code])
        self._frames.append(code)
        return len(self._frames) - 1

    def step(
        self,
        frame: int,
        words: str,
        place: tuple[int, int, int, int],
        *,
        caller: int = -1,
        stack: tuple[int, list[str]] = (0, []),
        locals: dict[str, str] | None = None,
        nodes: tuple[str, ...] = (),
        guards: tuple[str, ...] = (),
    ) -> int:
        """An instruction at ``place`` (line, end line, column, end column); ``stack``: what is kept and what is pushed."""
        code = self._frames[frame]
        operation, _, argument = words.partition(" ")
        key = (code, operation, argument, place)
        if key not in self._instructions:
            offset = 2 * len(self._listings[code])
            row = [code, offset, self._text(operation), self._text(argument), *place]
            self._instructions[key] = len(self.data["instructions"])
            self._listings[code].append(self._instructions[key])
            self.data["instructions"].append(row)
        steps = self.data["steps"]
        number = len(steps["frame"])
        kept, pushed = stack
        for name, value in (("frame", frame), ("instruction", self._instructions[key]), ("caller", caller)):
            steps[name].append(value)
        steps["kept"].append(kept)
        steps["pushes"].append(len(pushed))
        steps["pushed"] += [self._text(each) for each in pushed]
        if locals:
            row = [number, *(self._text(each) for pair in locals.items() for each in pair)]
            self.data["locals"].append(row)
        if nodes:
            self.data["nodes"].append([number + 1, number, 0, *map(self._text, nodes)])
        if guards:
            self.data["guards"].append([number + 1, number, *map(self._text, guards)])
        return number

    def ends(self, step: int, kind: str, text: str = "") -> None:
        self.data["outcomes"].append([step, self._text(kind), self._text(text)])

    def finished(self) -> dict[str, Any]:
        return {**self.data, "strings": list(self._strings)}


def _walked(file: str, attempt: int, *, last: bool) -> dict[str, Any]:
    """`MODEL` as Dynamo walks over it, up to its graph break."""
    w = TraceWriter(attempt=attempt, last=last)
    step, block = w.code(file, "step", 11), w.code(file, "block", 4)
    x, y = "TensorVariable f32[8, 16]cpu = l_x_ from L['x']", "TensorVariable f32[8, 32]cpu = y"
    weight = "TensorVariable f32[16, 32]cpu = l_w_ from L['w']"
    unseen = "not looked at yet: Tensor from L['x']"
    outer = w.enter(step)
    w.step(outer, "RESUME 0", (11, 11, 0, 0), locals={"x": unseen, "w": "not looked at yet: Tensor from L['w']"})
    w.step(outer, "LOAD_GLOBAL block", (12, 12, 8, 13))
    called = "UserFunctionVariable block from G['block']"
    w.step(outer, "LOAD_FAST x", (13, 13, 8, 9), stack=(0, ["NullVariable", called]))
    w.step(outer, "LOAD_FAST w", (14, 14, 8, 9), stack=(2, [unseen]))
    call = w.step(outer, "CALL 2", (12, 15, 8, 5), stack=(3, ["not looked at yet: Tensor from L['w']"]))
    inner = w.enter(block)
    at: dict[str, Any] = {"caller": call}
    w.step(inner, "RESUME 0", (4, 4, 0, 0), locals={"x": unseen, "w": "not looked at yet: Tensor from L['w']"}, **at)
    w.step(inner, "LOAD_FAST x", (5, 5, 8, 9), **at)
    w.step(inner, "LOAD_FAST w", (5, 5, 12, 13), stack=(0, [unseen]), **at)
    made: dict[str, Any] = {"nodes": ("l_x_", "l_w_", "h"), "guards": ("TENSOR_MATCH L['x']", "TENSOR_MATCH L['w']")}
    w.step(inner, "BINARY_OP @", (5, 5, 8, 13), stack=(1, ["not looked at yet: Tensor from L['w']"]), **made, **at)
    h = "TensorVariable f32[8, 32]cpu = h"
    w.step(inner, "STORE_FAST h", (5, 5, 4, 5), stack=(0, [h]), locals={"x": x, "w": weight}, **at)
    w.step(inner, "LOAD_GLOBAL torch", (6, 6, 8, 13), locals={"h": h}, **at)
    w.step(inner, "LOAD_ATTR relu", (6, 6, 8, 18), stack=(0, ["PythonModuleVariable torch from G['torch']"]), **at)
    w.step(inner, "LOAD_FAST h", (6, 6, 19, 20), stack=(0, ["TorchInGraphFunctionVariable relu"]), **at)
    w.step(inner, "CALL 1", (6, 6, 8, 21), stack=(1, [h]), nodes=("h_1",), **at)
    w.step(inner, "STORE_FAST h", (6, 6, 4, 5), stack=(0, ["TensorVariable f32[8, 32]cpu = h_1"]), **at)
    h_1 = {"h": "TensorVariable f32[8, 32]cpu = h_1"}
    w.step(inner, "LOAD_FAST h", (7, 7, 11, 12), locals=h_1, **at)
    w.step(inner, "LOAD_CONST 2", (7, 7, 15, 16), stack=(0, [h_1["h"]]), **at)
    w.step(inner, "BINARY_OP *", (7, 7, 11, 16), stack=(1, ["ConstantVariable 2"]), nodes=("mul",), **at)
    w.step(inner, "LOAD_CONST 1", (7, 7, 19, 20), stack=(0, ["TensorVariable f32[8, 32]cpu = mul"]), **at)
    w.step(inner, "BINARY_OP +", (7, 7, 11, 20), stack=(1, ["ConstantVariable 1"]), nodes=("y",), **at)
    w.step(inner, "RETURN_VALUE", (7, 7, 4, 20), stack=(0, [y]), **at)
    w.step(outer, "STORE_FAST y", (12, 12, 4, 5), stack=(0, [y]))
    w.step(outer, "LOAD_GLOBAL print", (16, 16, 4, 9), locals={"y": y})
    w.step(outer, "LOAD_CONST 'broke'", (16, 16, 10, 17), stack=(0, ["NullVariable", "BuiltinVariable print"]))
    broke = w.step(outer, "CALL 1", (16, 16, 4, 18), stack=(2, ["ConstantVariable 'broke'"]), guards=("BUILTIN print",))
    w.ends(broke, "graph-break", "GB0059 Failed to trace builtin operator")
    return w.finished()


def traced_run(store_path: Path, folder: Path) -> str:
    """As `small_run`, with the symbolic traces of both attempts of its first compile."""
    file = small_run(store_path, folder)
    with Store(str(store_path)) as store:
        run = store.find_run()
        for number, last in enumerate((False, True)):
            data = _walked(file, number, last=last)
            text = text_of(Walk(data))
            id = "0/0/symbolic-trace" + ("" if last else "/attempt-0")
            store.put_stage(
                run, "0/0", StageRef(id, "symbolic-trace", "plaintext", len(text)), text, 0.25 + number / 4, data
            )
    return file


def through_a_library(store_path: Path, folder: Path) -> str:
    """One compile whose function calls a library, which calls a function of the user's; returns the script's path."""
    script = folder / "model.py"
    script.write_text("def f(x):\n    y = lib(x)\n    return y\n\n\ndef mine(x):\n    return x + 1\n")
    file, library = str(script), f"{sysconfig.get_paths()['purelib']}/lib/layers.py"
    w = TraceWriter()
    outer = w.enter(w.code(file, "f", 1))
    w.step(outer, "RESUME 0", (1, 1, 0, 0))
    call = w.step(outer, "CALL 1", (2, 2, 8, 14))
    inner = w.enter(w.code(library, "lib", 10))
    w.step(inner, "RESUME 0", (10, 10, 0, 0), caller=call)
    again = w.step(inner, "CALL 1", (11, 11, 4, 11), caller=call)
    w.step(w.enter(w.code(file, "mine", 6)), "RETURN_VALUE", (7, 7, 4, 16), caller=again)
    w.step(inner, "RETURN_VALUE", (12, 12, 4, 12), caller=call)
    w.step(outer, "RETURN_VALUE", (3, 3, 4, 12))
    _put_trace(store_path, script, w.finished())
    return file


def of_methods(store_path: Path, folder: Path) -> None:
    """One compile that goes on after a graph break in a method, which calls a method of the same name."""
    script = folder / "model.py"
    script.write_text(
        "class Inner:\n    def forward(self, x):\n        return x + 1\n\n\n"
        "class Outer:\n    def forward(self, x):\n        print()\n        return self.inner.forward(x)\n"
    )
    w = TraceWriter()
    outer = w.enter(w.code(str(script), "torch_dynamo_resume_in_forward_at_8", 7))
    w.step(outer, "RESUME 0", (8, 8, 0, 0))
    call = w.step(outer, "CALL 1", (9, 9, 15, 36))
    w.step(w.enter(w.code(str(script), "forward", 2)), "RETURN_VALUE", (3, 3, 8, 20), caller=call)
    w.step(outer, "RETURN_VALUE", (9, 9, 8, 36))
    _put_trace(store_path, script, w.finished())


def _put_trace(store_path: Path, script: Path, data: Any) -> None:
    text, file = text_of(Walk(data)), str(script)
    with Store(str(store_path)) as store:
        run = store.create_run(file, (), Lane.DEEP, "digest")
        store.put_source(run, file, script.read_text())
        store.put_compile(run, _compile("0/0", file, 1, CompileOutcome.COMPILED))
        stage = StageRef("0/0/symbolic-trace", "symbolic-trace", "plaintext", len(text))
        store.put_stage(run, "0/0", stage, text, 0, data)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 1.0))


def long_trace(store_path: Path, folder: Path, steps: int) -> str:
    """One compile with a symbolic trace of so many steps: modules that call each other ten deep, a node in each."""
    script = folder / "long.py"
    script.write_text("".join(f"y = x{number}\n" for number in range(1000)))
    file = str(script)
    w = TraceWriter()
    codes = [w.code(file, f"forward{depth}", depth * 100 + 1) for depth in range(10)]
    count = 0

    def forward(depth: int, caller: int) -> None:
        nonlocal count
        frame = w.enter(codes[depth])
        for number in range(10):
            if count >= steps:
                return
            line = depth * 100 + number // 2 + 1
            tensor = f"TensorVariable f32[64, 64]cuda:0 = n{count}"
            more: dict[str, Any] = {"stack": (min(number, 3), [tensor]), "locals": {f"v{number % 5}": tensor}}
            if number == 6:
                more |= {"nodes": (f"n{count}",), "guards": (f"TENSOR_MATCH L['x{count}']",)}
            here = w.step(
                frame, f"OP {number}", (line, line, number % 2 * 4, number % 2 * 4 + 4), caller=caller, **more
            )
            count += 1
            if number in (3, 8) and depth + 1 < len(codes):
                forward(depth + 1, here)

    root = w.enter(codes[0])
    while count < steps:
        call = w.step(root, "CALL 0", (50, 50, 0, 8))
        count += 1
        forward(1, call)
    _put_trace(store_path, script, w.finished())
    return file


def line_of(text: str) -> int:
    """The 1-based line of the model that begins with a text."""
    return next(number for number, line in enumerate(MODEL.split("\n"), 1) if line.strip().startswith(text))
