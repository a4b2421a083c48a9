"""The lines that call compiled code lead to it, and it has the name of what was passed to `torch.compile`."""

from __future__ import annotations

from pathlib import Path

from irscope.protocol import Compile
from irscope.provenance.kernels import kernels_by_line
from irscope.provenance.lines import trail_of
from irscope.provenance.linked import LinkedLines
from irscope.store.store import Store
from support import Ran, run_forked, write

NOT_COMPILED = """\
import functools
import torch
from torch._inductor.async_compile import AsyncCompile

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None  # the kernels are generated, not compiled
"""
CALLED = (
    NOT_COMPILED
    + """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).relu()


def train(x):
    return model(x)


net = Net()
model = torch.compile(net)
x = torch.randn(2, 4)
first = train(x)
second = model(x)
second.sum().backward()
again = torch.compile(net)
again(x)
layer = torch.compile(torch.nn.TransformerEncoderLayer(16, 2, batch_first=True))
layer(torch.randn(2, 3, 16)).sum().backward()
"""
)
KINDS = (
    NOT_COMPILED
    + """\
class Region(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    @torch.compiler.nested_compile_region
    def forward(self, x):
        return torch.nn.functional.gelu(self.fc(x))


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Region() for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Block(torch.nn.Module):
    def forward(self, x):
        return x.tanh() * 2


x = torch.randn(2, 4, requires_grad=True)
stack = torch.compile(Stack())
stack(x).sum().backward()
first, second = Block(), Block()
for block in (first, second):
    block.compile()
second(first(x)).sum().backward()


def helper(x):
    print("now")
    return x.cos() * 2


class Broken(torch.nn.Module):
    def forward(self, x):
        return helper(x)


torch.compile(Broken())(x)
"""
)
NAMED = """\
import functools
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x.relu()

    def other(self, x):
        return x.sin()


def decorated(f):
    @functools.wraps(f)
    def around(*args):
        return f(*args)

    return around


@torch.compile(backend="eager")
@decorated
def step(x):
    return x.cos() + 1


@torch.compile(backend="eager")
def broken(x):
    y = x + 1
    print("now")
    return y * 2


x = torch.randn(2, 4)
torch.compile(Net(), backend="eager")(x)
torch.compile(Net().other, backend="eager")(x)
step(x)
broken(x)
torch.compile(torch.nn.Sequential(torch.nn.ReLU()), backend="eager")(x)


class Own(Net):
    def forward(self, x):
        return x.tanh()


own = Own()
own.compile(backend="eager")
own(x)


class Scaled:
    def __call__(self, x):
        return x * 3

    @decorated
    def method(self, x):
        return x - 3


class Narrow(Scaled):
    pass


@torch.compile(backend="eager")
class Decorated(torch.nn.Module):
    @decorated
    def forward(self, x):
        return x.exp()


torch.compile(Scaled(), backend="eager")(x)
torch.compile(Narrow().method, backend="eager")(x)
torch.compile(functools.partial(Scaled.method, Scaled()), backend="eager")(x)
Decorated()(x)
weight = torch.nn.Parameter(x)
weight.sum().backward()
torch.compile(torch.optim.AdamW([weight]).step, backend="eager")()
"""


def lines_of(ran: Ran, compile: Compile, backward: bool = False) -> list[str]:
    text = Path(ran.report.script).read_text(encoding="utf-8").split("\n")
    return [text[line.line - 1].strip() for line in (compile.backward_callers if backward else compile.callers)]


def test_every_line_that_calls_compiled_code_leads_to_its_kernels(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, CALLED), tmp_path / "runs.db", "deep")
    assert [gap.what for gap in ran.report.capture_gaps if "call" in gap.what] == []
    net, layer = ran.report.compiles
    assert (net.title, layer.title) == ("Net", "TransformerEncoderLayer")
    called = ["return model(x)", "first = train(x)", "second = model(x)", "model = torch.compile(net)"]
    reused = ["again = torch.compile(net)", "again(x)"]
    assert sorted(lines_of(ran, net)) == sorted([*called, *reused, "def forward(self, x):"])
    assert lines_of(ran, net, backward=True) == ["second.sum().backward()"]
    assert lines_of(ran, layer, backward=True) == ["layer(torch.randn(2, 3, 16)).sum().backward()"]
    by_line = kernels_by_line(ran.report)
    for compile in (net, layer):
        mine = [kernel for kernel in ran.report.kernels if kernel.compile == compile.id]
        for lines, backward in ((compile.callers, False), (compile.backward_callers, True)):
            side = {kernel for kernel in mine if ("-backward" in kernel.stage) is backward}
            for line in lines:
                assert side and side <= set(by_line[line]), line
    (calling,) = {line for line in layer.callers if line in layer.backward_callers}
    for kernel in ran.report.kernels:  # torch leaves no lines of its own layers: they have their modules
        if kernel.compile == layer.id:
            assert kernel.origins == (calling,) and kernel.innermost is None
    modules = {kernel.module for kernel in ran.report.kernels if kernel.compile == layer.id}
    assert {"self_attn", "norm1", "norm2"} <= modules
    with Store(ran.store) as store:
        trail = trail_of(store, ran.report, calling.file, calling.line)
        (code,) = (stage.id for stage in layer.stages if stage.id.endswith("/output-code-backward"))
        linked = LinkedLines(store, ran.report)
        assert linked.counterparts_of_source(calling.file, calling.line, [code]) == {code: tuple(linked.keys(code))}
    assert [(one.title, one.is_backward) for one in trail.called] == [(layer.title, False), (layer.title, True)]


def test_kernels_of_nested_regions_and_of_blocks_have_their_paths(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, KINDS), tmp_path / "runs.db", "deep")
    stack, block, *broken = ran.report.compiles
    assert (stack.title, block.title) == ("Stack", "Block")
    alone = [kernel for kernel in ran.report.kernels if kernel.compile in {compile.id for compile in broken}]
    assert {(kernel.module, kernel.module_class) for kernel in alone} == {("", "Broken")}  # of a function alone
    text = Path(ran.report.script).read_text(encoding="utf-8").split("\n")
    inner = "return torch.nn.functional.gelu(self.fc(x))"
    kernels = [kernel for kernel in ran.report.kernels if kernel.compile == stack.id]
    assert {kernel.language for kernel in kernels} == {"cpp", "extern"}
    for kernel in kernels:  # the graph of a region is called for each layer and lowered once
        assert kernel.innermost is not None and text[kernel.innermost.line - 1].strip() == inner, kernel
        assert kernel.module.startswith("layers."), kernel
    assert {kernel.module_class for kernel in kernels} == {"Region", "Linear"}
    of_block = [kernel for kernel in ran.report.kernels if kernel.compile == block.id]
    assert {(kernel.module, kernel.module_class) for kernel in of_block} == {("", "Block")}
    assert {"second(first(x)).sum().backward()", "block.compile()"} <= set(lines_of(ran, block))
    assert lines_of(ran, block, backward=True) == ["second(first(x)).sum().backward()"]


def test_a_compile_has_the_name_of_what_was_passed(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, NAMED), tmp_path / "runs.db")
    titles = ["Net", "Net.other", "step", "broken", "broken, after line 30", "Sequential", "Own"]
    titles += ["Scaled", "Narrow.method", "Scaled.method", "Decorated", "AdamW.step"]
    assert [compile.title for compile in ran.report.compiles][: len(titles)] == titles
