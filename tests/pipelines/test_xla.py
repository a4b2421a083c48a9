"""The pipeline ``xla`` for real: lazy tensors of PyTorch/XLA down to LLVM IR and assembly."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from five_models import SCRIPTS, TRAINING_SCRIPTS
from irscope.protocol import Origin, Severity
from irscope.provenance import Provenance
from irscope.store.store import Store
from pipeline_client import row_of, shown, steps_down
from runtimes import NET, RELU, PythonWith, check_steps, is_compared_with_inductor
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
    check_cuts(ran, name)
    last = ran.report.compiles[-1].id
    for graph in GRAPHS:
        check_lines(ran, f"{last}/{graph}")
        check_lines(ran, f"{last}/{graph}-backward")
    assert {f"{text}-backward" for text in TEXTS} <= {
        stage.id.partition("/")[2].partition("/")[2] for stage in ran.compile(last).stages
    }
    assert any(one.stage.startswith(f"{last}/kernel-backward/") for one in ran.report.kernels)
    told = "# PyTorch/XLA cannot compute aten.native_batch_norm_backward.default"
    assert (told in ran.text(f"{last}/lazy-graph-backward")) == (name == "conv"), "it has no statistics of the batch"


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


VIEWS = """\
import torch


def program(x):
    h = x + 1
    h[:, 0] = 5
    h.t()[1].mul_(3)
    return h * 2


x = torch.ones(2, 3)
torch.testing.assert_close(torch.compile(program)(x), program(x))
print("agree")
"""


def test_what_is_written_to_a_view_is_in_the_result(ran_xla: RunXla, tmp_path: Path) -> None:
    ran = ran_xla(tmp_path, VIEWS)
    assert (ran.stdout, ran.report.capture_gaps) == ("agree\n", ()), ran.report.outcome


# --- scripts that use PyTorch/XLA themselves --------------------------------------------------------------------------

LAZY = """\
import torch
import torch_xla
import torch_xla.core.xla_model as xm


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x):
        h = torch.relu(self.first(x))  # relu
        return self.last(torch.nn.functional.dropout(h, 0.5))


torch.manual_seed(0)
device = xm.xla_device()
net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for rows in (4, 4, 4, 6):
    x = torch.randn(rows, 8).to(device)  # batch
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    xm.optimizer_step(optimizer)
    xm.mark_step()  # step
    print(loss.item())
with torch_xla.step():  # context
    y = net(torch.ones(2, 8, device="xla"))
    y[:, 0] = 5
print(y)
z = y.sum() * 3
if z > 4:  # if
    print("z", z.item())
w = torch.ones(3, device=device) + z
torch_xla.sync()  # sync
print(w.nonzero().cpu())  # host
"""


def without_irscope(python: str, script: Path) -> str:
    env = {**os.environ, "PJRT_DEVICE": "CPU"}
    return subprocess.run([python, str(script)], capture_output=True, text=True, check=True, env=env).stdout


@pytest.fixture(scope="module")
def lazy(ran_xla: RunXla, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran_xla(tmp_path_factory.mktemp("lazy"), LAZY)


def test_a_script_computes_what_it_computes_without_irscope(lazy: Ran, python_with: Callable[[str], str]) -> None:
    assert lazy.report.capture_gaps == ()
    assert lazy.stdout == without_irscope(python_with("xla"), Path(lazy.report.script)), lazy.report.outcome
    assert lazy.stdout.count("\n") == 11


def test_each_step_and_each_cut_is_at_its_line(lazy: Ran) -> None:
    told = {}
    for mark in ("step", "context", "if", "sync"):
        [line] = lines_marked(LAZY, f"# {mark}")
        [one] = [one for one in lazy.findings("graph-break") if one.range.start.line == line]
        told[mark] = one.code, one.severity, one.count
    step = "lazy-graph-step", Severity.HINT
    assert told == {
        "step": (*step, 4),
        "context": (*step, 1),
        "if": ("lazy-graph-cut", Severity.WARNING, 1),
        "sync": (*step, 1),
    }
    [fallback] = lazy.findings("fallback")
    assert {fallback.range.start.line} == lines_marked(LAZY, "# host")


def test_a_step_that_was_compiled_again_says_why(lazy: Ran) -> None:
    [again] = lazy.findings("recompilation")
    assert {again.range.start.line} == lines_marked(LAZY, "# step")
    assert (again.count, again.compiles) == (2, ("0/1", "0/2"))  # the momentum begins, and the last batch is larger
    assert "was f32[4, 8], now f32[6, 8]" in again.message
    assert {again.related[0].range.start.line} == lines_marked(LAZY, "# batch")


def test_a_training_step_has_all_stages_with_the_lines_of_the_script(lazy: Ran) -> None:
    steps = [one for one in lazy.report.compiles if one.id.startswith("0/")]
    assert [one.id for one in steps] == ["0/0", "0/1", "0/2"]
    for one in steps:
        assert set(TEXTS) <= {stage.name for stage in one.stages}
        assert {one.line} == lines_marked(LAZY, "# step")
        assert one.graph_ops == lazy.text(f"{one.id}/lazy-graph").count(" = torch.ops.") > 0
    for graph in GRAPHS:
        check_lines(lazy, f"0/1/{graph}")
    text = lazy.text("0/1/lazy-graph")
    assert "threshold_backward" in text and "p_first_weight" in text
    relu = Origin(lazy.report.script, min(lines_marked(LAZY, "# relu")))
    assert any(relu in one.origins for one in lazy.report.kernels if one.compile == "0/1")


OPEN = """\
import torch
import torch_xla

torch.manual_seed(0)
device = torch_xla.device()
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(device)


@torch.compile(backend="openxla")
def loss_of(x):
    return torch.sin(net(x)).square().sum()  # line


@torch.compile(backend="openxla")
def scale(x):  # on host
    return torch.sin(x) * 2


optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for rows in (4, 4, 6):
    loss = loss_of(torch.ones(rows, 8).to(device))  # call
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch_xla.sync()
    print(loss.item())
print(scale(torch.ones(3)))
"""


def test_the_backend_openxla(ran_xla: RunXla, python_with: Callable[[str], str], tmp_path: Path) -> None:
    """What it compiles of tensors on the device has stages; it says where it gets others and compiles nothing."""
    ran = ran_xla(tmp_path, OPEN)
    assert ran.report.capture_gaps == ()
    assert ran.stdout == without_irscope(python_with("xla"), tmp_path / "script.py"), ran.report.outcome
    [host] = ran.findings("graph-not-compiled")
    assert (host.code, {host.range.start.line}) == ("tensors-on-host", lines_marked(OPEN, "# on host"))
    of_program = [one for one in ran.report.compiles if one.function == "loss_of"]
    with_backward = [one for one in of_program if any("-backward" in stage.id for stage in one.stages)]
    assert with_backward
    for one in with_backward:
        check_lines(ran, f"{one.id}/lazy-graph")
        check_lines(ran, f"{one.id}/hlo-backward")
    lines = {finding.range.start.line for finding in ran.findings("recompilation")}
    assert lines_marked(OPEN, "# call") <= lines


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
    is_compared_with_inductor("xla", python_with, tmp_path, monkeypatch)


def test_a_step_into_a_line_goes_to_what_computes_it(tmp_path: Path, python_with: PythonWith) -> None:
    check_steps(tmp_path, "xla", python_with("xla"), r"addmm|dot")
