"""What the tests of systems that run a whole exported program have in common: scripts, and what is true of each system."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from five_models import SCRIPTS, lines_kept, reached
from irscope.driver.comparison import compared
from irscope.driver.driver import RunSpec
from irscope.driver.environments import Environment, default_folder
from irscope.pipelines.registry import pipeline_named
from irscope.provenance import Provenance
from irscope.store.store import Store
from pipeline_client import row_of, rows_down, shown
from support import Ran, lines_marked, run_captured, run_plain, write

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
NET = """\
import torch


def scale(x, w):
    y = x @ w
    h = torch.relu(y)  # @relu
    return torch.tanh(h) + 1


fast = torch.compile(scale)
print(fast(torch.ones(2, 3), torch.ones(3, 4)).sum())
"""
[RELU] = lines_marked(NET, "# @relu")
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
    assert reached(ran).share >= 0.95


def check_fusion(ran: Ran, stage: str, convolution: str, mean: str, reorder: str) -> None:
    """What a runtime fuses of `CONV` keeps the lines of all its operations.

    Args:
        stage: The graph as the runtime computes it.
        convolution: The operator that has become of the convolution, the normalization and the ``relu``.
        mean: The operator of the mean.
        reorder: An operator that changes a layout.
    """
    wanted = {mark: lines_marked(CONV, f"# {mark}") for mark in ("conv", "norm", "relu", "mean")}
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        lines = {
            item.target: {origin.line for origin in found.origins(item.element)}
            for item in found.items(stage).items
            if item.op == "call"
        }
    fused = wanted["conv"] | wanted["norm"] | wanted["relu"]
    assert lines[convolution] == fused
    assert lines[mean] == wanted["mean"]
    assert lines[reorder] <= fused


LINEAR = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(3, 4)), torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias) * 2 + 1  # @linear


fast = torch.compile(Net().eval())
with torch.no_grad():
    print(fast(torch.ones(2, 4)).sum())
"""
_GIVEN = re.compile(r"^\w+(: \S+)? = self\.|[Cc]onstant[( ]|alloc_|device_data")


def check_steps(folder: Path, pipeline: str, python: str, work: str) -> None:
    """A line leads a debugger, through every stage, to what computes it: to no constant and no memory of it.

    Args:
        work: What the first places below the captured program have in them, as a regular expression.
    """
    ran = run_captured(write(folder, LINEAR), folder / "runs.db", "deep", pipeline=pipeline, python=python)
    [line] = lines_marked(LINEAR, "# @linear")
    seen = rows_down(ran, line, 5, lambda name: "kernel" in name)
    rows = [
        ran.text(f"0/0/{stage.partition('.')[0]}").split("\n")[at - 1].strip()
        for stage, at in seen
        if "kernel" not in stage
    ]
    assert len(rows) > 2, seen
    assert not [row for row in rows if _GIVEN.search(row)], rows
    assert re.search(work, rows[1]) and re.search(work, rows[2]), rows


def check_training(ran: Ran, system: str, dynamic: tuple[str, str]) -> None:
    """`TRAINING` computes what the script computes.

    Args:
        system: As it is named to the user.
        dynamic: A stage, and the type of the input whose first size is dynamic.
    """
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    *losses, noisy, own, first, second = ran.stdout.splitlines()
    assert losses == run_plain(Path(ran.report.script)).stdout.splitlines()[:3]
    assert noisy == own
    assert first == second == "True True True"
    said = f"it draws random numbers, and {system} would draw others.\n"
    assert ran.text("1/0/export-signature").endswith(said)
    stage, type = dynamic
    assert type in ran.text(stage)


async def check_client(ran: Ran, graphs: Sequence[str], node: str, statement: str, above: str) -> None:
    """A client lists the run of `CONV`, draws the last graph, and links the statement of the mean with its line.

    Args:
        node: A node of the last graph.
        statement: A part of the row that computes the mean in the last graph.
        above: Another graph that is linked.
    """
    last = graphs[-1]
    async with shown(ran) as client:
        assert client.tree.item.pipeline == above.partition("/0/")[2].partition("-")[0]
        assert client.strip == list(dict.fromkeys(["0/0/exported-program", *graphs]))
        assert node in await client.nodes(last)
        among = [client.source, client.uris[above]]
        lines = await client.linked(client.uris[last], row_of(ran, last, statement), among)
        [mean] = lines_marked(CONV, "# mean")
        assert lines[client.source] == [mean - 1]
        assert lines[client.uris[above]]


def is_compared_with_inductor(
    name: str, python_with: PythonWith, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipeline, which runs in its own environment, has all numbers of a comparison."""
    monkeypatch.setenv("IRSCOPE_STORE", str(folder / "runs.db"))
    pipeline = pipeline_named(name)
    made = Environment(pipeline, default_folder(pipeline), sys.executable)
    made.folder.mkdir(parents=True)
    for file in Path(python_with(name)).parents[1].iterdir():
        (made.folder / file.name).symlink_to(file)
    made.done()
    script = str(write(folder, SCRIPTS["mlp"]))
    specs = [RunSpec(script, pipeline=one, symbolic_trace=False) for one in ("inductor", name)]
    found = compared(specs, str(folder / "runs.db"), 2).pipelines
    assert [one.problem for one in found] == ["", ""]
    assert [one.pipeline for one in found] == ["inductor", name]
    for one in found:
        assert one.call.median and one.eager.median and one.kernels.value
        assert one.relative_difference.value is not None and one.relative_difference.value < 1e-5
        assert [each for each in one.gone if not each.why] == []  # what a library computes is not gone
