"""Real runs through the pipeline ``openvino``, in an environment with OpenVINO: stages, lines, numbers, findings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from five_models import SCRIPTS, lines_kept
from irscope.protocol import CompileOutcome
from irscope.provenance import Provenance
from irscope.store.store import Store
from lsp_editor import SERVER, Editor
from support import Ran, lines_marked, run_captured, run_plain, write

pytestmark = pytest.mark.worker
PythonWith = Callable[[str], str]

STAGES = (
    "exported-program", "export-signature", "export-constraints", "decomposed-program", "openvino-model",
    "openvino-transformed", "openvino-runtime",
)  # fmt: skip
GRAPHS = tuple(f"0/0/{name}" for name in STAGES if not name.startswith("export"))
LAST = GRAPHS[-1]


def ran_openvino(folder: Path, source: str, python: str) -> Ran:
    return run_captured(write(folder, source), folder / "runs.db", lane="deep", pipeline="openvino", python=python)


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_models(name: str, tmp_path: Path, python_with: PythonWith) -> None:
    """The runtime's numbers agree with eager (the script checks them), and each operation has a line of the model."""
    ran = ran_openvino(tmp_path, SCRIPTS[name], python_with("openvino"))
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree")
    assert tuple(stage.name for stage in ran.compile("0/0").stages if not stage.passed) == STAGES
    assert "The script goes on" not in ran.text("0/0/export-signature")
    for stage in GRAPHS:
        kept, count = lines_kept(ran, stage)
        assert count > 0, stage
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"


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


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory, python_with: PythonWith) -> Ran:
    return ran_openvino(tmp_path_factory.mktemp("openvino"), CONV, python_with("openvino"))


def test_what_is_fused_keeps_the_lines_of_all_its_operations(conv: Ran) -> None:
    """The converter folds the normalization into the convolution, and the plugin fuses what comes after it."""
    wanted = {mark: {number} for mark in ("conv", "norm", "relu", "mean") for number in lines_marked(CONV, f"# {mark}")}
    with Store(conv.store) as store:
        found = Provenance(store, conv.report)
        lines = {
            item.target: {origin.line for origin in found.origins(item.element)}
            for item in found.items(LAST).items
            if item.op == "call"
        }
    fused = wanted["conv"] | wanted["norm"] | wanted["relu"]
    assert lines["torch.ops.openvino.Convolution"] == fused
    assert lines["torch.ops.openvino.Reduce"] == wanted["mean"]
    assert lines["torch.ops.openvino.Reorder"] <= fused


def test_the_compiled_model_runs_in_place_of_the_program(conv: Ran) -> None:
    assert conv.stdout == "NoneType tensor(True)\n"
    convolution = next(row for row in conv.text(LAST).split("\n") if ".Convolution(" in row)
    assert "primitiveType='" in convolution
    assert "runtimePrecision='f32'" in convolution


def test_passes_that_change_the_model_are_versions(tmp_path: Path, python_with: PythonWith) -> None:
    ran = ran_openvino(tmp_path, SCRIPTS["mlp"], python_with("openvino"))
    versions = [stage for stage in ran.compile("0/0").stages if stage.passed]
    assert {"ConvertMatMulToFC", "FullyConnectedBiasFusion"} <= {one.passed for one in versions}
    texts = [ran.text("0/0/openvino-model"), *(ran.text(one.id) for one in versions)]
    assert all(one != other for one, other in itertools.pairwise(texts))
    assert texts[-1] == ran.text("0/0/openvino-transformed")


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


def test_training_and_random_numbers_are_those_of_the_script(tmp_path: Path, python_with: PythonWith) -> None:
    ran = ran_openvino(tmp_path, TRAINING, python_with("openvino"))
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    *losses, noisy, own, first, second = ran.stdout.splitlines()
    assert losses == run_plain(tmp_path / "script.py").stdout.splitlines()[:3]
    assert noisy == own
    assert first == second == "True True True"
    assert ran.text("1/0/export-signature").endswith("it draws random numbers, and OpenVINO would draw others.\n")
    assert 'x: "f32[?, 4]"' in ran.text("2/0/openvino-runtime")


UNSUPPORTED = """\
import torch


def program(x):
    return helper(x + 1) * 2


def helper(x):
    return torch.linalg.svd(x)[1]  # no-openvino-rule


def half(x):
    return x.bfloat16() * 2


def wide(x):
    return x.double() / 3


def index(x):
    return x.argmax(-1)


x = torch.ones(4, 4)
for each in (program, half, wide, index):
    print(torch.equal(torch.compile(each)(x), each(x)))
"""


def test_what_openvino_cannot_compute_runs_as_python(tmp_path: Path, python_with: PythonWith) -> None:
    ran = ran_openvino(tmp_path, UNSUPPORTED, python_with("openvino"))
    assert ran.report.capture_gaps == ()
    assert ran.stdout == "True\n" * 4
    [finding] = ran.report.findings
    assert (finding.kind, finding.code) == ("unsupported-operator", "no-openvino-rule")
    assert {finding.range.start.line} == lines_marked(UNSUPPORTED, "# no-openvino-rule")
    assert "aten._linalg_svd.default" in finding.message
    assert ran.compile("0/0").outcome is CompileOutcome.ERROR
    for number, reason in enumerate(("a half precision", "float64", "64-bit integers"), 1):
        assert reason in ran.text(f"{number}/0/export-signature").splitlines()[-1]


BRANCH = """\
import torch


def program(x):
    return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


print(torch.compile(program)(torch.ones(2)), torch.compile(program)(-torch.ones(2)))
"""


def test_a_branch_is_a_gap(tmp_path: Path, python_with: PythonWith) -> None:
    ran = ran_openvino(tmp_path, BRANCH, python_with("openvino"))
    assert ran.stdout == "tensor([2., 2.]) tensor([-2., -2.])\n"
    assert {gap.why for gap in ran.report.capture_gaps} == {"only operations outside of branches and loops are shown"}


async def test_a_client_shows_the_runtimes_graph(conv: Ran, tmp_path: Path) -> None:
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    script = Path(conv.report.script)
    editor = await Editor.start(SERVER, options={"storePath": conv.store}, settings=settings, folder=script.parent)
    try:
        editor.open(script)
        run = conv.report.run
        tree = await editor.request("irscope/report", run=run)
        assert tree.item.pipeline == "openvino"
        [compile] = tree.compiles
        uris = {stage.stage: stage.uri for stage in compile.stages}
        strip = await editor.request("irscope/pipeline", run=run)
        assert [stage.stage for stage in strip.stages] == ["0/0/exported-program", *GRAPHS]
        graph = await editor.request("irscope/graph", run=run, stage=LAST)
        assert "mean_ReduceMean" in list(graph.nodes.name)
        rows = conv.text(LAST).split("\n")
        at = next(number for number, row in enumerate(rows) if "openvino.Reduce(" in row)
        among = [script.as_uri(), uris["0/0/openvino-model"]]
        found = await editor.request("irscope/counterparts", uri=uris[LAST], line=at, run=run, among=among)
        lines = {one.uri: list(one.lines) for one in found.places}
        [mean] = lines_marked(CONV, "# mean")
        assert lines[script.as_uri()] == [mean - 1]
        assert lines[uris["0/0/openvino-model"]]
    finally:
        await editor.close()
