"""A client with a run of the pipeline ``aotinductor``: its stages are in the tree, the strip, the panel and linked."""

from __future__ import annotations

from pathlib import Path

import pytest
from dap_client import Client
from irscope.store.store import Store
from lsp_editor import SERVER, Editor
from support import Ran, run_captured, write

# A compile takes half a minute.  In `npm test` the worker's tests look at one (tests/worker/stages/test_aotinductor.py).
pytestmark = [pytest.mark.worker, pytest.mark.nightly]

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
WRAPPER = "0/0/cpp-wrapper"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("aotinductor")
    return run_captured(write(folder, SCRIPT), folder / "runs.db", lane="deep", pipeline="aotinductor")


async def test_a_client_shows_the_way_to_the_kernels(ran: Ran) -> None:
    script, run = Path(ran.report.script), ran.report.run
    settings = {"run": {"onSave": "off", "onOpen": "off"}}
    editor = await Editor.start(SERVER, options={"storePath": ran.store}, settings=settings, folder=script.parent)
    try:
        editor.open(script)
        tree = await editor.request("irscope/report", run=run)
        assert tree.item.pipeline == "aotinductor"
        [compile] = tree.compiles
        uris = {stage.stage: stage.uri for stage in compile.stages}
        titles = [stage.title for stage in compile.stages]
        assert titles.index("Exported program") < titles.index("Post-grad graph") < titles.index("C++ wrapper")
        strip = await editor.request("irscope/pipeline", run=run)
        [kernel] = [stage.id for one in ran.report.compiles for stage in one.stages if stage.name == "kernel"]
        ways = [stage.stage for stage in strip.stages]
        assert (ways[0], ways[-2:]) == ("0/0/exported-program", [WRAPPER, kernel])
        graph = await editor.request("irscope/graph", run=run, stage="0/0/post-grad-graph")
        assert "addmm" in list(graph.nodes.name)
        with Store(ran.store) as opened:
            rows = {stage: opened.stage_text(run, stage).split("\n") for stage in (WRAPPER, kernel)}
        [call] = [i for i, row in enumerate(rows[WRAPPER]) if row.startswith("    cpp_fused_relu_0(")]
        among = [script.as_uri(), uris[WRAPPER]]
        [line] = [i for i, row in enumerate(rows[kernel]) if "clamp_min(" in row]
        [uri] = [one.uri for one in compile.kernels if one.name == "cpp_fused_relu_0"]
        found = await editor.request("irscope/counterparts", uri=uri, line=line, run=run, among=among)
        assert {one.uri: list(one.lines) for one in found.places} == {script.as_uri(): [RELU], uris[WRAPPER]: [call]}
    finally:
        await editor.close()


def test_a_debugger_steps_down_to_the_kernel(ran: Ran) -> None:
    with Client() as client:
        client.attach(ran.store, run=ran.report.run)
        client.ask("setBreakpoints", source={"path": ran.report.script}, breakpoints=[{"line": RELU + 1}])
        client.move("continue")
        assert (client.top()["source"]["path"], client.top()["line"]) == (ran.report.script, RELU + 1)
        seen = []
        for _ in range(7):
            client.move("stepIn")
            seen.append(client.top()["source"]["name"].removeprefix("0/0 "))
        assert seen == [
            "exported-program.py",
            "inference-graph.py",
            "post-grad-graph.py",
            "ir-pre-fusion.py",
            "ir-post-fusion.py",
            "cpp-wrapper.cpp",
            "kernel/cpp_fused_relu_0.cpp",
        ]
