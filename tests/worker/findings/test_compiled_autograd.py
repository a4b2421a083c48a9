"""Compiled autograd: the graph of a whole backward, its compile, and the way from lines of the forward to its kernels.

The kernels are generated, not compiled, as in test_inductor_stages.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from irscope.protocol import CompileOutcome, OutcomeKind
from irscope.provenance import Provenance
from irscope.provenance.lines import trail_of
from irscope.store.store import Store
from support import REPOSITORY, Ran, lines_marked, log_as, run_forked, run_plain_forked, write
from test_provenance import GRAPHS, check_ends, check_up_and_down

SCRIPT = """\
import torch
from torch._inductor.async_compile import AsyncCompile

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None
torch._dynamo.config.compiled_autograd = True
torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        h = torch.nn.functional.gelu(self.up(self.norm(x)))  # @both
        return x + self.down(h)


model = torch.nn.Sequential(Block(16), Block(16))


@torch.compile
def step(x):
    loss = model(x).square().mean()
    loss.backward()
    return loss


step(torch.randn(8, 16))
"""
LOWERED = [
    "inference-graph",
    "post-grad-graph",
    "ir-pre-fusion",
    "fusion",
    "ir-post-fusion",
    "memory-plan",
    "output-code",
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    folder = tmp_path_factory.mktemp("autograd")
    script = write(folder, SCRIPT)
    ran = run_forked(script, folder / "runs.db", "deep")
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.report.outcome.message
    assert ran.report.capture_gaps == ()
    return ran, script


@pytest.mark.since_torch("2.11", "functions of modules imported while compiled autograd is on are looked at, too")
def test_the_compiles_are_those_of_a_run_without_irscope(ran: tuple[Ran, Path], tmp_path: Path) -> None:
    """Dynamo looks at every function that runs while compiled autograd does; irscope's own are none of the script's."""
    captured, script = ran
    no_cache = "import torch._inductor.config\ntorch._inductor.config.fx_graph_cache = False\n"
    plain = run_plain_forked(script, before=log_as({"TORCH_TRACE": str(tmp_path)}) + no_cache)
    assert plain.returncode == 0, plain.stderr
    heads = [line for file in tmp_path.iterdir() for line in file.read_text().split("\n") if '"dynamo_start"' in line]
    begun = set()
    for facts in (json.loads(head[head.index("{") :]) for head in heads):
        autograd = f"!{facts['compiled_autograd_id']}/" if "compiled_autograd_id" in facts else ""
        begun.add(f"{autograd}{facts['frame_id']}/{facts['frame_compile_id']}")
    compiles = {compile.id: compile for compile in captured.report.compiles}
    assert set(compiles) == {*begun, "!0"}
    assert not any(compile.file.startswith(str(REPOSITORY / "compiler")) for compile in compiles.values())
    assert compiles["!0"].outcome is CompileOutcome.COMPILED


def test_the_backward_is_lowered_as_one_graph(ran: tuple[Ran, Path]) -> None:
    captured, _ = ran
    (whole,) = (stage for stage in captured.compile("!0").stages if stage.name == "compiled-autograd-graph")
    assert "aot0_mm" in captured.text(whole.id)
    (compile,) = (compile for compile in captured.report.compiles if re.fullmatch(r"!0/\d+/0", compile.id))
    ids = [stage.id.partition(compile.id + "/")[2] for stage in compile.stages if not stage.passed]
    assert [id for id in ids if id.removesuffix("-backward") in LOWERED] == LOWERED
    assert captured.kernels("cpp")


def test_the_thread_from_a_line_to_the_kernels_of_both(ran: tuple[Ran, Path]) -> None:
    captured, script = ran
    with Store(captured.store) as store:
        thread = Provenance(store, captured.report)
        check_ends(captured, thread, GRAPHS)
        check_up_and_down(captured, thread)
        (line,) = lines_marked(SCRIPT, "@both")
        trail = trail_of(store, captured.report, str(script), line)
        (backward,) = (compile.id for compile in captured.report.compiles if compile.id.startswith("!0/"))
        assert {kernel.compile for kernel in trail.kernels if kernel.language == "cpp"} == {"0/0", backward}
        ends = [step for step in trail.steps if step.stage.endswith(("/backward-graph", "/compiled-autograd-graph"))]
        fates = {place.fate for step in ends for place in step.places}
        assert fates >= {
            "a part of what compiled autograd runs: !0",
            f"run as Python code, which Dynamo compiles: {backward}",
        }
        assert not any("backend reports no stage" in fate for fate in fates)
