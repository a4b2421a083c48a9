"""The pipeline ``aotinductor``: from an exported program down to C++ kernels, with the user's lines, and its package."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from five_models import SCRIPTS, lines_kept, reached
from irscope.lowering import make
from irscope.protocol import CompileOutcome
from irscope.provenance import Provenance
from irscope.provenance.linked import LinkedLines
from irscope.store.store import Store
from support import Ran, run_forked, run_plain_forked, write

SCRIPT = """\
import torch
import torch._inductor.config

settings = torch._inductor.config.aot_inductor  # so that g++ takes a third of the time
settings.compile_wrapper_opt_level, settings.precompile_headers = "O0", False


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)

    def forward(self, x):  # @forward
        h = torch.relu(self.first(x))  # @relu
        return halved(h).softmax(-1)


def halved(h):
    return h / 2  # @div


torch.manual_seed(0)
net = Net().eval()
fast = torch.compile(net)
x = torch.randn(4, 8)
torch._dynamo.mark_dynamic(x, 0)
with torch.no_grad():
    print(all(torch.allclose(fast(some), net(some)) for some in (x, x[:3], x[:1])))
print(fast(x).requires_grad)
"""
WRAPPER = "0/0/cpp-wrapper"


def ran_aotinductor(folder: Path, source: str, lane: str = "deep") -> Ran:
    return run_forked(write(folder, source), folder / "runs.db", lane=lane, pipeline="aotinductor")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A compile takes half a minute, so most tests look at the same one."""
    return ran_aotinductor(tmp_path_factory.mktemp("aotinductor"), SCRIPT)


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.split("\n"), 1) if f"# @{mark}" in line)


def test_the_stages_are_there_in_their_order_and_the_numbers_agree(ran: Ran) -> None:
    assert ran.report.capture_gaps == ()
    [compile] = ran.report.compiles
    assert compile.outcome is CompileOutcome.COMPILED
    assert list(dict.fromkeys(stage.name for stage in compile.stages if not stage.passed)) == [
        "exported-program",
        "export-signature",
        "export-constraints",
        "inference-graph",
        "post-grad-graph",
        "ir-pre-fusion",
        "fusion",
        "ir-post-fusion",
        "memory-plan",
        "cpp-wrapper",
        "package-contents",
        "kernel",
    ]
    assert ran.report.findings == ()
    assert (ran.stdout, ran.stderr) == ("True\nTrue\n", "")


def test_passes_that_changed_a_graph_are_its_versions(ran: Ran) -> None:
    [compile] = ran.report.compiles
    assert {("joint-graph", "pass_pattern_1"), ("post-grad-graph", "reorder_for_locality")} <= {
        (stage.name, stage.passed) for stage in compile.stages
    }


def test_the_package_is_in_place_of_the_program(ran: Ran) -> None:
    assert "The script goes on" not in ran.text("0/0/export-signature")
    assert re.search(r"^  s\d+: 2 or more \(x dimension 0\)$", ran.text("0/0/export-constraints"), re.MULTILINE)


def test_the_files_of_the_package_are_listed_without_what_the_capture_adds(ran: Ran) -> None:
    text = ran.text("0/0/package-contents")
    assert re.match(r"[\d,]+ bytes in \d+ files\n", text)
    assert re.search(r"^ *[\d,]+  data/aotinductor/model/\w+\.wrapper\.so$", text, re.MULTILINE)
    assert "kernel_information" not in text


def test_a_line_of_a_helper_leads_to_its_kernel_and_the_kernel_to_its_lines(ran: Ran) -> None:
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        below = thread.below(thread.source(ran.report.script, line_of("div")))
        names = {stage.rpartition("/")[2]: [one.name for one in found] for stage, found in below.items()}
        assert names["exported-program"] == ["div"]
        [call] = names["cpp-wrapper"]
        assert call.startswith("cpp_fused_")
        [element] = [one for one in thread.elements(WRAPPER) if one.name == call]
        assert {line_of("relu"), line_of("div")} <= {origin.line for origin in thread.origins(element)}
    [kernel] = ran.kernels("cpp")
    assert line_of("relu") in {origin.line for origin in kernel.origins}
    [library] = ran.kernels("extern")
    assert (library.name, [origin.line for origin in library.origins]) == (
        "aoti_torch_cpu_addmm_out",
        [line_of("relu")],
    )


def test_a_statement_of_a_kernel_has_its_own_line(ran: Ran) -> None:
    [kernel] = ran.kernels("cpp")
    text = ran.text(kernel.stage).split("\n")
    with Store(ran.store) as store:
        keys = LinkedLines(store, ran.report).keys(kernel.stage)
    found = [(row, {origin.line for origin in keys.get(number, ())}) for number, row in enumerate(text, 1)]
    [relu, *_] = [lines for row, lines in found if "clamp_min(" in row or "max(" in row]
    [exp] = [lines for row, lines in found if ".exp()" in row]
    assert (relu, line_of("relu") in exp) == ({line_of("relu")}, False)


@pytest.mark.nightly  # a second package; kernels of other pipelines have theirs
def test_a_kernel_has_assembly(ran: Ran) -> None:
    [kernel] = ran.kernels("cpp")
    with Store(ran.store) as store:
        make(store, ran.report, f"{kernel.stage}/assembly", sys.executable)
        text = store.stage_text(ran.report.run, f"{kernel.stage}/assembly")
        assert store.stage_data(ran.report.run, f"{kernel.stage}/assembly")["lines"]
    assert text.startswith(f"{kernel.name}:")


def test_the_fast_lane_only_exports(tmp_path: Path) -> None:
    ran = ran_aotinductor(tmp_path, SCRIPT, lane="fast")
    [compile] = ran.report.compiles
    names = [stage.name for stage in compile.stages]
    assert names == ["exported-program", "export-signature", "export-constraints"]
    assert ran.stdout == "True\nTrue\n"


RETURNS_A_WEIGHT = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(2, 3))

    def forward(self, x):
        return x.view(-1), self.weight.t()


net = Net()
with torch.no_grad():
    _, weight = torch.compile(net)(torch.ones(2, 2))
    weight += 1
print(net.weight.sum())
"""


def test_a_program_that_returns_a_weight_goes_on_as_it_was(tmp_path: Path) -> None:
    ran = ran_aotinductor(tmp_path, RETURNS_A_WEIGHT, lane="fast")
    assert ran.report.capture_gaps == ()
    assert ran.text("0/0/export-signature").rstrip().split("\n")[-1] == (
        "The script goes on with its own program: it returns weight, of which a package has a copy."
    )
    assert ran.stdout == run_plain_forked(tmp_path / "script.py").stdout


ELSEWHERE = """\
import torch

fast = torch.compile(torch.nn.ReLU())
print(fast(torch.ones(2, device="meta")).shape)
"""


def test_a_package_for_another_device_is_not_loaded(tmp_path: Path) -> None:
    """As on a GPU, where to load one has killed the process."""
    ran = ran_aotinductor(tmp_path, ELSEWHERE, lane="fast")
    assert ran.report.capture_gaps == ()
    assert ran.text("0/0/export-signature").rstrip().split("\n")[-1] == (
        "The script goes on with its own program: it uses meta, and irscope loads packages for the CPU only."
    )
    assert ran.stdout == "torch.Size([2])\n"


def test_a_package_that_cannot_be_compiled_is_a_finding(tmp_path: Path) -> None:
    no_compiler = "torch._inductor.config.cpp.cxx = ('no-such-compiler',)\n"
    script = write(tmp_path, SCRIPT.replace("torch.manual_seed(0)\n", no_compiler))
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    ran = run_forked(script, tmp_path / "runs.db", lane="deep", pipeline="aotinductor", env=env)
    assert ran.report.capture_gaps == ()
    assert ran.compile("0/0").outcome is CompileOutcome.ERROR
    [finding] = ran.findings("compile-error")
    assert (finding.code, finding.range.start.line) == ("no-cpp-compiler", line_of("forward"))
    assert "C++ compiler" in finding.hints[0]
    assert ran.stdout == "True\nTrue\n"


REFUSED = """\
import torch


def clipped(x):
    if x.sum() > 0:  # @export-error
        x = x * 2
    return x


print(torch.compile(clipped)(torch.ones(3)))
"""


def test_a_program_that_cannot_be_exported_has_the_findings_of_export(tmp_path: Path) -> None:
    ran = ran_aotinductor(tmp_path, REFUSED)
    assert ran.report.capture_gaps == ()
    assert ran.compile("0/0").outcome is CompileOutcome.ERROR
    [finding] = ran.findings("export-error")
    assert "# @export-error" in REFUSED.split("\n")[finding.range.start.line - 1]
    assert ran.stdout == run_plain_forked(tmp_path / "script.py").stdout


def test_a_library_call_reads_its_weights(ran: Ran) -> None:
    with Store(ran.store) as store:
        calls = store.stage_data(ran.report.run, WRAPPER)["calls"]
    [linear] = [call for call in calls if "addmm" in call["kernel"]]
    assert linear["reads"] == 4 * (4 * 8 + 8 * 16 + 16), "the input, the weight and the bias"


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(SCRIPTS))
def test_models(name: str, tmp_path: Path) -> None:
    """Numbers agree (the script checks them), and the user's lines reach the calls of kernels."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_aotinductor(tmp_path, SCRIPTS[name])
    assert (ran.report.capture_gaps, ran.findings("export-error")) == ((), [])
    assert ran.stdout.startswith("agree")
    for stage in ("0/0/exported-program", "0/0/inference-graph", "0/0/post-grad-graph"):
        kept, count = lines_kept(ran, stage)
        assert count > 0
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
    kept, count = operations_in_kernels(ran)
    assert count > 0
    assert kept >= 0.95 * count, f"{kept} of {count} operations"
    assert reached(ran).share >= 0.95


def operations_in_kernels(ran: Ran) -> tuple[int, int]:
    """How many operations of the last graph that compute something lead to a call in the wrapper that has their line."""
    with Store(ran.store) as store:
        thread = Provenance(store, ran.report)
        items = thread.items("0/0/post-grad-graph").items
        computing = [item.element for item in items if item.op == "call" and not is_view(item.target)]
        kept = 0
        for one in computing:
            called = {line for call in thread.below(one).get(WRAPPER, ()) for line in thread.origins(call)}
            kept += not called.isdisjoint(thread.origins(one))
    return kept, len(computing)


def is_view(target: str) -> bool:
    return bool(
        re.search(r"\.(view|reshape|permute|expand|unsqueeze|squeeze|select|slice|getitem|alias|clone|full)\b", target)
    )
