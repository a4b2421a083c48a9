"""The pipeline ``torchao`` with the real torchao: each step with the user's lines, and what is not quantized."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from five_models import SCRIPTS, lines_kept, reached
from irscope.comparing.pipelines import Left, figures_of
from irscope.driver.availability import Status, availability_of
from irscope.pipelines.registry import pipelines
from irscope.provenance import Provenance
from irscope.store.store import Store
from support import Ran, lines_marked, run_captured, write

STEPS = ("pt2e-exported", "pt2e-observed", "pt2e-converted")
GRAPHS = (*STEPS, "dynamo-graph", "inference-graph", "post-grad-graph")
SCRIPT = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 16)
        self.b = torch.nn.Linear(16, 4)

    def forward(self, x):
        h = torch.relu(self.a(x))  # @first
        s = h @ h.transpose(-1, -2)  # @matmul
        return self.b(s @ h).softmax(-1)  # @second


torch.manual_seed(0)
net = Net().eval()
x = torch.randn(4, 8)
with torch.no_grad():
    fast = torch.compile(net)
    print(torch.equal(fast(x), net(x)), torch.equal(fast(x), net(x)))
"""
LINES = SCRIPT.split("\n")


@pytest.fixture(scope="module")
def python(python_with: Callable[[str], str]) -> str:
    return python_with("torchao")


def ran_torchao(folder: Path, source: str, python: str) -> Ran:
    return run_captured(write(folder, source), folder / "runs.db", "deep", pipeline="torchao", python=python)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, python: str) -> Ran:
    return ran_torchao(tmp_path_factory.mktemp("torchao"), SCRIPT, python)


def marked(mark: str) -> int:
    return 1 + next(number for number, text in enumerate(LINES) if text.endswith(f"@{mark}"))


def test_it_is_available(tmp_path: Path, python: str) -> None:
    [found] = availability_of([pipelines()["torchao"]], python, str(tmp_path / "trials.json"))
    assert (found.status, found.why) == (Status.AVAILABLE, "")


def test_the_script_goes_on_with_its_own_program(ran: Ran) -> None:
    assert (ran.stdout, ran.stderr, ran.report.capture_gaps) == ("True True\n", "", ())
    [compile] = ran.report.compiles
    assert (compile.qualified, compile.file, compile.line) == ("Net.forward", ran.report.script, 10)


def test_each_step_is_a_stage(ran: Ran) -> None:
    names = {stage.name for stage in ran.compile("0/0").stages}
    assert {*GRAPHS, "quantization", "output-code", "kernel"} <= names
    assert "observer" not in ran.text("0/0/pt2e-exported")
    assert "activation_post_process_0(x)" in ran.text("0/0/pt2e-observed")
    assert "torch.ops.quantized_decomposed.dequantize_per_channel" in ran.text("0/0/pt2e-converted")
    assert "Integer operators: 2\n  2 x onednn.qlinear_pointwise\n" in ran.text("0/0/integer-operators")


def test_the_numbers_are_close_to_the_scripts_own(ran: Ran) -> None:
    far, largest = re.findall(
        r"difference .*: ([\d.e-]+); its largest value is ([\d.e-]+)\.", ran.text("0/0/quantization")
    )[0]
    assert 0 < float(far) < 0.05 * float(largest)


def test_what_is_not_quantized_is_told_with_its_line_and_reason(ran: Ran) -> None:
    assert ran.text("0/0/quantization").startswith("Quantized: 2 of 7 operations\n  2 x aten.linear.default\n")
    found = {(one.range.start.line, one.code) for one in ran.findings("not-quantized")}
    assert found == {(marked("matmul"), "not-by-default"), (marked("second"), "not-by-default")}
    assert ran.findings("cache-miss") == []  # only since the pipeline freezes the graph


def test_a_line_leads_through_all_steps_to_its_integer_operator(ran: Ran) -> None:
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        below = {
            stage.removeprefix("0/0/"): {one.name for one in elements}
            for stage, elements in found.below(found.source(ran.report.script, marked("first"))).items()
        }
    assert set(GRAPHS) <= set(below)
    assert {"linear", "relu"} <= below["pt2e-exported"]
    assert {"quantize_per_tensor_default", "linear"} <= below["pt2e-converted"]
    assert any("onednn.qlinear_pointwise" in name for name in below["output-code"])
    assert not any("mm" in name for name in below["output-code"])


@pytest.mark.parametrize("name", SCRIPTS)
def test_models(name: str, tmp_path: Path, python: str) -> None:
    """The script checks its numbers; operations keep the lines of the model down to the lowest graph."""
    ran = ran_torchao(tmp_path, SCRIPTS[name], python)
    assert ran.report.capture_gaps == ()
    assert ran.stdout.startswith("agree")
    for stage in GRAPHS:
        kept, count = lines_kept(ran, f"0/0/{stage}")
        # Inductor puts these in, for no operation of the user's.
        count -= ran.text(f"0/0/{stage}").count(" = torch.ops.prims.inductor_force_stride_order")
        assert count > 0
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
    found = reached(ran)
    assert (found.lost, found.lineless, found.share) == ((), 0, 1), f"{found.taken} of {found.captured}"
    # A pass that fuses does not end what it fused: of operators with numbers no end is told but that it is computed once.
    assert not [one for one in gone(ran) if one.what.startswith(("linear", "conv", "batch_norm", "gelu", "relu"))]
    if name == "gpt2":  # its linear layers are addmm, of which the quantizer has no integer form
        assert any("`aten.addmm.default`" in one.message for one in ran.findings("not-quantized"))
    else:
        assert re.search(r"onednn\.q(linear|conv)", ran.text("0/0/integer-operators"))


def gone(ran: Ran) -> tuple[Left, ...]:
    with Store(ran.store) as store:
        return figures_of(store, ran.report, "torchao", "", {}).gone


CONV = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

    def forward(self, x):
        x = self.conv(x)  # @conv
        x = self.norm(x)  # @norm
        return torch.relu(x)  # @relu


fast = torch.compile(Net().eval())
with torch.no_grad():
    print(fast(torch.randn(2, 3, 8, 8)).shape)
"""


def test_what_is_fused_into_one_integer_operator_keeps_all_its_lines(tmp_path: Path, python: str) -> None:
    """The norm goes into the weights of the convolution, and the library's call computes the ``relu``, too."""
    ran = ran_torchao(tmp_path, CONV, python)
    assert ran.report.capture_gaps == ()
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        [call] = [one for one in thread.elements("0/0/output-code") if "onednn.qconv_pointwise" in one.name]
        lines = [one.line for one in thread.origins(call) if one.file == ran.report.script]
        whole = [one for one in thread.elements("0/0/inference-graph") if thread.item(one).op == "call"]
        leads = {one.name for one in whole if call in thread.below(one).get("0/0/output-code", ())}
    assert set(lines) == {
        *lines_marked(CONV, "# @conv"),
        *lines_marked(CONV, "# @norm"),
        *lines_marked(CONV, "# @relu"),
    }
    assert leads >= {"convolution", "relu", "dequantize_per_tensor", "dequantize_per_channel"}


# --- the script quantizes ---------------------------------------------------------------------------------------------

BY_SCRIPT = """\
import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_

net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Conv1d(2, 2, 1), torch.nn.Linear(64, 2)).eval()
fast = torch.compile(lambda x: net(x))  # @call
quantize_(net, Int8WeightOnlyConfig(), lambda module, name: name == "0")
x = torch.randn(2, 64)
with torch.no_grad():
    torch.testing.assert_close(fast(x), net(x))
print("agree")
"""


def test_what_quantize_has_changed_is_told(tmp_path: Path, python: str) -> None:
    ran = ran_torchao(tmp_path, BY_SCRIPT, python)
    assert (ran.report.capture_gaps, ran.stdout) == ((), "agree\n")
    rows = ran.text("0/0/quantization").split("\n")
    assert rows[0] == "Quantized by the script: 1 of 3 modules with weights"
    assert rows[1].startswith("  0 (Linear): Int8Tensor")
    assert rows[4].startswith("  1 (Conv1d): its weight is a plain tensor; quantize_ takes only nn.Linear")
    assert rows[5].startswith("  2 (Linear): its weight is a plain tensor; the filter_fn of quantize_")
    found = {one.code: one for one in ran.findings("not-quantized")}
    assert {code: (one.count, one.range.start.line) for code, one in found.items()} == {
        code: (1, *lines_marked(BY_SCRIPT, "# @call")) for code in ("left-out", "not-a-linear")
    }
    assert "conv1d" in found["not-a-linear"].message
    assert "linear" in found["left-out"].message
    assert {"post-grad-graph", "output-code"} <= {stage.name for stage in ran.compile("0/0").stages}
    assert not set(STEPS) & {stage.name for stage in ran.compile("0/0").stages}


PT2E_BY_SCRIPT = """\
import torch
import torch._inductor.config
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 16)

    def forward(self, x):
        h = torch.relu(self.a(x))  # @first
        return h @ h.transpose(-1, -2)  # @matmul


torch.manual_seed(0)
x = torch.randn(4, 8)
with torch.no_grad():
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    graph = prepare_pt2e(torch.export.export(Net().eval(), (x,)).module(), quantizer)
    graph(x)
    graph = convert_pt2e(graph)
    torch._inductor.config.freezing = True

    torch.testing.assert_close(torch.compile(graph)(x), graph(x))
print("agree")
"""


def test_the_scripts_own_steps_are_stages_with_its_lines(tmp_path: Path, python: str) -> None:
    ran = ran_torchao(tmp_path, PT2E_BY_SCRIPT, python)
    assert (ran.report.capture_gaps, ran.stdout) == ((), "agree\n")
    assert {*STEPS, "quantization"} <= {stage.name for stage in ran.compile("0/0").stages}
    assert "activation_post_process" not in ran.text("0/0/pt2e-exported")
    assert "activation_post_process_0(x)" in ran.text("0/0/pt2e-observed")
    assert "torch.ops.quantized_decomposed.dequantize_per_channel" in ran.text("0/0/pt2e-converted")
    assert "onednn.qlinear_pointwise" in ran.text("0/0/integer-operators")
    lines = {mark: lines_marked(PT2E_BY_SCRIPT, f"# @{mark}") for mark in ("first", "matmul")}
    [finding] = ran.findings("not-quantized")
    assert ({finding.range.start.line}, finding.code) == (lines["matmul"], "not-by-default")
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        [first] = lines["first"]
        below = found.below(found.source(ran.report.script, first))
    assert {f"0/0/{name}" for name in (*STEPS, "dynamo-graph", "post-grad-graph", "output-code")} <= set(below)


TRAINING = SCRIPT.replace(".eval()", ".train()")


def test_a_model_in_training_mode_is_a_gap(tmp_path: Path, python: str) -> None:
    ran = ran_torchao(tmp_path, TRAINING, python)
    [gap] = ran.report.capture_gaps
    assert gap.what == "the quantized Net"
    assert gap.why.endswith("needs model.eval()")
    assert ran.report.outcome.message.endswith(f"What could not be captured: the quantized Net ({gap.why}).")
    assert ran.stdout == "True True\n"
