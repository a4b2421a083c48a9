"""The pipeline ``pruning``: zeros and patterns of parameters, and masks that are in the graph until they are removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from five_models import SCRIPTS, TRAINING_SCRIPTS, lines_kept, reached
from irscope.provenance import Provenance
from irscope.store.store import Store
from support import Ran, run_forked, run_plain_forked, write

SCRIPT = """\
import torch
from torch.nn.utils import prune


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 16)
        self.b = torch.nn.Linear(16, 4)

    def forward(self, x):
        h = torch.relu(self.a(x))  # @a
        return self.b(h)  # @b


torch.manual_seed(0)
net, x = Net().eval(), torch.ones(2, 8)
pattern = torch.tensor([1.0, 0.0, 0.0, 1.0]).repeat(16, 2)
prune.custom_from_mask(net.a, "weight", pattern)
prune.ln_structured(net.b, "weight", amount=0.5, n=2, dim=0)
with torch.no_grad():
    fast = torch.compile(net)
    torch.testing.assert_close(fast(x), net(x))
    prune.remove(net.a, "weight")
    prune.remove(net.b, "weight")
    torch.testing.assert_close(fast(x), net(x))
print("agree")
"""
LINES = SCRIPT.split("\n")


def rows_of(ran: Ran, compile: str) -> dict[str, list[str]]:
    rows = [line.split("  ") for line in ran.text(f"{compile}/sparsity").split("\n\n")[0].split("\n")[1:]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return {row[0]: row[1:] for row in cells}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("pruning")
    return run_forked(write(folder, SCRIPT), folder / "runs.db", lane="deep", pipeline="pruning")


def test_the_script_computes_the_same_and_nothing_is_missing(ran: Ran) -> None:
    assert ran.report.capture_gaps == ()
    assert ran.stdout == run_plain_forked(Path(ran.report.script)).stdout == "agree\n"


def test_zeros_and_patterns_are_told_with_their_masks(ran: Ran) -> None:
    rows = rows_of(ran, "0/0")
    assert rows["a.weight"][:5] == ["[16, 8]", "64", "50.0 %", "structured: 4 of 8 in dimension 1", "yes"]
    assert rows["b.weight"][:5] == ["[4, 16]", "32", "50.0 %", "structured: 2 of 4 in dimension 0", "no"]
    assert rows["b.bias"] == ["[4]", "0", "0.0 %", "dense", "not possible", "none"]
    for name in ("a.weight", "b.weight"):
        assert f"{rows[name][5]}: " in ran.text("0/0/dynamo-graph")
    text = ran.text("0/0/sparsity")
    assert "Masks that are multiplied at each call: 2." in text
    assert "on CUDA devices of capability 8.0 or newer; the parameters are on cpu." in text


def test_the_masks_are_gone_after_they_were_removed(ran: Ran) -> None:
    assert [rows_of(ran, "0/1")[name][-1] for name in ("a.weight", "b.weight")] == ["none", "none"]
    assert [rows_of(ran, "0/1")[name][1] for name in ("a.weight", "b.weight")] == ["64", "32"]
    assert ("mask" in ran.text("0/0/post-grad-graph"), "mask" in ran.text("0/1/post-grad-graph")) == (True, False)


def test_each_line_with_a_mask_has_a_finding(ran: Ran) -> None:
    found = {LINES[one.range.start.line - 1].partition("@")[2]: one for one in ran.findings("pruning-mask")}
    assert {at: one.message for at, one in found.items()} == {
        name: f"The mask of `{name}.weight` is in the graph: each call multiplies the parameter by it."
        for name in ("a", "b")
    }
    assert {one.compiles for one in found.values()} == {("0/0",)}


def test_a_line_leads_to_its_mask_and_its_kernel(ran: Ran) -> None:
    line = 1 + next(number for number, text in enumerate(LINES) if "@a" in text)
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        below = found.below(found.source(ran.report.script, line))
    product = rows_of(ran, "0/0")["a.weight"][5]
    assert product in {one.name for one in below["0/0/dynamo-graph"]}
    assert any(stage.startswith("0/0/kernel/") for stage in below)


TRAINED = """\
import torch
from torch.nn.utils import prune

net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
prune.l1_unstructured(net[0], "weight", amount=0.25)


@torch.compile
def step(x):
    return net(x).sum()


step(torch.ones(2, 8)).backward()
print(int((net[0].weight_orig.grad == 0).sum()) >= 16)
"""


@pytest.mark.nightly
def test_masks_in_training(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, TRAINED), tmp_path / "runs.db", lane="deep", pipeline="pruning")
    assert (ran.report.capture_gaps, ran.stdout) == ((), "True\n")
    [(masked, row)] = [(name, row) for name, row in rows_of(ran, "0/0").items() if row[-1] != "none"]
    assert (masked.endswith("0.weight"), row[1], row[3]) == (True, "16", "unstructured")
    assert "0/0/backward-graph" in {stage.id for stage in ran.compile("0/0").stages}


# --- models -----------------------------------------------------------------------------------------------------------

PRUNED = """\
from torch.nn.utils import prune

for layer in list(model.modules()):
    if type(layer).__name__ in ("Linear", "Conv2d", "Conv1D"):
        prune.l1_unstructured(layer, "weight", amount=0.5)
fast = torch.compile(model)
"""


@pytest.mark.parametrize("trained", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "name", ["mlp", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("conv", "bert", "gpt2", "vit"))]
)
def test_models(name: str, trained: bool, tmp_path: Path) -> None:
    """Numbers agree (the script checks them), masks are found, and operations keep the lines of the model down to kernels."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    source = (TRAINING_SCRIPTS if trained else SCRIPTS)[name].replace("fast = torch.compile(model)\n", PRUNED)
    ran = run_forked(write(tmp_path, source), tmp_path / "runs.db", lane="deep", pipeline="pruning")
    assert ran.report.capture_gaps == ()
    assert ran.stdout.startswith("agree"), ran.stderr
    assert ran.findings("pruning-mask")
    assert "structured" in ran.text("0/0/sparsity") or "50.0 %" in ran.text("0/0/sparsity")
    graphs = ["post-grad-graph", "post-grad-graph-backward"] if trained else ["post-grad-graph"]
    for stage in ("0/0/dynamo-graph", *(f"0/0/{graph}" for graph in graphs)):
        kept, count = lines_kept(ran, stage)
        assert count > 0
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
    kernels = [kernel for kernel in ran.report.kernels if kernel.is_generated]
    assert kernels and all(kernel.origins for kernel in kernels)
    assert reached(ran).share >= 0.95
