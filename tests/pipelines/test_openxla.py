"""The pipeline ``openxla`` for real: torchax and JAX down to LLVM IR and assembly."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from five_models import SCRIPTS, TRAINING_SCRIPTS, lines_kept
from irscope.protocol import CompileOutcome
from irscope.provenance import Provenance
from irscope.store.store import Store
from pipeline_client import row_of, shown, steps_down
from runtimes import NET, RELU, PythonWith, check_steps, is_compared_with_inductor
from support import REPOSITORY, Ran, lines_marked, run_captured, run_plain, write

RunOpenXla = Callable[[Path, str], Ran]
GRAPHS = ("0/0/exported-program", "0/0/decomposed-program", "0/0/hlo", "0/0/hlo-optimized")
TEXTS = ("jaxpr", "stablehlo", "hlo-text", "hlo-optimized-text", "buffer-assignment")


@pytest.fixture(scope="module")
def ran_openxla(python_with: Callable[[str], str]) -> RunOpenXla:
    python = python_with("openxla")

    def run(folder: Path, source: str) -> Ran:
        return run_captured(write(folder, source), folder / "runs.db", lane="deep", pipeline="openxla", python=python)

    return run


@pytest.fixture(scope="module")
def mlp(ran_openxla: RunOpenXla, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran_openxla(tmp_path_factory.mktemp("openxla"), SCRIPTS["mlp"])


def test_all_stages_are_there(mlp: Ran) -> None:
    assert (mlp.report.capture_gaps, mlp.report.findings) == ((), ())
    assert mlp.stdout == "agree (2, 4)\n", mlp.report.outcome
    [compile] = mlp.report.compiles
    names = [stage.name for stage in compile.stages]
    assert set(TEXTS) <= set(names)
    passes = [stage.passed for stage in compile.stages if stage.passed]
    assert {"call-inliner", "algsimp", "fusion"} <= set(passes)
    assert names.count("hlo-optimized") == len(passes) + 1
    kernels = [one for one in mlp.report.kernels if one.is_generated]
    assert [one.language for one in mlp.report.kernels if not one.is_generated] == ["extern", "extern"]  # two matmuls
    assert len(kernels) == names.count("xla-kernel") == names.count("xla-llvm") > 0
    if shutil.which("llvm-objdump") or shutil.which("objdump"):
        assert names.count("xla-assembly") == len(kernels)
    assert all(one.origins for one in mlp.report.kernels)


def test_a_kernel_leads_up_to_the_lines_of_the_model(mlp: Ran) -> None:
    [softmax] = [one for one in mlp.report.kernels if "exponential" in one.name]
    with Store(mlp.store) as store:
        found = Provenance(store, mlp.report)
        below = next(one for one in mlp.report.compiles[0].stages if one.id == f"{softmax.stage}/xla-llvm")
        last = found.elements(below.id)[-1]
        assert softmax.stage == found.parents(last)[0].stage
        assert {one.line for one in found.origins(last)} == {one.line for one in softmax.origins}
        softmax_node = next(one for one in found.elements("0/0/exported-program") if one.name == "softmax")
        assert {softmax.stage, below.id, "0/0/jaxpr", "0/0/stablehlo"} <= set(found.below(softmax_node))


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_models(ran_openxla: RunOpenXla, name: str, tmp_path: Path) -> None:
    """Numbers agree (the script checks them), and operations keep the lines of the model down to the kernels."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_openxla(tmp_path, SCRIPTS[name])
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree")
    assert "goes on with its own program" not in ran.text("0/0/export-signature")
    for stage in GRAPHS:
        kept, count = lines_kept(ran, stage)
        assert count > 0
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
    kernels = ran.report.kernels
    assert sum(bool(one.origins) for one in kernels) >= 0.95 * len(kernels)
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        lowest = [one.id for one in ran.report.compiles[0].stages if one.name == "xla-llvm"]
        reached = [stage for stage in lowest if found.origins(found.elements(stage)[0])]
    assert len(reached) >= 0.95 * len(lowest) > 0


UNSUPPORTED = """\
import torch


@torch.library.custom_op("irscope_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def program(x):
    return twice(x) + 1  # @unsupported


print(torch.compile(program)(torch.ones(3)))
"""


def test_an_operator_that_torchax_does_not_have_is_named_at_its_line(ran_openxla: RunOpenXla, tmp_path: Path) -> None:
    ran = ran_openxla(tmp_path, UNSUPPORTED)
    assert ran.report.capture_gaps == ()
    [finding] = ran.findings("unsupported-operator")
    assert (finding.code, finding.range.start.line) == ("no-torchax-operator", 15)
    assert "irscope_test.twice.default" in finding.message
    assert ran.compile("0/0").outcome is CompileOutcome.ERROR
    assert ran.stdout == "tensor([3., 3., 3.])\n"


CALLS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)

    def forward(self, x, scale=2.0):
        h = self.first(x)
        return {"turned": (h * scale).t(), "kind": 7, "sorted": h.sort(-1).indices, "mask": h > 0, "double": h.double()}


def shown(found):
    return [(k, v if not isinstance(v, torch.Tensor) else (v.dtype, v.shape, v.stride(), v.sum())) for k, v in found.items()]


torch.manual_seed(0)
net = Net().eval()
fast = torch.compile(net)
x = torch.randn(2, 4)
torch._dynamo.mark_dynamic(x, 0)
with torch.no_grad():
    print(shown(fast(x)), shown(fast(x, 2.0)), shown(fast(x, 3.0)), shown(fast(torch.ones(5, 4))))
    net.first.weight.mul_(2)
    print(shown(fast(x)))
fast(x)["double"].sum().backward()
print(net.first.weight.grad.sum())
"""


def test_calls_that_are_not_like_the_first_and_results_of_all_kinds(ran_openxla: RunOpenXla, tmp_path: Path) -> None:
    ran = ran_openxla(tmp_path, CALLS)
    assert ran.report.capture_gaps == ()
    assert ran.stdout == run_plain(tmp_path / "script.py").stdout
    assert [one.kind for one in ran.report.findings] == ["static-size"]


def test_the_example_of_the_page_has_the_finding(ran_openxla: RunOpenXla, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "findings" / "static-size.md").read_text("utf-8")
    source, remedy = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ran = ran_openxla(tmp_path, source)
    [finding] = ran.report.findings
    assert {finding.range.start.line} == lines_marked(source, f"# ← {finding.code}")
    start = finding.range.start
    assert f"example.py:{start.line}:{start.column + 1}  {finding.kind} {finding.code}\n  {finding.message}\n" in page
    assert f"\n  {finding.explanation}\n" in page
    assert ran_openxla(tmp_path / "remedy", remedy).report.findings == ()


# --- training ---------------------------------------------------------------------------------------------------------

TRAINING = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x):
        h = torch.relu(self.first(x))
        y = self.last(h)
        return y.softmax(-1), y.argmax(-1)


def trained(compiled):
    torch.manual_seed(0)
    net = Net()
    run = torch.compile(net) if compiled else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        x = torch.randn(4, 8)
        p, best = run(x)
        loss = (p * torch.arange(4)).sum() + best.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if compiled:
        print(type(p.grad_fn).__name__)
    x = torch.randn(4, 8, requires_grad=True)
    [g] = torch.autograd.grad(run(x)[0].pow(2).sum(), x, create_graph=True)
    g.sum().backward()
    return [one.detach() for one in net.parameters()] + [one.grad for one in net.parameters()]


for a, b in zip(trained(True), trained(False)):
    torch.testing.assert_close(a, b)
print("agree")
"""
MOVES = ("copy", "tuple", "constant", "bitcast")
"""Operations of HLO that compute nothing; XLA puts some in for what the forward keeps."""


def test_a_training_step_runs_in_place_with_a_backward_of_its_own(ran_openxla: RunOpenXla, tmp_path: Path) -> None:
    ran = ran_openxla(tmp_path, TRAINING)
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout == "XlaStepBackward\nagree\n"  # also gradients of gradients, by the program itself
    [compile] = ran.report.compiles
    ids = {stage.id for stage in compile.stages}
    below = ("jaxpr", "stablehlo", "hlo", "hlo-text", "hlo-optimized", "hlo-optimized-text", "buffer-assignment")
    assert {f"0/0/{name}{side}" for name in below for side in ("", "-backward")} <= ids
    check_lines_of_training(ran)


def check_lines_of_training(ran: Ran) -> None:
    """The user's lines reach the graphs of the forward and of the backward, and their kernels."""
    stages = ran.report.compiles[0].stages
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        for stage in [f"0/0/{name}{side}" for name in ("hlo", "hlo-optimized") for side in ("", "-backward")]:
            calls = [one for one in found.items(stage).items if one.op == "call"]
            computing = [one.element for one in calls if one.target.rpartition(".")[2] not in MOVES]
            kept = [one for one in computing if any("/torch/" not in line.file for line in found.origins(one))]
            assert len(kept) >= 0.95 * len(computing) > 0, f"{len(kept)} of {len(computing)} in {stage}"
        for side in ("kernel", "kernel-backward"):
            kernels = [one for one in ran.report.kernels if one.stage.startswith(f"0/0/{side}/")]
            missing = [one.name for one in kernels if not one.origins]
            assert len(missing) <= 0.05 * len(kernels), missing
            own = [one for one in kernels if not one.name.startswith("wrapped_copy")]
            lowest = [one.id for one in stages if one.name == "xla-llvm"]
            below = [f"{one.stage}/xla-llvm" for one in own if f"{one.stage}/xla-llvm" in lowest]
            reached = [stage for stage in below if found.origins(found.elements(stage)[0])]
            assert len(reached) >= 0.95 * len(below) > 0, set(below) - set(reached)


@pytest.mark.parametrize("name", list(TRAINING_SCRIPTS))
def test_training_of_models(ran_openxla: RunOpenXla, name: str, tmp_path: Path) -> None:
    """Gradients agree (the script checks them), and operations keep the lines of the model on both sides."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_openxla(tmp_path, TRAINING_SCRIPTS[name])
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree"), ran.report.outcome
    assert "goes on with its own program" not in ran.text("0/0/export-signature")
    check_lines_of_training(ran)


TRAINING_MODES = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x)))
        return h.mean((2, 3))


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9, bias=False)
        self.head.weight = self.embedding.weight
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, ids):
        h = self.embedding(ids)
        return self.head(torch.tanh(h))


def noisy(x):
    y = torch.nn.functional.dropout(x, 0.5)
    return y * x


def trained(make, x, compiled):
    torch.manual_seed(0)
    net = make()
    run = torch.compile(net) if compiled else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        optimizer.step()
    is_of_xla = "Xla" in type(run(x).grad_fn).__name__
    return is_of_xla, [*net.state_dict().values(), *(one.grad for one in net.parameters() if one.grad is not None)]


for make, x in ((Net, torch.randn(2, 3, 8, 8)), (Tied, torch.randint(0, 9, (2, 5)))):
    (is_of_xla, got), (_, expected) = trained(make, x, True), trained(make, x, False)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)
    print(make.__name__, is_of_xla)
x = torch.ones(8, requires_grad=True)
torch.manual_seed(1)
torch.compile(noisy)(x).sum().backward()
got, x.grad = x.grad, None
torch.manual_seed(1)
noisy(x).sum().backward()
print(torch.equal(got, x.grad))
"""


def test_training_with_running_statistics_tied_weights_and_dropout(ran_openxla: RunOpenXla, tmp_path: Path) -> None:
    """What cannot run in place has its stages on both sides, and the script's own program and numbers."""
    ran = ran_openxla(tmp_path, TRAINING_MODES)
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout == "Net False\nTied True\nTrue\n"
    assert "it changes buffers or inputs" in ran.text("0/0/export-signature")
    assert "it draws random numbers" in ran.text("2/0/export-signature")
    for compile in ran.report.compiles:
        ids = {stage.id for stage in compile.stages}
        assert {f"{compile.id}/hlo-optimized{side}" for side in ("", "-backward")} <= ids
        kernels = [one for one in ran.report.kernels if one.stage.startswith(f"{compile.id}/kernel-backward/")]
        assert any(one.origins for one in kernels)
    kernels = [one for one in ran.report.kernels if one.compile == "1/0"]
    assert all(one.origins for one in kernels), "zeros of a gradient that nobody wants would have no line"


# --- the editor and the debugger --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def net(ran_openxla: RunOpenXla, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran_openxla(tmp_path_factory.mktemp("net"), NET)


async def test_a_client_shows_the_stages_and_links_them_with_the_source(net: Ran) -> None:
    optimized = "0/0/hlo-optimized"
    async with shown(net) as client:
        assert client.tree.item.pipeline == "openxla"
        down = ["0/0/exported-program", "0/0/decomposed-program", "0/0/jaxpr", "0/0/stablehlo"]
        assert client.strip[:4] == down
        assert any("fusion" in name for name in await client.nodes(optimized))
        line = row_of(net, optimized, "torch.ops.hlo.maximum(")
        above = client.uris["0/0/stablehlo"]
        places = await client.linked(client.uris[optimized], line, [client.source, above])
        assert places[client.source] == [RELU - 1]
        assert places[above]
        kernels = [one.uri for one in client.tree.compiles[0].kernels if one.language == "llvm"]
        assert await client.linked(client.source, RELU - 1, kernels), "the line leads down to a kernel"


def test_the_debugger_steps_from_the_line_down_to_hlo(net: Ran) -> None:
    seen = steps_down(net, RELU, 8, lambda name: "kernel" in name)
    order = ["exported-program", "decomposed-program", "jaxpr", "stablehlo", "hlo", "hlo-optimized"]
    assert [name.partition(".")[0] for name in seen][: len(order)] == order


SAME = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (torch.nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        h = torch.nn.functional.gelu(self.a(x))  # @line
        h = torch.nn.functional.gelu(self.b(h))  # @line
        return torch.nn.functional.gelu(self.c(h))  # @line


fast = torch.compile(Net().eval())
with torch.no_grad():
    fast(torch.ones(4, 16))
"""


def test_a_kernel_that_fusions_share_has_the_lines_of_all(tmp_path: Path, ran_openxla: RunOpenXla) -> None:
    """XLA makes one kernel of fusions that are the same to it."""
    ran = ran_openxla(tmp_path, SAME)
    generated = [one for one in ran.report.kernels if one.is_generated]
    lines = {origin.line for one in generated for origin in one.origins}
    assert len(generated) < 3 and lines == lines_marked(SAME, "# @line")


def test_it_is_compared_with_inductor(
    python_with: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its device, which torchax registers, has no generators that a program's random numbers could be kept by."""
    is_compared_with_inductor("openxla", python_with, tmp_path, monkeypatch)


def test_a_step_into_a_line_goes_to_what_computes_it(tmp_path: Path, python_with: PythonWith) -> None:
    check_steps(tmp_path, "openxla", python_with("openxla"), r"addmm|dot")
