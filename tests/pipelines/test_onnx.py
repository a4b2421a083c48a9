"""Real runs through the pipeline ``onnx``, in an environment with ONNX Runtime: stages, lines, numbers, findings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from five_models import SCRIPTS
from irscope.protocol import CompileOutcome
from runtimes import CONV, TRAINING, PythonWith, check_client, check_fusion, check_model, check_steps, check_training
from support import REPOSITORY, Ran, lines_marked, run_captured, write

pytestmark = pytest.mark.worker

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
    check_model(ran, STAGES, GRAPHS)


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory, python_with: PythonWith) -> Ran:
    return ran_onnx(tmp_path_factory.mktemp("onnx"), CONV, python_with("onnx"))


def test_what_is_fused_keeps_the_lines_of_all_its_operations(conv: Ran) -> None:
    """The optimizer folds the normalization into the convolution; the runtime fuses this with what comes after it, and
    computes both in a blocked layout that it has other names for."""
    own = "torch.ops.com_microsoft_nchwc"
    check_fusion(conv, LAST, f"{own}.Conv", "torch.ops.onnx.ReduceMean", f"{own}.ReorderOutput")


def test_the_runtime_runs_in_place_of_the_program(conv: Ran) -> None:
    assert conv.stdout == "NoneType tensor(True)\n"
    providers = conv.text("0/0/onnx-providers")
    assert providers.startswith("Session: CPUExecutionProvider\n\nPartition 1: CPUExecutionProvider")
    assert re.search(r"^ +\d+ µs +\d+ %  Conv  ", conv.text("0/0/onnx-times"), re.MULTILINE)


def test_training_and_random_numbers_are_those_of_the_script(tmp_path: Path, python_with: PythonWith) -> None:
    ran = ran_onnx(tmp_path, TRAINING, python_with("onnx"))
    check_training(ran, "ONNX Runtime", ("2/0/onnx-runtime-all", 'x: "f32[s'))


def test_a_model_that_does_not_fit_into_one_file(tmp_path: Path, python_with: PythonWith) -> None:
    """PyTorch writes it with its weights beside it; here from the first byte on, and not from 1.5 GB."""
    large = "import torch.onnx._internal.exporter._onnx_program as program\nprogram._LARGE_MODEL_THRESHOLD = 1\n"
    ran = ran_onnx(tmp_path, large + CONV, python_with("onnx"))
    assert ran.stdout == "NoneType tensor(True)\n" and ran.report.capture_gaps == ()
    assert "com_microsoft_nchwc.Conv" in ran.text(LAST)


UNSUPPORTED = """\
import torch


def program(x):
    return helper(x + 1) * 2


def helper(x):
    return torch.linalg.svd(x)[1]  # no-onnx-function


def wide(x):
    x = x * 2
    return torch.nn.functional.conv2d(x, x)  # no-runtime-kernel


@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def custom(x):
    y = x + 1
    return twice(y)  # a custom operator


def narrow(x):
    return (x + 1).cos()  # a type that ONNX does not have


x = torch.ones(1, 4, 4, 4, dtype=torch.float64)
print(torch.compile(program)(x).shape, torch.compile(wide)(x).shape)
print(torch.equal(torch.compile(custom)(x), custom(x)), torch.compile(narrow)(x.bfloat16()).dtype)
"""


def test_operators_that_are_not_supported_are_found_at_their_lines(tmp_path: Path, python_with: PythonWith) -> None:
    ran = ran_onnx(tmp_path, UNSUPPORTED, python_with("onnx"))
    assert ran.report.capture_gaps == ()
    assert ran.stdout == "torch.Size([1, 4, 4]) torch.Size([1, 1, 1, 1])\nTrue torch.bfloat16\n"
    wanted = {
        "no-onnx-function": ("no-onnx-function", "aten._linalg_svd.default"),
        "no-runtime-kernel": ("no-runtime-kernel", "Conv"),
        "a custom operator": ("no-onnx-function", "mine.twice.default"),
        "a type that ONNX does not have": ("no-runtime-kernel", "Cos"),
    }
    found = ran.findings("unsupported-operator")
    assert len(found) == len(ran.report.findings) == len(wanted)
    for mark, (code, operator) in wanted.items():
        [line] = lines_marked(UNSUPPORTED, f"# {mark}")
        [one] = [one for one in found if one.range.start.line == line]
        assert one.code == code
        assert f" {operator}" in one.message
    assert [ran.compile(f"{number}/0").outcome for number in range(4)] == [CompileOutcome.ERROR] * 4


def test_the_example_of_the_page_has_the_finding(tmp_path: Path, python_with: PythonWith) -> None:
    page = (REPOSITORY / "docs" / "findings" / "unsupported-operator.md").read_text("utf-8")
    source, remedy = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ran = ran_onnx(tmp_path, source, python_with("onnx"))
    [finding] = ran.report.findings
    assert {finding.range.start.line} == lines_marked(source, f"# ← {finding.code}")
    start = finding.range.start
    assert f"example.py:{start.line}:{start.column + 1}  {finding.kind} {finding.code}\n  {finding.message}\n" in page
    assert ran_onnx(tmp_path / "remedy", remedy, python_with("onnx")).report.findings == ()


async def test_a_client_shows_the_runtimes_graph(conv: Ran) -> None:
    await check_client(conv, GRAPHS, "mean", "ReduceMean", "0/0/onnx-model")


def test_a_step_into_a_line_goes_to_what_computes_it(tmp_path: Path, python_with: PythonWith) -> None:
    check_steps(tmp_path, "onnx", python_with("onnx"), r"Gemm|MatMul|addmm|linear")
