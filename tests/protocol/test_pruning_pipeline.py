"""A client with a run of the pipeline ``pruning``: the mask in the graph, its facts and its kernel, in every view."""

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
from torch.nn.utils import prune


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)

    def forward(self, x):
        return torch.relu(self.first(x))


net = Net().eval()
prune.l1_unstructured(net.first, "weight", amount=0.5)
fast = torch.compile(net)
with torch.no_grad():
    fast(torch.ones(2, 8))
"""
FIRST = 11
"""1-based line of the script: the layer whose weight has a mask."""
GRAPH, FACTS = "0/0/dynamo-graph", "0/0/sparsity"


async def test_a_client_shows_the_mask(tmp_path: Path) -> None:
    script, store = write(tmp_path, SCRIPT), tmp_path / "runs.db"
    run = run_captured(script, store, lane="deep", pipeline="pruning").report.run
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    editor = await Editor.start(SERVER, options={"storePath": str(store)}, settings=settings, folder=tmp_path)
    try:
        editor.open(script)
        tree = await editor.request("irscope/report", run=run)
        assert tree.item.pipeline == "pruning"
        stages = {stage.stage: stage for stage in tree.compiles[0].stages}
        assert (stages[FACTS].title, stages[FACTS].group) == ("Zeros and masks of parameters", "Pruning")
        document = await editor.request("irscope/document", uri=stages[FACTS].uri)
        assert "first.weight" in document.text
        strip = await editor.request("irscope/pipeline", run=run)
        assert GRAPH in [stage.stage for stage in strip.stages]
        with Store(str(store)) as opened:
            rows = opened.stage_text(run, GRAPH).split("\n")
        [product] = [i for i, row in enumerate(rows) if " * " in row and not row.lstrip().startswith("#")]
        name = rows[product].split(":")[0].strip()
        graph = await editor.request("irscope/graph", run=run, stage=GRAPH)
        assert name in list(graph.nodes.name)
        [kernel] = [one for one in tree.compiles[0].kernels if any(place.line == FIRST - 1 for place in one.origins)][
            :1
        ]
        among = [script.as_uri(), kernel.uri]
        found = await editor.request("irscope/counterparts", uri=stages[GRAPH].uri, line=product, run=run, among=among)
        lines = {one.uri: list(one.lines) for one in found.places}
        assert lines[script.as_uri()] == [FIRST - 1] and lines[kernel.uri]
    finally:
        await editor.close()


def test_the_debugger_steps_from_the_line_to_its_kernel(tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT)
    with Client() as client:
        client.initialize()
        store = str(tmp_path / "runs.db")
        client.ask("launch", program=str(script), store=store, pipeline="pruning", stopOn="none")
        client.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[{"line": FIRST}])
        client.ask("setExceptionBreakpoints", filters=[])
        client.ask("configurationDone")
        client.event("stopped")
        assert (client.top()["source"]["path"], client.top()["line"]) == (str(script), FIRST)
        seen = []
        for _ in range(30):
            client.move("stepIn")
            seen.append(client.stack()[0]["source"]["name"])
            if seen[-1].endswith(".cpp"):
                break
        assert "0/0 dynamo-graph.py" in seen and seen[-1].endswith(".cpp"), seen
        assert client.stack()[-1]["source"]["path"] == str(script)
