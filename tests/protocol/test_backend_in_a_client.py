"""A client with a run of the pipeline ``dynamo``: the graph that the script's backend returned, in every view."""

from __future__ import annotations

from pathlib import Path

import pytest
from dap_client import Client
from irscope.store.store import Store
from lsp_editor import SERVER, Editor
from support import run_captured, write

pytestmark = pytest.mark.worker

SCRIPT = """\
import torch


def backend(graph, inputs):
    for node in graph.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.sigmoid
    graph.recompile()
    return graph


@torch.compile(backend=backend)
def scale(x):
    y = torch.relu(x)
    return y * 2


scale(torch.ones(3))
"""
RELU = 14
"""1-based line of the script."""
GRAPH, REPORT, RETURNED = "0/0/dynamo-graph", "0/0/backend-report", "0/0/backend-graph"


async def test_a_client_shows_what_the_backend_returned(tmp_path: Path) -> None:
    script, store = write(tmp_path, SCRIPT), tmp_path / "runs.db"
    run = run_captured(script, store, lane="deep", pipeline="dynamo").report.run
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    editor = await Editor.start(SERVER, options={"storePath": str(store)}, settings=settings, folder=tmp_path)
    try:
        editor.open(script)
        tree = await editor.request("irscope/report", run=run)
        assert tree.item.pipeline == "dynamo"
        stages = {stage.stage: stage for stage in tree.compiles[0].stages}
        assert [stages[one].isGraph for one in (GRAPH, REPORT, RETURNED)] == [True, False, True]
        assert {stages[one].group for one in (REPORT, RETURNED)} == {"Backend"}
        strip = await editor.request("irscope/pipeline", run=run)
        assert [stage.stage for stage in strip.stages if stage.isGraph] == [GRAPH, RETURNED]
        graph = await editor.request("irscope/graph", run=run, stage=RETURNED)
        assert [name for name in graph.nodes.name if name in ("y", "mul")] == ["y", "mul"]
        with Store(str(store)) as opened:
            rows = {stage: opened.stage_text(run, stage).split("\n") for stage in (GRAPH, RETURNED)}
        at = {
            stage: next(i for i, row in enumerate(text) if row.strip().startswith("y: "))
            for stage, text in rows.items()
        }
        assert "torch.relu(" in rows[GRAPH][at[GRAPH]] and "torch.sigmoid(" in rows[RETURNED][at[RETURNED]]
        uri, among = stages[RETURNED].uri, [script.as_uri(), stages[GRAPH].uri]
        found = await editor.request("irscope/counterparts", uri=uri, line=at[RETURNED], run=run, among=among)
        lines = {one.uri: list(one.lines) for one in found.places}
        assert lines == {script.as_uri(): [RELU - 1], stages[GRAPH].uri: [at[GRAPH]]}
    finally:
        await editor.close()


def test_the_debugger_steps_from_the_line_to_the_graph_that_the_backend_returned(tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT)
    with Client() as client:
        client.initialize()
        store = str(tmp_path / "runs.db")
        client.ask("launch", program=str(script), store=store, pipeline="dynamo", stopOn="none")
        client.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[{"line": RELU}])
        client.ask("setExceptionBreakpoints", filters=[])
        client.ask("configurationDone")
        client.event("stopped")
        assert (client.top()["source"]["path"], client.top()["line"]) == (str(script), RELU)
        seen = []
        for _ in range(6):
            client.move("stepIn")
            seen.append(client.stack()[0]["source"]["name"])
            if "backend-graph" in seen[-1]:
                break
        assert seen[-1] == "0/0 backend-graph.py", seen
        assert client.stack()[-1]["source"]["path"] == str(script)
