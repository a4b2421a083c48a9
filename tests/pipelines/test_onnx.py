"""Real runs through the pipeline ``onnx``, in an environment with ONNX Runtime: stages, lines, numbers, findings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from five_models import SCRIPTS, lines_kept
from irscope.protocol import CompileOutcome
from irscope.provenance import Provenance
from irscope.store.store import Store
from lsp_editor import SERVER, Editor
from support import REPOSITORY, Ran, lines_marked, run_captured, run_plain, write

pytestmark = pytest.mark.worker
PythonWith = Callable[[str], str]

STAGES = (
    "exported-program", "export-signature", "export-constraints", "decomposed-program", "onnx-model", "onnx-optimized",
    "onnx-runtime-disabled", "onnx-runtime-basic", "onnx-runtime-extended", "onnx-runtime-all", "onnx-providers",
    "onnx-times",
)  # fmt: skip
GRAPHS = tuple(f"0/0/{name}" for name in STAGES if name == "decomposed-program" or "onnx-" in name)[:-2]
LAST = GRAPHS[-1]


def ran_onnx(folder: Path, source: str, python: str) -> Ran:
    return run_captured(write(folder, source), folder / "runs.db", lane="deep", pipeline="onnx", python=python)


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_models(name: str, tmp_path: Path, python_with: PythonWith) -> None:
    """The runtime's numbers agree with eager (the script checks them), and each operation has a line of the model."""
    ran = ran_onnx(tmp_path, SCRIPTS[name], python_with("onnx"))
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree")
    assert tuple(stage.name for stage in ran.compile("0/0").stages) == STAGES
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
    return ran_onnx(tmp_path_factory.mktemp("onnx"), CONV, python_with("onnx"))


def test_what_is_fused_keeps_the_lines_of_all_its_operations(conv: Ran) -> None:
    """The optimizer folds the normalization into the convolution; the runtime fuses this with what comes after it, and
    computes both in a blocked layout that it has other names for."""
    wanted = {mark: {number} for mark in ("conv", "norm", "relu", "mean") for number in lines_marked(CONV, f"# {mark}")}
    with Store(conv.store) as store:
        found = Provenance(store, conv.report)
        lines = {
            item.target: {origin.line for origin in found.origins(item.element)}
            for item in found.items(LAST).items
            if item.op == "call"
        }
    fused = wanted["conv"] | wanted["norm"] | wanted["relu"]
    assert lines["torch.ops.com_microsoft_nchwc.Conv"] == fused
    assert lines["torch.ops.onnx.ReduceMean"] == wanted["mean"]
    assert lines["torch.ops.com_microsoft_nchwc.ReorderOutput"] <= fused


def test_the_runtime_runs_in_place_of_the_program(conv: Ran) -> None:
    assert conv.stdout == "NoneType tensor(True)\n"
    providers = conv.text("0/0/onnx-providers")
    assert providers.startswith("Session: CPUExecutionProvider\n\nPartition 1: CPUExecutionProvider")
    assert re.search(r"^ +\d+ µs +\d+ %  Conv  ", conv.text("0/0/onnx-times"), re.MULTILINE)


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
    ran = ran_onnx(tmp_path, TRAINING, python_with("onnx"))
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    *losses, noisy, own, first, second = ran.stdout.splitlines()
    assert losses == run_plain(tmp_path / "script.py").stdout.splitlines()[:3]
    assert noisy == own
    assert first == second == "True True True"
    assert ran.text("1/0/export-signature").endswith("it draws random numbers, and ONNX Runtime would draw others.\n")
    assert 'x: "f32[s' in ran.text("2/0/onnx-runtime-all")


UNSUPPORTED = """\
import torch


def program(x):
    return helper(x + 1) * 2


def helper(x):
    return torch.linalg.svd(x)[1]  # no-onnx-function


def wide(x):
    x = x * 2
    return torch.nn.functional.conv2d(x, x)  # no-runtime-kernel


x = torch.ones(1, 4, 4, 4, dtype=torch.float64)
print(torch.compile(program)(x).shape, torch.compile(wide)(x).shape)
"""


def test_operators_that_are_not_supported_are_found_at_their_lines(tmp_path: Path, python_with: PythonWith) -> None:
    ran = ran_onnx(tmp_path, UNSUPPORTED, python_with("onnx"))
    assert ran.report.capture_gaps == ()
    assert ran.stdout == "torch.Size([1, 4, 4]) torch.Size([1, 1, 1, 1])\n"
    found = {one.code: (one.kind, {one.range.start.line}) for one in ran.report.findings}
    assert found == {
        code: ("unsupported-operator", lines_marked(UNSUPPORTED, f"# {code}"))
        for code in ("no-onnx-function", "no-runtime-kernel")
    }
    assert "aten._linalg_svd.default" in ran.report.findings[0].message
    assert [ran.compile(id).outcome for id in ("0/0", "1/0")] == [CompileOutcome.ERROR] * 2


def test_the_example_of_the_page_has_the_finding(tmp_path: Path, python_with: PythonWith) -> None:
    page = (REPOSITORY / "docs" / "findings" / "unsupported-operator.md").read_text("utf-8")
    source, remedy = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ran = ran_onnx(tmp_path, source, python_with("onnx"))
    [finding] = ran.report.findings
    assert {finding.range.start.line} == lines_marked(source, f"# ← {finding.code}")
    start = finding.range.start
    assert f"example.py:{start.line}:{start.column + 1}  {finding.kind} {finding.code}\n  {finding.message}\n" in page
    assert ran_onnx(tmp_path / "remedy", remedy, python_with("onnx")).report.findings == ()


async def test_a_client_shows_the_runtimes_graph(conv: Ran, tmp_path: Path) -> None:
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    script = Path(conv.report.script)
    editor = await Editor.start(SERVER, options={"storePath": conv.store}, settings=settings, folder=script.parent)
    try:
        editor.open(script)
        run = conv.report.run
        tree = await editor.request("irscope/report", run=run)
        assert tree.item.pipeline == "onnx"
        [compile] = tree.compiles
        uris = {stage.stage: stage.uri for stage in compile.stages}
        strip = await editor.request("irscope/pipeline", run=run)
        assert [stage.stage for stage in strip.stages] == ["0/0/exported-program", *GRAPHS]
        graph = await editor.request("irscope/graph", run=run, stage=LAST)
        assert "mean" in list(graph.nodes.name)
        rows = conv.text(LAST).split("\n")
        at = next(number for number, row in enumerate(rows) if "ReduceMean" in row)
        among = [script.as_uri(), uris["0/0/onnx-model"]]
        found = await editor.request("irscope/counterparts", uri=uris[LAST], line=at, run=run, among=among)
        lines = {one.uri: list(one.lines) for one in found.places}
        [mean] = lines_marked(CONV, "# mean")
        assert lines[script.as_uri()] == [mean - 1]
        assert lines[uris["0/0/onnx-model"]]
    finally:
        await editor.close()
