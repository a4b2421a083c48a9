"""The pipeline ``export``: the exported program with the user's lines, what it asks of its inputs, and why there is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from five_models import SCRIPTS, lines_kept, reached
from irscope.protocol import CompileOutcome
from irscope.provenance import Provenance
from irscope.store.store import Store
from support import Ran, run_forked, run_plain_forked, write

SCRIPT = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)

    def forward(self, x):
        h = torch.relu(self.first(x))
        return halved(h).softmax(-1)


def halved(h):
    return h / 2


torch.manual_seed(0)
net = Net().eval()
fast = torch.compile(net)
x = torch.randn(4, 8)
torch._dynamo.mark_dynamic(x, 0)
with torch.no_grad():
    print(fast(x), fast(x[:3]).sum(), fast(x[:1]).sum())
print(fast(x).requires_grad)
"""


def ran_export(folder: Path, source: str) -> Ran:
    return run_forked(write(folder, source), folder / "runs.db", lane="deep", pipeline="export")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran_export(tmp_path_factory.mktemp("export"), SCRIPT)


def test_the_stages_are_there_and_the_script_prints_the_same(ran: Ran) -> None:
    assert ran.report.capture_gaps == ()
    [compile] = ran.report.compiles
    names = ["exported-program", "export-signature", "export-constraints", "decomposed-program"]
    assert [stage.name for stage in compile.stages] == names
    assert compile.graph_ops == ran.text("0/0/exported-program").count("torch.ops.")
    assert ran.report.findings == ()
    assert ran.stdout == run_plain_forked(Path(ran.report.script)).stdout


def test_the_signature_names_parameters_and_inputs(ran: Ran) -> None:
    rows = [line.split() for line in ran.text("0/0/export-signature").split("\n")]
    assert ["p_first_weight", "parameter", "float32[16,", "8]", "first.weight"] in rows
    assert any(row[:3] == ["x", "user", "input"] for row in rows)


def test_a_dynamic_dimension_has_its_range_and_its_places(ran: Ran) -> None:
    assert re.search(r"^  s\d+: 2 or more \(x dimension 0\)$", ran.text("0/0/export-constraints"), re.MULTILINE)


def test_a_line_of_a_helper_leads_to_its_nodes_in_both_programs(ran: Ran) -> None:
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        below = found.below(found.source(ran.report.script, 15))
    assert {stage: [one.name for one in elements] for stage, elements in below.items()} == {
        "0/0/exported-program": ["div"],
        "0/0/decomposed-program": ["div"],
    }


def test_parameters_come_from_those_of_the_program_before_decompositions(ran: Ran) -> None:
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        weight = next(one for one in found.elements("0/0/decomposed-program") if one.name == "p_first_weight")
        assert [one.name for one in found.parents(weight)] == ["p_first_weight"]


# --- what takes the place of the program ------------------------------------------------------------------------------

COUNTED = """\
import torch


class Noisy(torch.nn.Module):
    def forward(self, x):
        print("called with", x.shape[0])
        return x + 1


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x + self.count


for program in (Noisy(), Counting()):
    fast = torch.compile(program)
    print(fast(torch.ones(2)), fast(torch.ones(2)))

layer = torch.nn.Linear(2, 2)
fast = torch.compile(layer)
with torch.no_grad():
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    print(fast(torch.ones(2, 2)).sum(), fast(torch.ones(5, 2)).sum())
    layer.weight += 1
    print(fast(torch.ones(2, 2)).sum())
"""


def test_a_program_with_effects_goes_on_as_it_was(tmp_path: Path) -> None:
    ran = ran_export(tmp_path, COUNTED)
    assert ran.report.capture_gaps == ()
    assert ran.stdout == run_plain_forked(tmp_path / "script.py").stdout
    ends = [ran.text(f"{number}/0/export-signature").rstrip().split("\n")[-1] for number in (0, 1)]
    assert ends == [
        "The script goes on with its own program: it prints while it runs, and an exported program does not.",
        "The script goes on with its own program: it changes buffers or inputs.",
    ]


# --- why a program has no exported form -------------------------------------------------------------------------------

REFUSED = """\
import torch


def clipped(x):
    if x.sum() > 0:  # @export-error
        x = x * 2
    if x.max() > 5:  # @draft-export
        x = x + 1
    return x


fast = torch.compile(clipped)
print(fast(torch.ones(3)), fast(torch.full((3,), 4.0)))
"""


def test_the_error_and_what_draft_export_says_are_at_their_lines(tmp_path: Path) -> None:
    ran = ran_export(tmp_path, REFUSED)
    assert ran.report.capture_gaps == ()
    assert ran.compile("0/0").outcome is CompileOutcome.ERROR
    rows = REFUSED.split("\n")
    for kind, code in (("export-error", "data-dependent-guard"), ("draft-export", "data-dependent-error")):
        [finding] = ran.findings(kind)
        assert (finding.code, f"# @{kind}" in rows[finding.range.start.line - 1]) == (code, True)
    assert ran.findings("export-error")[0].hints
    assert "x.sum() > 0" in rows[ran.findings("export-error")[0].range.start.line - 1]
    report = ran.text("0/0/draft-export")
    assert report.count("data-dependent-error") == 2
    assert (ran.stdout, ran.stderr) == (run_plain_forked(tmp_path / "script.py").stdout, "")


OPERATORS = """\
import torch


@torch.library.custom_op("irscope_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def program(x):
    return twice(x) + 1  # @missing


print(torch.compile(program)(torch.ones(3)))
"""


def test_an_operator_without_a_fake_kernel_is_named_where_it_is_called(tmp_path: Path) -> None:
    ran = ran_export(tmp_path, OPERATORS)
    [finding] = ran.findings("draft-export")
    assert (finding.code, finding.range.start.line) == ("missing-fake-kernel", 10)
    assert "irscope_test::twice" in finding.hints[0]
    assert ran.stdout == "tensor([3., 3., 3.])\n"  # torch.compile alone fails here, too


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly  # more models
@pytest.mark.parametrize(
    "name",
    # `SCRIPT` is an MLP, whose lines and numbers the tests above look at.
    ["gpt2", "mlp", "conv", "bert", "vit"],
)
def test_models(name: str, tmp_path: Path) -> None:
    """Numbers agree (the script checks them), and operations keep the lines of the model down to the lowest graph."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_export(tmp_path, SCRIPTS[name])
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree")
    for stage in ("0/0/exported-program", "0/0/decomposed-program"):
        kept, count = lines_kept(ran, stage)
        assert count > 0
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
    assert reached(ran).share >= 0.95


TWICE = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x + x.sum().item().bit_length()


for net in (Net(), Net()):
    torch.compile(net)(torch.ones(2, dtype=torch.int64))
"""


def test_one_cause_in_two_programs_is_one_finding(tmp_path: Path) -> None:
    found = ran_export(tmp_path, TWICE).findings("export-error")
    assert [(one.range.start.line, one.count, one.compiles) for one in found] == [(6, 2, ("0/0", "1/0"))]
