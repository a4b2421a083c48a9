"""A real run through TorchScript: the tree, the graph panel and the debugger, from the user's line to the optimized graph."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from dap_client import Client
from irscope.store.store import Store
from lsp_editor import SERVER, Editor
from support import run_cli, write

pytestmark = pytest.mark.worker

SCRIPT = """\
import torch


def scale(x, w):
    y = x @ w
    return torch.relu(y) + 1


fast = torch.compile(scale)
print(fast(torch.ones(2, 3), torch.ones(3, 4)).sum())
"""
RELU = 6
"""1-based line."""
INLINED, PROFILED, OPTIMIZED = "0/0/torchscript-inlined", "0/0/torchscript-profiled", "0/0/torchscript-optimized"


async def test_the_stages_are_in_the_tree_the_panel_and_linked_to_the_source(tmp_path: Path) -> None:
    script, store = write(tmp_path, SCRIPT), str(tmp_path / "runs.db")
    done = run_cli("run", script, "--pipeline", "torchscript", "--store", store)
    assert done.returncode == 0, done.stderr
    assert "tensor(32.)" in done.stdout
    with Store(store) as opened:
        run = opened.runs()[0].run
        rows = opened.stage_text(run, OPTIMIZED).split("\n")
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    editor: Any = await Editor.start(
        SERVER, options={"storePath": store}, settings=settings, env=dict(os.environ), folder=tmp_path
    )
    try:
        editor.open(script)
        tree = await editor.request("irscope/report", run=run)
        assert tree.item.pipeline == "torchscript"
        stages = {stage.stage: stage for stage in tree.compiles[0].stages}
        assert {INLINED, PROFILED, OPTIMIZED} <= set(stages)
        graph = await editor.request("irscope/graph", run=run, stage=OPTIMIZED)
        assert list(graph.nodes.name)[-4:] == ["y", "relu", "add", "output"], "a value has its variable's name"
        [line] = [at for at, row in enumerate(rows) if "aten.relu(" in row]
        uri = stages[OPTIMIZED].uri
        among = [script.as_uri(), stages[INLINED].uri]
        found = await editor.request("irscope/counterparts", uri=uri, line=line, run=run, among=among)
        assert {one.uri: list(one.lines) for one in found.places}[script.as_uri()] == [RELU - 1]
    finally:
        await editor.close()


def test_the_debugger_steps_from_the_line_to_the_optimized_graph(tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT)
    with Client() as client:
        client.initialize()
        store = str(tmp_path / "runs.db")
        client.ask("launch", program=str(script), store=store, pipeline="torchscript", stopOn="none")
        client.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[{"line": RELU}])
        client.ask("setExceptionBreakpoints", filters=[])
        client.ask("configurationDone")
        client.event("stopped")
        assert (client.top()["source"]["path"], client.top()["line"]) == (str(script), RELU)
        seen = []
        for _ in range(4):
            client.move("stepIn")
            seen.append(client.stack()[0]["source"]["name"])
            if "optimized" in seen[-1]:
                break
        assert seen[0] == "0/0 torchscript-inlined.py"
        assert seen[-1] == "0/0 torchscript-optimized.py", seen
        assert client.stack()[-1]["source"]["path"] == str(script)
