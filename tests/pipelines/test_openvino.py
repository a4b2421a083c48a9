"""Real runs through the pipeline ``openvino``, in an environment with OpenVINO: stages, lines, numbers, findings."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from five_models import SCRIPTS
from irscope.protocol import CompileOutcome
from runtimes import CONV, TRAINING, PythonWith, check_client, check_fusion, check_model, check_steps, check_training
from support import Ran, lines_marked, run_captured, write

pytestmark = pytest.mark.worker

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
    check_model(ran, STAGES, GRAPHS)


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory, python_with: PythonWith) -> Ran:
    return ran_openvino(tmp_path_factory.mktemp("openvino"), CONV, python_with("openvino"))


def test_what_is_fused_keeps_the_lines_of_all_its_operations(conv: Ran) -> None:
    """The converter folds the normalization into the convolution, and the plugin fuses what comes after it."""
    check_fusion(
        conv, LAST, "torch.ops.openvino.Convolution", "torch.ops.openvino.Reduce", "torch.ops.openvino.Reorder"
    )


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


def test_training_and_random_numbers_are_those_of_the_script(tmp_path: Path, python_with: PythonWith) -> None:
    ran = ran_openvino(tmp_path, TRAINING, python_with("openvino"))
    check_training(ran, "OpenVINO", ("2/0/openvino-runtime", 'x: "f32[?, 4]"'))


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


async def test_a_client_shows_the_runtimes_graph(conv: Ran) -> None:
    await check_client(conv, GRAPHS, "mean_ReduceMean", "openvino.Reduce(", "0/0/openvino-model")


def test_a_step_into_a_line_goes_to_what_computes_it(tmp_path: Path, python_with: PythonWith) -> None:
    check_steps(tmp_path, "openvino", python_with("openvino"), r"MatMul|FullyConnected|linear")
