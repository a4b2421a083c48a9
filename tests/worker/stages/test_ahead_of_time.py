"""Functions that the script compiles ahead of time: ``torch.compile(f, fullgraph=True).aot_compile(…)``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.internals import ahead_of_time
from support import run_forked, write
from versions import torch_version

SCRIPT = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(x)) * 2

def broken(x):
    print("a break")
    return x + 1

net, x = Net(), torch.ones(4, 8)
made = torch.compile(net.forward, fullgraph=True).aot_compile(((x,), {}))
print(torch.equal(made(net, x), net(x)))
try:
    torch.compile(broken, fullgraph=True).aot_compile(((x,), {}))
except Exception as error:
    print(type(error).__name__)

def doubled(x):
    return x * 2

def failing(graph, inputs):
    raise ValueError("not today")

try:
    torch.compile(doubled, backend=failing, fullgraph=True).aot_compile(((x,), {}))
except Exception as error:
    print(type(error).__name__)

@torch.compile(backend="eager")
def later(x):
    return x + 2

later(x)
"""
WHOLE = """\
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x.sin() * 2

net, x = Net(), torch.ones(4)
whole = torch.compile(net, fullgraph=True).forward.aot_compile(((x,), {}))
print(torch.allclose(whole(net, x), net(x)))
"""

STANDALONE = """\
import torch
from torch._inductor import standalone_compile
from torch.fx.experimental.proxy_tensor import make_fx

def f(x):
    return (x.sin() * 2,)

@torch.compile(backend="eager")
def later(x):
    return x + 2

def build(x):
    graph = make_fx(f, tracing_mode="fake")(x)
    return standalone_compile(graph, (x,))

x = torch.ones(4)
print(torch.allclose(build(x)(x)[0], f(x)[0]))
try:
    standalone_compile(None, (x,))
except Exception as error:
    print(type(error).__name__)
later(x)
"""
PRECOMPILE = """\
import torch
from torch.compiler import precompile

@torch.compile(backend="eager")
def part(x):
    return x + 2

def f(x, y):
    return torch.relu(x @ y)

x = torch.ones(4, 4)
code, cache = precompile(f, x, x)
print(torch.allclose(precompile.load(code, cache)(x, x), f(x, x)))
part(x)
"""


def test_a_graph_that_standalone_compile_compiles_is_a_compile_of_the_run(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, STANDALONE), tmp_path / "runs.db", "deep")
    assert (ran.report.capture_gaps, ran.stdout) == ((), "True\nAttributeError\n")
    assert [(c.qualified, c.line, c.outcome, c.graph_ops) for c in ran.report.compiles] == [
        ("build", 12, "compiled", 2),
        ("<module>", 1, "error", 0),
        ("later", 8, "compiled", 1),
    ]
    first = ran.report.compiles[0]
    assert {"post-grad-graph", "output-code", "kernel"} <= {stage.name for stage in first.stages}
    assert first.seconds > 0 and {k.compile for k in ran.kernels("cpp")} == {first.id}
    assert [(f.kind, f.range.start.line) for f in ran.report.findings] == [("compile-error", 19)]


@pytest.mark.skipif(torch_version() < (2, 14), reason="precompile is new in torch 2.14")
def test_a_function_that_precompile_compiles_is_a_compile_of_the_run(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, PRECOMPILE), tmp_path / "runs.db", "deep")
    assert (ran.report.capture_gaps, ran.stdout) == ((), "True\n")
    compiles = [(c.qualified, c.line, c.outcome, c.graph_ops, c.program) for c in ran.report.compiles]
    assert compiles == [("f", 8, "compiled", 2, "f"), ("part", 4, "compiled", 1, "part")]
    assert {"inference-graph", "output-code"} <= {stage.name for stage in ran.report.compiles[0].stages}


class Told(list[tuple[str, object]]):
    """What a receiver is told."""

    def __getattr__(self, name: str) -> Any:
        return lambda *told: self.append((name, told))


@pytest.mark.parametrize("ends", [True, False])
def test_precompile_is_a_compile_from_its_begin_to_its_end(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in torch 2.14, which is not the version of these tests."""

    class Context:
        now: Any = None

        def __init__(self, id: str) -> None:
            self.id = id

        @classmethod
        def current_compile_id(cls) -> Any:
            return cls.now

        def __enter__(self) -> None:
            Context.now = self.id

        def __exit__(self, *_: object) -> None:
            Context.now = None

    class PrecompiledModule:
        def __init__(self, fn: Any) -> None:
            self._fn, self._gm = fn, "graph"

        def _compile(self, args: tuple[object, ...]) -> None:
            seen.append((Context.now, ahead_of_time.going_on()))
            if not ends:
                raise TypeError("not today")

    seen: list[object] = []
    guards = SimpleNamespace(CompileContext=Context, compile_context=lambda context: context)
    dynamo = SimpleNamespace(convert_frame=SimpleNamespace(get_compile_id=lambda state: "3/0"))
    monkeypatch.setitem(sys.modules, "torch._guards", guards)
    monkeypatch.setitem(sys.modules, "torch._dynamo", dynamo)
    module: Any = SimpleNamespace(PrecompiledModule=PrecompiledModule)
    receiver: Any = Told()
    undo = ahead_of_time.precompile_hook(receiver).apply(module)
    try:
        with nullcontext() if ends else pytest.raises(TypeError):
            PrecompiledModule(lambda x: x)._compile(())
    finally:
        undo()
    assert receiver == [("began", ("3/0",)), ("ended", ("3/0", "graph")) if ends else ("failed", ("3/0",))]
    assert seen == [("3/0", None)], "what is traced may compile functions of its own"


@pytest.mark.parametrize("lane", ["fast", "deep"])
def test_a_compile_ahead_of_time_is_one_of_the_run(lane: str, tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, SCRIPT), tmp_path / "runs.db", lane)
    assert (ran.report.capture_gaps, ran.stdout) == ((), "True\nUnsupported\nValueError\n")
    assert [(c.qualified, c.line, c.outcome, c.graph_ops, c.program) for c in ran.report.compiles] == [
        ("Net.forward", 8, "compiled", 3, "Net"),
        ("broken", 11, "error", 0, "broken"),
        ("doubled", 23, "error", 1, "doubled"),
        ("later", 34, "compiled", 1, "later"),
    ]
    compiled = ran.report.compiles[0]
    assert compiled.module_class == "Net"
    assert {origin.line for origin in compiled.callers} >= ({16, 17} if lane == "deep" else {16}), "who called for it"
    assert [(f.kind, f.code, f.range.start.line, f.count) for f in ran.report.findings] == [
        ("compile-error", "GB0059", 12, 1),
        ("compile-error", "ValueError", 30, 1),
    ]
    stages = {stage.name for stage in compiled.stages}
    assert {"bytecode", "dynamo-graph", "guards"} <= stages
    if lane == "deep":
        assert {"post-grad-graph", "output-code"} <= stages and {k.compile for k in ran.kernels("cpp")} == {"0/0"}


def test_a_whole_module_is_compiled_at_its_forward(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, WHOLE), tmp_path / "runs.db", "fast")
    assert (ran.stdout, ran.report.capture_gaps) == ("True\n", ())
    assert [(c.qualified, c.line, c.program) for c in ran.report.compiles] == [("Net.forward", 4, "Net")]


class Missed:
    """Receives what cannot be followed, and nothing else."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def missed(self, error: Exception) -> None:
        self.errors.append(str(error))


@pytest.mark.parametrize(("model", "missed"), [("taken", ["no id"]), ("refused", [])])
def test_what_cannot_be_followed_is_compiled_all_the_same(model: str, missed: list[str]) -> None:
    """Of a PyTorch that has changed, it is a gap; the script's own mistakes are its own."""

    def compile_fullgraph(model: str) -> str:
        if model == "refused":
            raise TypeError("refused")
        return model

    def no_id(*args: object) -> None:
        raise TypeError("no id")

    convert = SimpleNamespace(
        get_compile_id=no_id, fullgraph_capture=None, get_traced_fn=lambda model: (compile_fullgraph, None)
    )
    torch: Any = SimpleNamespace(convert_frame=convert, aot_compile_fullgraph=compile_fullgraph)
    receiver: Any = Missed()
    undo = ahead_of_time.hook(receiver).apply(torch)
    try:
        if missed:
            assert torch.aot_compile_fullgraph(model) == model
        else:
            with pytest.raises(TypeError, match="refused"):
                torch.aot_compile_fullgraph(model)
    finally:
        undo()
    assert receiver.errors == missed and torch.aot_compile_fullgraph is compile_fullgraph
