"""What the tests of systems that run a whole exported program have in common: scripts, and what is true of each system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from five_models import lines_kept
from lsp_editor import SERVER, Editor
from support import Ran, lines_marked

PythonWith = Callable[[str], str]

CONV = """\
import torch


class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

    def forward(self, x):
        x = self.conv(x)  # conv
        x = self.norm(x)  # norm
        x = torch.relu(x)  # relu
        return x.mean((2, 3))  # mean


fast = torch.compile(Conv().eval())
with torch.no_grad():
    x = torch.ones(2, 3, 8, 8)
    fast(x)
    print(type(fast(x).grad_fn).__name__, (fast(x) - fast._orig_mod(x)).abs().max() < 1e-6)
"""
TRAINING = """\
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 2)
fast = torch.compile(layer)
optimizer = torch.optim.SGD(layer.parameters(), 0.01)
x = torch.ones(3, 4)
for _ in range(3):
    optimizer.zero_grad()
    loss = fast(x).square().sum()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}")


def noisy(x):
    return torch.nn.functional.dropout(x, 0.5)


torch.manual_seed(1)
print(torch.compile(noisy)(torch.ones(8)))
torch.manual_seed(1)
print(noisy(torch.ones(8)))


def nested(x, scale=2):
    a, b = x.split(2, -1)
    return {"sum": (a + b) * scale, "parts": [x.topk(2)[0]]}


x = torch.arange(12.0).reshape(3, 4)
torch._dynamo.mark_dynamic(x, 0)
fast = torch.compile(nested)
for given in (x, x[:2]):
    one, two = fast(given), nested(given)
    print(torch.equal(one["sum"], two["sum"]), torch.equal(one["parts"][0], two["parts"][0]), list(one) == list(two))
"""


def check_model(ran: Ran, stages: Sequence[str], graphs: Sequence[str]) -> None:
    """A model of `five_models`: all stages are there, it runs in place, and operations have lines in each graph."""
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree")
    assert tuple(stage.name for stage in ran.compile("0/0").stages if not stage.passed) == tuple(stages)
    assert "The script goes on" not in ran.text("0/0/export-signature")
    for stage in graphs:
        kept, count = lines_kept(ran, stage)
        assert count > 0, stage
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"


async def check_client(ran: Ran, graphs: Sequence[str], node: str, statement: str, above: str) -> None:
    """A client lists the run of `CONV`, draws the last graph, and links the statement of the mean with its line.

    Parameters
    ----------
    node
        A node of the last graph.
    statement
        A part of the row that computes the mean in the last graph.
    above
        Another graph that is linked.
    """
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    script, last, run = Path(ran.report.script), graphs[-1], ran.report.run
    editor = await Editor.start(SERVER, options={"storePath": ran.store}, settings=settings, folder=script.parent)
    try:
        editor.open(script)
        tree = await editor.request("irscope/report", run=run)
        assert tree.item.pipeline == above.partition("/0/")[2].partition("-")[0]
        [compile] = tree.compiles
        uris = {stage.stage: stage.uri for stage in compile.stages}
        strip = await editor.request("irscope/pipeline", run=run)
        assert [stage.stage for stage in strip.stages] == list(dict.fromkeys(["0/0/exported-program", *graphs]))
        graph = await editor.request("irscope/graph", run=run, stage=last)
        assert node in list(graph.nodes.name)
        at = next(number for number, row in enumerate(ran.text(last).split("\n")) if statement in row)
        among = [script.as_uri(), uris[above]]
        found = await editor.request("irscope/counterparts", uri=uris[last], line=at, run=run, among=among)
        lines = {one.uri: list(one.lines) for one in found.places}
        [mean] = lines_marked(CONV, "# mean")
        assert lines[script.as_uri()] == [mean - 1]
        assert lines[uris[above]]
    finally:
        await editor.close()
