"""A client with a run of the pipeline ``export``: its stages are in the tree, the strip, the graph panel and linked."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.store.store import Store
from lsp_editor import SERVER, Editor
from support import run_captured, write

pytestmark = pytest.mark.worker

SCRIPT = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)

    def forward(self, x):
        return torch.relu(self.first(x))  # @relu


fast = torch.compile(Net().eval())
with torch.no_grad():
    fast(torch.ones(2, 8))
"""
RELU = 9
"""0-based line of the script."""


async def test_a_client_shows_the_exported_program(tmp_path: Path) -> None:
    script, store = write(tmp_path, SCRIPT), tmp_path / "runs.db"
    ran = run_captured(script, store, lane="deep", pipeline="export")
    run, before, after = ran.report.run, "0/0/exported-program", "0/0/decomposed-program"
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    editor = await Editor.start(SERVER, options={"storePath": str(store)}, settings=settings, folder=tmp_path)
    try:
        editor.open(script)
        tree = await editor.request("irscope/report", run=run)
        assert tree.item.pipeline == "export"
        [compile] = tree.compiles
        uris = {stage.stage: stage.uri for stage in compile.stages}
        assert [(stage.title, stage.isGraph) for stage in compile.stages] == [
            ("Exported program", True),
            ("Inputs and outputs", False),
            ("Guards and dynamic shapes", False),
            ("Exported program after decompositions", True),
        ]
        strip = await editor.request("irscope/pipeline", run=run)
        assert [stage.stage for stage in strip.stages] == [before, after]
        graph = await editor.request("irscope/graph", run=run, stage=after)
        assert "addmm" in list(graph.nodes.name)
        with Store(str(store)) as opened:
            rows = {stage: opened.stage_text(run, stage).split("\n") for stage in (before, after)}
        at = {stage: next(i for i, row in enumerate(text) if " relu: " in row) for stage, text in rows.items()}
        among = [script.as_uri(), uris[before]]
        found = await editor.request("irscope/counterparts", uri=uris[after], line=at[after], run=run, among=among)
        lines = {one.uri: list(one.lines) for one in found.places}
        assert lines == {script.as_uri(): [RELU], uris[before]: [at[before]]}
    finally:
        await editor.close()
