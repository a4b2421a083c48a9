"""The pipeline ``xla`` for real: lazy tensors of PyTorch/XLA down to LLVM IR and assembly."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from five_models import SCRIPTS, TRAINING_SCRIPTS
from irscope.driver.comparison import compared
from irscope.driver.driver import RunSpec
from irscope.driver.environments import Environment, default_folder
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import Severity
from irscope.provenance import Provenance
from irscope.store.store import Store
from pipeline_client import row_of, shown, steps_down
from runtimes import NET, RELU
from support import Ran, lines_marked, run_captured, run_plain, write

RunXla = Callable[[Path, str], Ran]
GRAPHS = ("lazy-graph", "hlo", "hlo-optimized")
TEXTS = ("lazy-ir", "stablehlo", "hlo-text", "hlo-optimized-text", "buffer-assignment")


@pytest.fixture(scope="module")
def ran_xla(python_with: Callable[[str], str]) -> RunXla:
    python = python_with("xla")

    def run(folder: Path, source: str) -> Ran:
        return run_captured(write(folder, source), folder / "runs.db", lane="deep", pipeline="xla", python=python)

    return run


MOVES = ("copy", "tuple", "constant", "get_tuple_element")
"""Operations of HLO that compute nothing."""


def check_lines(ran: Ran, stage: str) -> None:
    """At least 95 % of what computes in a graph has a line of a model's file."""
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        calls = [one for one in found.items(stage).items if one.op == "call"]
        computing = [one.element for one in calls if one.target.rpartition(".")[2] not in MOVES]
        kept = [one for one in computing if any("/torch/" not in line.file for line in found.origins(one))]
    assert len(kept) >= 0.95 * len(computing) > 0, f"{len(kept)} of {len(computing)} in {stage}"


def check_cuts(ran: Ran, name: str) -> None:
    """Nothing is missing, and only GPT-2 reads a value: transformers does so where it looks for packed sequences."""
    assert ran.report.capture_gaps == ()
    codes = [one.code for one in ran.report.findings]
    assert codes == (["lazy-graph-cut"] if name == "gpt2" else [])
    assert ran.stdout.startswith("agree"), ran.report.outcome


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_models(ran_xla: RunXla, name: str, tmp_path: Path) -> None:
    """Numbers agree (the script checks them), and operations keep the lines of the model down to the kernels."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_xla(tmp_path, SCRIPTS[name])
    check_cuts(ran, name)
    for compile in ran.report.compiles:
        assert set(TEXTS) <= {stage.name for stage in compile.stages}
        for graph in GRAPHS:
            check_lines(ran, f"{compile.id}/{graph}")
    kernels = ran.report.kernels
    assert sum(bool(one.origins) for one in kernels) >= 0.95 * len(kernels) > 0


@pytest.mark.parametrize("name", list(TRAINING_SCRIPTS))
def test_training(ran_xla: RunXla, name: str, tmp_path: Path) -> None:
    """Gradients agree, and the backward has stages with the lines of the forward."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_xla(tmp_path, TRAINING_SCRIPTS[name])
    if name == "conv":  # PyTorch/XLA has no backward of a normalization with fixed statistics
        [gap] = ran.report.capture_gaps
        assert "its backward failed: RuntimeError: The size of mean" in gap.why
        assert ran.stdout.startswith("agree"), ran.report.outcome
        return
    check_cuts(ran, name)
    last = ran.report.compiles[-1].id
    for graph in GRAPHS:
        check_lines(ran, f"{last}/{graph}")
        check_lines(ran, f"{last}/{graph}-backward")
    assert {f"{text}-backward" for text in TEXTS} <= {
        stage.id.partition("/")[2].partition("/")[2] for stage in ran.compile(last).stages
    }
    assert any(one.stage.startswith(f"{last}/kernel-backward/") for one in ran.report.kernels)


STEPS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Conv1d(1, 4, 3), torch.nn.Linear(24, 4)

    def forward(self, x):
        h = torch.relu(self.first(x.unsqueeze(1)))
        return self.last(h.flatten(1)).softmax(-1)


def trained(compiled):
    torch.manual_seed(0)
    net = Net()
    run = torch.compile(net) if compiled else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        loss = (run(torch.randn(4, 8)) * torch.arange(4)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [one.detach() for one in (*net.parameters(), *net.buffers())]


for a, b in zip(trained(True), trained(False)):
    torch.testing.assert_close(a, b)
print("agree")
"""


def test_a_training_loop_is_compiled_once(ran_xla: RunXla, tmp_path: Path) -> None:
    ran = ran_xla(tmp_path, STEPS)
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout == "agree\n", ran.report.outcome
    assert [one.id for one in ran.report.compiles] == ["0/0"]
    assert ran.report.compiles[0].graph_ops == ran.text("0/0/lazy-graph").count(" = torch.ops.") > 0


INFERENCE = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.arange(8).reshape(1, 8))

    def forward(self, x):
        return (x + self.rows[:, : x.shape[1]]).relu_()


net = Net()
fast = torch.compile(net)
with torch.inference_mode():
    for x in (torch.ones(2, 3), torch.randn(2, 3)):
        torch.testing.assert_close(fast(x), net(x))
    print("agree", fast(x).is_inference())
"""


def test_in_inference_mode(ran_xla: RunXla, tmp_path: Path) -> None:
    """PyTorch/XLA makes no views of tensors of that mode."""
    ran = ran_xla(tmp_path, INFERENCE)
    assert (ran.stdout, ran.report.capture_gaps) == ("agree True\n", ()), ran.report.outcome
    assert ran.report.compiles[0].stages


CUT = """\
import torch


def program(x, w):
    h = torch.relu(x @ w)
    if h.sum() > 3:  # cut
        h = h + 1
    return torch.tanh(h)


fast = torch.compile(program)
w = torch.ones(3, 4)
for rows in (2, 2, 5):
    x = torch.ones(rows, 3)
    torch.testing.assert_close(fast(x, w), program(x, w))  # call
print("agree")
"""


@pytest.fixture(scope="module")
def with_cut(ran_xla: RunXla, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran_xla(tmp_path_factory.mktemp("cut"), CUT)


def test_a_value_that_python_needs_cuts_the_graph_at_its_line(with_cut: Ran) -> None:
    ran = with_cut
    assert (ran.stdout, ran.report.capture_gaps) == ("agree\n", ()), ran.report.outcome
    [cut] = ran.findings("graph-break")
    assert (cut.code, cut.severity, cut.count) == ("lazy-graph-cut", Severity.WARNING, 3)
    assert {cut.range.start.line} == lines_marked(CUT, "# cut")
    assert cut.range.start.column == CUT.splitlines()[cut.range.start.line - 1].index("h.sum()")
    assert "value of a tensor" in cut.message
    assert [one.id for one in ran.report.compiles] == ["0/0", "1/0", "0/1", "1/1"]
    for one in ran.report.compiles:
        assert set(TEXTS) <= {stage.name for stage in one.stages}
        assert one.graph_ops == ran.text(f"{one.id}/lazy-graph").count(" = torch.ops.") > 0, one.id
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        targets = {
            name: [one.target for one in found.items(f"{name}/lazy-graph").items if one.op == "call"]
            for name in ("0/0", "1/0")
        }
    assert targets["0/0"][-1] == "torch.ops.aten.gt.Scalar"
    assert targets["1/0"][-1] == "torch.ops.aten.tanh.default"


def test_another_size_is_a_recompilation_at_the_call(with_cut: Ran) -> None:
    [again] = with_cut.findings("recompilation")
    assert (again.code, again.count, set(again.compiles)) == ("recompile-lazy-graph", 2, {"0/1", "1/1"})
    assert {again.range.start.line} == lines_marked(CUT, "# call")
    assert "arg0 was f32[2, 3], now f32[5, 3]" in again.message


OTHERS = """\
import torch


def noisy(x):
    return torch.nn.functional.dropout(x, 0.5)


def view(x):
    return x.t()


scale = torch.ones(3)


def changes(x):
    x.add_(1)
    scale.mul_(2)
    return {"scaled": x * scale, "where": (x.nonzero(), 3)}  # host


torch.manual_seed(1)
found = torch.compile(noisy)(torch.ones(8))
torch.manual_seed(1)
print(torch.equal(found, noisy(torch.ones(8))))
x = torch.zeros(2, 3)
print(torch.compile(view)(x).data_ptr() == x.data_ptr())
print(torch.compile(changes)(x), x, scale)
"""


def test_what_lazy_tensors_cannot_replace_runs_as_it_is(ran_xla: RunXla, tmp_path: Path) -> None:
    ran = ran_xla(tmp_path, OTHERS)
    same, *rest = ran.stdout.splitlines()
    assert same == "True", "the random numbers are those of PyTorch"
    assert rest == run_plain(tmp_path / "script.py").stdout.splitlines()[1:], ran.report.outcome
    assert [one.what for one in ran.report.capture_gaps] == ["noisy with lazy tensors", "view with lazy tensors"]
    [fallback] = ran.report.findings
    assert (fallback.kind, fallback.code) == ("fallback", "fallback-no-xla-lowering")
    assert {fallback.range.start.line} == lines_marked(OTHERS, "# host")
    assert "aten.nonzero" in fallback.message


# --- the editor and the debugger --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def net(ran_xla: RunXla, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran_xla(tmp_path_factory.mktemp("net"), NET)


async def test_a_client_shows_the_stages_and_links_them_with_the_source(net: Ran) -> None:
    optimized = "0/0/hlo-optimized"
    async with shown(net) as client:
        assert client.tree.item.pipeline == "xla"
        above = [f"0/0/{name}" for name in ("lazy-graph", "lazy-ir", "stablehlo", "hlo")]
        assert client.strip[:5] == [*above, optimized]
        assert any("fusion" in name for name in await client.nodes(optimized))
        line = row_of(net, optimized, "torch.ops.hlo.maximum(")
        among = [client.source, *(client.uris[stage] for stage in above)]
        places = await client.linked(client.uris[optimized], line, among)
        assert places[client.source] == [RELU - 1]
        assert all(places[uri] for uri in among)
        kernels = [one.uri for one in client.tree.compiles[0].kernels if one.language == "llvm"]
        assert await client.linked(client.source, RELU - 1, kernels), "the line leads down to a kernel"


def test_the_debugger_steps_from_the_line_down_to_hlo(net: Ran) -> None:
    seen = steps_down(net, RELU, 5)
    order = ["lazy-graph", "lazy-ir", "stablehlo", "hlo", "hlo-optimized"]
    assert [name.partition(".")[0] for name in seen] == order


def test_it_is_compared_with_a_pipeline_of_another_interpreter(
    python_with: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRSCOPE_STORE", str(tmp_path / "runs.db"))
    xla = pipeline_named("xla")
    made = Environment(xla, default_folder(xla), sys.executable)
    made.folder.mkdir(parents=True)
    for file in Path(python_with("xla")).parents[1].iterdir():
        (made.folder / file.name).symlink_to(file)
    made.done()
    script = str(write(tmp_path, SCRIPTS["mlp"]))
    specs = [RunSpec(script, pipeline=name, symbolic_trace=False) for name in ("inductor", "xla")]
    found = compared(specs, str(tmp_path / "runs.db"), 2).pipelines
    assert [one.problem for one in found] == ["", ""]
    assert [one.pipeline for one in found] == ["inductor", "xla"]
    for one in found:
        assert one.call.median and one.eager.median and one.kernels.value
        assert one.relative_difference.value is not None and one.relative_difference.value < 1e-5
