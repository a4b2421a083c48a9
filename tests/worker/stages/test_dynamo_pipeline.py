"""The pipeline ``dynamo``: backends of the script's own, whether they ran, and what they returned."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from five_models import SCRIPTS, TRAINING_SCRIPTS, lines_kept
from irscope.driver.availability import Status, availability_of
from irscope.pipelines.registry import pipelines
from irscope.protocol import CompileOutcome
from irscope.provenance import Provenance
from irscope.store.store import Store
from support import Ran, run_forked, run_plain_forked, write

SCRIPT = """\
import functools

import torch
from torch._dynamo.backends.common import aot_autograd


def passes(graph, inputs):
    for node in graph.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.sigmoid
    graph.recompile()
    return graph


def returns_it(graph, inputs):
    return graph.forward


def calls_it(graph, inputs):
    return lambda *args: graph(*args)


def interprets(graph, inputs):
    return torch.fx.Interpreter(graph).run


def traces(graph, inputs):
    return torch.jit.trace(graph, tuple(inputs))


def refuses(graph, inputs):
    raise ValueError("no such target")


class Tracer:
    def __call__(self, graph, inputs):
        return traces(graph, inputs)


def configured(graph, inputs, *, level):
    return traces(graph, inputs)


partial = functools.partial(configured, level=2)
by_aot = aot_autograd(fw_compiler=lambda graph, inputs: graph)
for backend in (passes, returns_it, calls_it, interprets, traces, refuses, by_aot, "eager", partial, Tracer()):

    def program(x):
        y = x.sin()
        return torch.relu(y) * 2

    torch._dynamo.reset()
    try:
        print(torch.compile(program, backend=backend)(torch.ones(3)))
    except torch._dynamo.exc.BackendCompilerFailed:
        print("failed")
"""
PASSES, RETURNS_IT, CALLS_IT, INTERPRETS, TRACES, REFUSES, BY_AOT, EAGER, PARTIAL, INSTANCE = (
    "0/0" if number == 1 else f"0/0#{number}" for number in range(1, 11)
)
AS_IT_WAS = "the graph as it was, one PyTorch operation after the other."


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("backends")
    return run_forked(write(folder, SCRIPT), folder / "runs.db", lane="deep", pipeline="dynamo")


def report_of(ran: Ran, compile: str) -> list[str]:
    return ran.text(f"{compile}/backend-report").rstrip().split("\n")


def test_the_script_computes_the_same_and_nothing_is_missing(ran: Ran) -> None:
    assert ran.report.capture_gaps == ()
    assert ran.stdout == run_plain_forked(Path(ran.report.script)).stdout


def test_a_back_end_that_was_called_has_a_report(ran: Ran) -> None:
    script = ran.report.script
    assert report_of(ran, PASSES) == [
        f"Backend: passes, which is __main__.passes ({script}:7)",
        "It was called with a graph of 3 operations.",
        "It returned an object of torch.fx.graph_module.GraphModule. It changed the graph that it was given.",
        "What it returned ran: the graph as the backend has changed it, one PyTorch operation after the other.",
    ]
    assert [report_of(ran, one)[-1] for one in (RETURNS_IT, CALLS_IT, INTERPRETS, EAGER)] == [
        f"What it returned ran: {AS_IT_WAS}"
    ] * 4
    assert report_of(ran, TRACES)[-1] == "What it returned ran, and the graph that it was given did not run as Python."
    assert report_of(ran, BY_AOT)[-1] == f"What it returned ran: {AS_IT_WAS.replace('graph', 'graph of AOTAutograd')}"


def test_a_back_end_that_is_no_function_has_a_name_without_an_address(ran: Ran) -> None:
    script, lines = ran.report.script, SCRIPT.split("\n")
    function = 1 + lines.index("def configured(graph, inputs, *, level):")
    called = 1 + lines.index("    def __call__(self, graph, inputs):")
    assert [report_of(ran, one)[0] for one in (PARTIAL, INSTANCE)] == [
        f"Backend: configured, which is a functools.partial of __main__.configured ({script}:{function})",
        f"Backend: Tracer, which is an object of __main__.Tracer ({script}:{called})",
    ]
    assert report_of(ran, RETURNS_IT)[2].startswith("It returned the method forward of torch.fx.")


def test_an_error_of_the_back_end_is_in_its_report_and_a_finding(ran: Ran) -> None:
    assert report_of(ran, REFUSES)[-1] == "It raised ValueError: no such target"
    assert ran.compile(REFUSES).outcome is CompileOutcome.ERROR
    [error] = ran.findings("compile-error")
    assert (error.code, error.compiles) == ("BackendCompilerFailed", (REFUSES,))


def test_a_graph_that_ran_as_it_was_is_a_finding_but_not_with_eager(ran: Ran) -> None:
    found = {one.code: one for one in ran.findings("graph-not-compiled")}
    assert {code: one.compiles for code, one in found.items()} == {
        "graph-returned": (RETURNS_IT,),
        "graph-executed": (CALLS_IT, INTERPRETS, BY_AOT),
    }
    lines = SCRIPT.split("\n")
    for one in found.values():
        assert "def program" in lines[one.range.start.line - 1]


def test_a_graph_that_it_returned_leads_to_the_users_lines(ran: Ran) -> None:
    line = 1 + SCRIPT.split("\n").index("        return torch.relu(y) * 2")
    with Store(ran.store) as store:
        found = Provenance(store, ran.report)
        below = found.below(found.source(ran.report.script, line))
    assert "torch.sigmoid(y)" in ran.text(f"{PASSES}/backend-graph")
    assert [one.name for one in below[f"{PASSES}/backend-graph"]] == ["relu", "mul", "output"]
    assert {"relu", "mul"} <= {one.name for one in below[f"{BY_AOT}/inference-graph"]}


def test_the_text_of_a_compiled_object_is_a_stage(ran: Ran) -> None:
    assert "aten::relu" in ran.text(f"{TRACES}/backend-text")


def test_the_fast_lane_shows_what_dynamo_shows(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, SCRIPT), tmp_path / "runs.db", lane="fast", pipeline="dynamo")
    assert ran.report.capture_gaps == ()
    assert "backend-report" not in {stage.name for compile in ran.report.compiles for stage in compile.stages}


# --- what is installed ------------------------------------------------------------------------------------------------

BACKENDS = """\
import torch


def good(graph, inputs):
    return torch.jit.trace(graph, tuple(inputs))


def quiet(graph, inputs):
    return graph.forward


def bad(graph, inputs):
    raise RuntimeError("no device")
"""


NO_TRIAL = "A trial failed: "
TRIED = {
    "good": ("available", ""),
    "quiet": ("unsupported", NO_TRIAL + "it compiled nothing: the graph ran as it was, in eager mode"),
    "bad": ("unsupported", NO_TRIAL + "RuntimeError: no device"),
    "gone": ("unsupported", NO_TRIAL + "ModuleNotFoundError: No module named 'no_such_package'"),
}


@pytest.mark.nightly  # each trial imports torch
def test_registered_back_ends_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, BACKENDS, "irscope_backends.py")
    facts = tmp_path / "irscope_backends-1.0.dist-info"
    facts.mkdir()
    write(facts, "Metadata-Version: 2.1\nName: irscope-backends\nVersion: 1.0\n", "METADATA")
    modules = {name: "no_such_package" if name == "gone" else "irscope_backends" for name in TRIED}
    rows = [f"{name}_one = {module}:{name}" for name, module in modules.items()]
    write(facts, "\n".join(["[torch_dynamo_backends]", *rows, ""]), "entry_points.txt")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    [found] = availability_of([pipelines()["dynamo"]], sys.executable, str(tmp_path / "trials.json"))
    assert found.status is Status.AVAILABLE
    said = {one.name: (one.status.value, one.why) for one in found.variants}
    assert said == {f"{name}_one": TRIED[name] for name in TRIED}


# --- models -----------------------------------------------------------------------------------------------------------

COPYING = """\
import copy


def backend(graph, inputs):
    return copy.deepcopy(graph)


fast = torch.compile(model, backend=backend)
"""


@pytest.mark.parametrize("trained", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "name", ["mlp", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("conv", "bert", "gpt2", "vit"))]
)
def test_models(name: str, trained: bool, tmp_path: Path) -> None:
    """Numbers agree (the script checks them), and the graph that the backend returned keeps the lines of the model."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    source = (TRAINING_SCRIPTS if trained else SCRIPTS)[name].replace("fast = torch.compile(model)\n", COPYING)
    ran = run_forked(write(tmp_path, source), tmp_path / "runs.db", lane="deep", pipeline="dynamo")
    assert ran.report.capture_gaps == () and ran.findings("graph-not-compiled") == []
    assert ran.stdout.startswith("agree"), ran.stderr
    for stage in ("0/0/dynamo-graph", "0/0/backend-graph"):
        kept, count = lines_kept(ran, stage)
        assert count > 0
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
