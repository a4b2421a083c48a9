"""A pipeline is one file: the command line, the language server and the debugger show what it puts, unchanged."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dap_client import Client
from irscope.pipelines.registry import pipelines
from irscope.protocol import Report
from irscope.store.store import Store
from lsp_editor import SERVER, Editor
from lsprotocol import types
from support import REPOSITORY, run_cli, write

pytestmark = pytest.mark.worker

PIPELINE = "fx-interpreter"
ENV = {"IRSCOPE_PIPELINES": str(REPOSITORY / "tests" / "pipelines" / "fx_interpreter.py")}
GRAPH, STEPS = "0/0/fx-traced", "0/0/fx-steps"
KNOWN = ", ".join([*(one.name for one in pipelines().values() if not one.unsupported), PIPELINE])
SCRIPT = """\
import torch


def scale(x, w):
    y = x @ w
    return torch.relu(y) + 1


fast = torch.compile(scale)
print(fast(torch.ones(2, 3), torch.ones(3, 4)).sum())
"""
MATMUL, RELU = 5, 6
"""1-based lines of the script."""
OPERATIONS = 3


class Ran:
    """The script's run through the pipeline, as the command line made it."""

    def __init__(self, folder: Path) -> None:
        self.script, self.store = write(folder, SCRIPT), str(folder / "runs.db")
        self.done = run_cli("run", self.script, "--pipeline", PIPELINE, "--store", self.store, "--json", env=ENV)
        assert self.done.returncode == 0, self.done.stderr
        self.told = json.loads(self.done.stdout)

    @property
    def report(self) -> Report:
        with Store(self.store) as store:
            return store.report(self.told["run"])

    def lines_with(self, stage: str, text: str) -> list[int]:
        """0-based lines of a stage's text."""
        with Store(self.store) as store:
            rows = store.stage_text(self.told["run"], stage).split("\n")
        return [number for number, row in enumerate(rows) if text in row]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran(tmp_path_factory.mktemp("seam"))


# --- the command line -------------------------------------------------------------------------------------------------


def test_the_command_line_runs_it(ran: Ran) -> None:
    assert "tensor(32.)" in ran.done.stderr
    assert (ran.told["pipeline"], ran.report.pipeline) == (PIPELINE, PIPELINE)
    assert ran.told["capture_gaps"] == []
    [compile] = ran.told["compiles"]
    assert (compile["function"], compile["line"], compile["outcome"]) == ("scale", 4, "compiled")
    assert [stage["id"] for stage in compile["stages"]] == [GRAPH, STEPS]
    assert compile["graph_ops"] == OPERATIONS
    [finding] = ran.told["findings"]
    assert (finding["kind"], finding["range"]["start"]["line"]) == ("interpreted-step", 4)


def test_a_line_leads_to_its_stages(ran: Ran) -> None:
    for line, nodes in ((MATMUL, ["matmul"]), (RELU, ["relu", "add"])):
        done = run_cli("show", "--line", f"{ran.script}:{line}", "--store", ran.store, "--json", env=ENV)
        steps = {step["stage"]: step for step in json.loads(done.stdout)["steps"]}
        assert list(steps) == [GRAPH, STEPS]
        assert [place["name"] for place in steps[GRAPH]["places"]] == nodes
        assert [place["line"] - 1 for place in steps[STEPS]["places"]] == [
            number for node in nodes for number in ran.lines_with(STEPS, f"run {node}")
        ]


def test_an_unknown_name_is_answered_with_those_there_are(ran: Ran) -> None:
    done = run_cli("run", ran.script, "--pipeline", "lacking", "--store", ran.store, env=ENV)
    assert done.returncode == 2
    assert done.stderr == f"irscope: Unknown pipeline: 'lacking'. Known: {KNOWN}.\n"


LACKING = """
from irscope.pipelines.base import Package, Pipeline
from irscope.vocabulary.stages import Role, StageKind

NEEDS = (Package("json"), Package("no_such_compiler", "no-such-compiler>=2"), Package("no_such.driver"))
PIPELINE = Pipeline("lacking", "Lacking", (StageKind("its-ir", "Its IR", "python", Role.TEXT, 3),), needs=NEEDS)
"""


def test_a_system_that_is_only_known_is_refused_with_its_reason(ran: Ran) -> None:
    done = run_cli("run", ran.script, "--pipeline", "glow", "--store", ran.store, env=ENV)
    assert done.returncode == 2
    assert done.stderr == f"irscope: irscope cannot run the pipeline glow: {pipelines()['glow'].unsupported}\n"


def test_a_pipeline_whose_compiler_is_not_installed_is_refused_before_the_script_runs(tmp_path: Path) -> None:
    env = {"IRSCOPE_PIPELINES": str(write(tmp_path, LACKING, "lacking.py"))}
    script = write(tmp_path, "print('the script runs')\n")
    done = run_cli("run", script, "--pipeline", "lacking", "--store", tmp_path / "runs.db", "--json", env=env)
    assert done.returncode == 3
    told = json.loads(done.stdout)
    assert told["outcome"]["kind"] == "environment-error"
    assert told["outcome"]["message"] == (
        f"The pipeline lacking needs no_such_compiler, no_such.driver, not installed in {sys.executable}. "
        f"Install it there ({sys.executable} -m pip install 'no-such-compiler>=2' no_such), or choose another interpreter."
    )
    assert "the script runs" not in done.stderr + done.stdout


# --- the language server ----------------------------------------------------------------------------------------------


@pytest.fixture
async def editor(ran: Ran) -> Any:
    """A real server with the run's store."""
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    started = await Editor.start(
        SERVER, options={"storePath": ran.store}, settings=settings, env={**os.environ, **ENV}, folder=ran.script.parent
    )
    yield started
    await started.close()


async def test_its_stages_are_in_the_tree_and_open_as_documents(editor: Editor, ran: Ran) -> None:
    tree = await editor.request("irscope/report", run=ran.told["run"])
    assert tree.item.pipeline == PIPELINE
    [compile] = tree.compiles
    assert [(stage.stage, stage.title, stage.isGraph) for stage in compile.stages] == [
        (GRAPH, "Traced by FX", True),
        (STEPS, "Steps of the interpreter", False),
    ]
    assert compile.graphOps == OPERATIONS
    documents = [await editor.request("irscope/document", uri=stage.uri) for stage in compile.stages]
    assert "torch.relu(matmul)" in documents[0].text
    assert documents[1].text == "1: run matmul\n2: run relu\n3: run add\n"


async def test_they_are_in_the_strip_and_in_the_graph_panel(editor: Editor, ran: Ran) -> None:
    for request in ("pipeline", "findings", "phases", "memory"):
        assert (await editor.request(f"irscope/{request}", run=ran.told["run"])).pipeline == PIPELINE, request
    strip = await editor.request("irscope/pipeline", run=ran.told["run"])
    assert [one.graphOps for one in strip.compiles] == [OPERATIONS]
    assert [(stage.stage, stage.title, stage.count) for stage in strip.stages] == [
        (GRAPH, "Traced by FX", 6),
        (STEPS, "Steps of the interpreter", None),
    ]
    graph = await editor.request("irscope/graph", run=ran.told["run"], stage=GRAPH)
    assert list(graph.nodes.name) == ["x", "w", "matmul", "relu", "add", "output"]


async def test_they_are_linked_to_the_source_and_to_each_other(editor: Editor, ran: Ran) -> None:
    editor.open(ran.script)
    tree = await editor.request("irscope/report", run=ran.told["run"])
    graph, steps = (stage.uri for stage in tree.compiles[0].stages)
    [relu] = ran.lines_with(STEPS, "run relu")
    among = [ran.script.as_uri(), graph]
    found = await editor.request("irscope/counterparts", uri=steps, line=relu, run=ran.told["run"], among=among)
    lines = {one.uri: list(one.lines) for one in found.places}
    assert lines == {ran.script.as_uri(): [RELU - 1], graph: ran.lines_with(GRAPH, "relu = torch.relu")}


async def test_the_editor_runs_it(editor: Editor, ran: Ran) -> None:
    uri = editor.open(ran.script)
    done = await editor.request("irscope/run", uri=uri, lane="deep", pipeline=PIPELINE)
    assert done.outcome == "completed"
    with Store(ran.store) as store:
        report = store.report(done.run)
    assert [stage.id for stage in report.compiles[0].stages] == [GRAPH, STEPS]
    await editor.until(lambda: "fx-interpreted" in editor.codes(uri))
    [diagnostic] = [one for one in editor.diagnostics(uri) if one.code == "fx-interpreted"]
    assert diagnostic.range.start == types.Position(3, 0)
    refused = await editor.request("irscope/run", uri=uri, lane="deep", pipeline="lacking")
    assert refused.outcome == "environment-error"
    assert KNOWN in refused.message and "the setting irscope.pipeline" in refused.message


# --- the debugger -----------------------------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(env=ENV) as started:
        yield started


def test_the_debugger_steps_through_it(client: Client, ran: Ran, tmp_path: Path) -> None:
    client.initialize()
    store = str(tmp_path / "runs.db")
    client.ask("launch", program=str(ran.script), store=store, pipeline=PIPELINE, stopOn="none")
    client.ask("setBreakpoints", source={"path": str(ran.script)}, breakpoints=[{"line": RELU}])
    client.ask("setExceptionBreakpoints", filters=[])
    client.ask("configurationDone")
    client.event("stopped")
    assert (client.top()["source"]["path"], client.top()["line"]) == (str(ran.script), RELU)
    seen = []
    for _ in range(2):
        client.move("stepIn")
        top = client.stack()[0]
        seen.append((top["source"]["name"], top["line"] - 1))
    assert seen == [
        ("0/0 fx-traced.py", ran.lines_with(GRAPH, "relu = torch.relu")[0]),
        ("0/0 fx-steps.txt", ran.lines_with(STEPS, "run relu")[0]),
    ]
    assert client.stack()[-1]["source"]["path"] == str(ran.script)


def test_the_debugger_refuses_an_unknown_one(client: Client, ran: Ran) -> None:
    client.initialize()
    sentence = client.refused("launch", program=str(ran.script), pipeline="lacking")
    assert sentence == f"Unknown pipeline: 'lacking'. Known: {KNOWN}."
