"""Functions that the script compiles ahead of time: ``torch.compile(f, fullgraph=True).aot_compile(…)``."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.internals import ahead_of_time
from support import run_forked, write

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
