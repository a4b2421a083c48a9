"""Graphs between breaks that are made again from files give what they gave: control flow, autocast, buffers, own operators."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import run_plain_forked, write

pytestmark = pytest.mark.worker

SCRIPT = """\
import copy, os, sys
import torch
from torch import nn
from irscope.runner.kept_regions import KeptRegions
from irscope.runner.rounds import Measured
from irscope.runner import region_script

SEEN = []


def backend(graph, inputs):
    own = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))

    def called(*args):
        SEEN.append((Measured(own, None, args, {}, torch.is_grad_enabled(), False), graph(*args)))
        return graph(*args)

    return called


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)
        self.register_buffer("scale", torch.full((8,), 2.0))

    def forward(self, x, n):
        y = torch.einsum("bi,bj->bij", self.inner(x), self.scale + x)
        y = nn.functional.scaled_dot_product_attention(y, y, y)
        torch._dynamo.graph_break()
        y = torch.cond(y.sum() > 0, lambda q: q + self.scale, lambda q: q - 1, (y,))
        with torch.autocast("cpu"):
            y = y @ y
        for part in y.chunk(2):
            y = y + part.sum()
        return self.norm(y.float()) * float("inf"), torch.zeros(n, dtype=x.dtype)


torch.manual_seed(0)
net = torch.compile(Net(), backend=backend)
with torch.no_grad():
    for rows in (4, 5):  # the second time with a size of its own
        net(torch.randn(rows, 8), rows)
folder = sys.argv[1]
kept = KeptRegions(folder)
assert KeptRegions(folder + "/none").keep(SEEN[0][0]) == {}, "nobody asked for it"
for number, (one, expected) in enumerate(SEEN):
    assert kept.keep(one) == {"kept": number}, kept.keep(one)
    path = os.path.join(folder, "regions", f"{number}.pt")
    about = torch.load(path, weights_only=False)
    region_script._HERE = os.path.join(folder, "regions")
    again = region_script.made(about["graph"], about["name"])
    with torch.no_grad():
        torch.testing.assert_close(again(*about["args"]), expected, equal_nan=True)
one.program.graph.call_function(lambda: 0)
print(len(SEEN), kept.keep(one)["why_not_kept"])
"""


def test_a_graph_that_is_made_again_gives_the_same(tmp_path: Path) -> None:
    (tmp_path / "regions").mkdir()
    done = run_plain_forked(write(tmp_path, SCRIPT), [str(tmp_path)])
    assert done.returncode == 0, done.stderr
    number, _, why = done.stdout.strip().partition(" ")
    assert number == "4" and why.startswith("Its graph cannot be written:")
    assert (tmp_path / "regions" / "Region0.py").read_text().lstrip().startswith("def forward(self")
