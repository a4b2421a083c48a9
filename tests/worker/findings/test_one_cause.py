"""PyTorch reports one cause several times and by several ids; it is one finding."""

from __future__ import annotations

from pathlib import Path

from irscope.protocol import causes_only
from support import run_forked, write

EXPERTS = """\
import torch

torch._dynamo.config.capture_dynamic_output_shape_ops = True

class Experts(torch.nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        for i in range(2):
            token, = torch.where(x[:, 0] == i)
            if token.numel() == 0:  # @asked
                continue
            out.index_add_(0, token, x[token])
        return out

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = Experts()

    def forward(self, x):
        return x + self.experts(x)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

torch.compile(Model(), backend="eager")(torch.ones(4, 3))
"""


def test_a_guard_in_nested_loops(tmp_path: Path) -> None:
    """In the model it is a break in a loop (GB7000), in the block it has no id, in the experts it is a branch (GB0170)."""
    script = write(tmp_path, EXPERTS)
    ran = run_forked(script, tmp_path / "runs.db")
    line = EXPERTS[: EXPERTS.index("# @asked")].count("\n") + 1
    (finding,) = (f for f in ran.findings("graph-break") if f.range.start.line == line)
    assert finding.code == "data-dependent-guard"
    assert finding.count >= 3
    assert "`if` needs to know `token.numel() == 0` while tracing" in finding.message
    assert (
        "Python asks whether `u0 == 0`. The value comes from `token, = torch.where(x[:, 0] == i)`"
        in finding.explanation
    )
    assert finding.hints[0].startswith("Remove the check `token.numel() == 0`, with its `continue`.")
    assert finding.fixes


CUT = """\
import torch

@torch.compile
def f(x):
    n = x.shape[0]
    y = x.sin()
    torch._dynamo.graph_break()
    return y.reshape(n, -1) * n

for size in (4, 6, 8):
    f(torch.ones(size, 3))
"""


def test_a_size_that_python_reads_as_a_number(tmp_path: Path) -> None:
    """After the break PyTorch guards `n`, a number; it is the size of `x`."""
    ran = run_forked(write(tmp_path, CUT), tmp_path / "runs.db")
    size, number = ran.findings("recompilation")
    assert (size.code, number.code) == ("recompile-size", "recompile-value")
    assert number.follows is not None and number.follows.range == size.range
    assert causes_only(ran.findings("recompilation")) == [size]
    assert len([hint for hint in size.hints if "dynamic=True" in hint]) == 1
