"""Functions that the script compiles ahead of time: ``torch.compile(f, fullgraph=True).aot_compile(…)``."""

from __future__ import annotations

from pathlib import Path

import pytest
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
"""


@pytest.mark.parametrize("lane", ["fast", "deep"])
def test_a_compile_ahead_of_time_is_one_of_the_run(lane: str, tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, SCRIPT), tmp_path / "runs.db", lane)
    assert ran.report.capture_gaps == () and ran.stdout == "True\nUnsupported\n"
    assert [(c.qualified, c.line, c.outcome, c.graph_ops) for c in ran.report.compiles] == [
        ("Net.forward", 8, "compiled", 3),
        ("broken", 11, "error", 0),
    ]
    assert [(f.kind, f.code, f.range.start.line) for f in ran.report.findings] == [("compile-error", "GB0059", 12)]
    stages = {stage.name for stage in ran.report.compiles[0].stages}
    assert {"bytecode", "dynamo-graph", "guards"} <= stages
    if lane == "deep":
        assert {"post-grad-graph", "output-code"} <= stages and {k.compile for k in ran.kernels("cpp")} == {"0/0"}
