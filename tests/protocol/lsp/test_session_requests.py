"""What an editor asks for, with the real server process: runs on demand, their progress and end, kernels, stages, graphs.

Runs are played (playing_server.py), so nothing here needs torch.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import Lane, Outcome, OutcomeKind, StageRef, to_json
from irscope.store.store import Store
from irscope.usercode.source import digest_of
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.stages.on_demand import make_stage
from lsp_editor import StartEditor
from lsprotocol import types
from made import GRAPH, SCRIPT, act, compile_of, finding, stage
from support import Instant, late

Play = Callable[..., Path]


async def test_a_run_on_demand(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    result = await editor.request("irscope/run", uri=uri, lane="deep")
    assert result.outcome == "completed"
    command = types.ExecuteCommandParams("irscope.server.run", [{"uri": uri, "lane": "fast"}])
    by_command: Any = await editor.client.workspace_execute_command_async(command)
    assert by_command["outcome"] == "completed" and by_command["run"] != result.run
    assert await editor.lenses(uri) == [(2, "1 cause · see line 6"), (2, "1 graph · 1 break · 1 kernel · 500 ms")]
    runs = (await editor.request("irscope/runs")).runs
    assert [run.lane for run in runs] == ["fast", "deep"]
    assert [run.kernels for run in runs] == [1, 1], "as the lens: the library call does not count"


async def test_cancel_by_request_and_by_command(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, seconds=60))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.codes(uri) != [])
    assert (await editor.request("irscope/cancel", uri=uri)).cancelled
    await editor.until_ended(1, 5)
    assert not (await editor.request("irscope/cancel", uri=uri)).cancelled
    running = asyncio.ensure_future(editor.request("irscope/run", uri=uri, lane="fast"))
    await editor.until(lambda: editor.state == "running")
    command = types.ExecuteCommandParams("irscope.server.cancel", [{"uri": uri}])
    assert await editor.client.workspace_execute_command_async(command) == {"cancelled": True}
    assert (await running).outcome == "cancelled"


async def test_cancel_by_progress(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, seconds=60))
    editor = await start_editor(playing=True)
    editor.open(script)
    await editor.until(lambda: any(editor.progress.values()))
    (token,) = editor.progress
    (begin, *_) = editor.progress[token]
    assert begin.title == "irscope: my script.py (fast)" and begin.cancellable
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    await editor.until_ended(1, 5)
    await editor.until(lambda: editor.progress[token][-1].kind == "end")


async def test_progress_tells_the_phase_and_counts_kernels(start_editor: StartEditor, play: Play, script: Path) -> None:
    phases = [
        ["tracing frame 1: f (my script.py:3, 0/0)", "tracing frame 1", 0, 0],
        ["compiling kernel 12 of 40: f (my script.py:3, 0/0)", "compiling kernel 12 of 40", 11, 40],
    ]
    play(act(script, progress=phases, seconds=60))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: any(editor.progress.values()))
    (token,) = editor.progress

    def reported() -> list[tuple[str, int | None]]:
        return [(r.message, r.percentage) for r in editor.progress[token] if r.kind == "report"]

    await editor.until(lambda: (phases[1][0], 27) in reported())
    await editor.until(lambda: editor.told["irscope/worker"][-1].phase == "compiling kernel 12 of 40")
    assert editor.state == "running"
    await editor.request("irscope/cancel", uri=uri)
    await editor.until_ended(1, 5)
    await editor.until(lambda: editor.state != "running")
    assert editor.told["irscope/worker"][-1].phase is None


async def test_a_cancelled_request_is_answered_and_takes_its_run_with_it(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    play(act(script, seconds=60))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    protocol = editor.client.protocol
    request = asyncio.ensure_future(
        protocol.send_request_async("irscope/run", {"uri": uri, "lane": "deep"}, msg_id="mine")
    )
    await editor.until(lambda: editor.state == "running")
    editor.client.cancel_request(types.CancelParams("mine"))
    with pytest.raises(Exception, match="canceled"):
        await asyncio.wait_for(request, 60)
    await editor.until_ended(1, 5)


async def test_kernels_of_a_line(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    nothing = await editor.request("irscope/kernelsAt", uri=uri, line=4)
    assert (
        nothing.run is None
        and nothing.kernels == []
        and nothing.reason == ("This file has no deep run yet. Run it with Analyze This File.")
    )
    result = await editor.request("irscope/kernelsAt", uri=uri, line=4, run=True)
    (found,) = result.kernels
    assert (found.name, found.uri, found.line) == ("k0", f"irscope:/{result.run}/0/0/kernel/k0.cpp", 0)
    assert found.origins[0].uri == uri and found.origins[0].line == 4
    document = await editor.request("irscope/document", uri=found.uri)
    assert (document.text, document.languageId) == ("void k0() {}\n", "cpp")
    content = await editor.client.workspace_text_document_content_async(types.TextDocumentContentParams(found.uri))
    assert content.text == document.text
    (extern,) = (await editor.request("irscope/kernelsAt", uri=uri, line=6)).kernels
    assert (extern.uri, extern.line) == (f"irscope:/{result.run}/0/0/output-code.py", 3)
    assert len((await editor.request("irscope/kernelsAt", uri=uri, line=2)).kernels) == 0
    assert len((await editor.request("irscope/kernelsAt", uri=uri, line=3)).kernels) == 2  # `def`: the whole function
    none = await editor.request("irscope/kernelsAt", uri=uri, line=0)
    assert none.kernels == [] and none.reason == (
        f"No kernel came from line 1. Looked at run {result.run}: 0/0 f (1 kernel and 1 library call)."
        " Lines with kernels: 5, 7."
    )
    editor.change(uri, "# edited\n" + SCRIPT)
    (moved,) = (await editor.request("irscope/kernelsAt", uri=uri, line=5)).kernels
    assert moved.name == "k0"
    assert len((await editor.request("irscope/runs")).runs) == 1


async def test_two_requests_share_a_deep_run(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script, seconds=0.5))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    one = asyncio.ensure_future(editor.request("irscope/kernelsAt", uri=uri, line=4, run=True))
    await editor.until(lambda: editor.state == "running")
    two = await editor.request("irscope/stagesOf", uri=uri, run=True)
    assert (await one).run == two.run


async def test_stages_tree_and_graph(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    stages = await editor.request("irscope/stagesOf", uri=uri, run=True)
    assert [(s.name, s.title, s.isGraph, s.made, s.compile, s.function) for s in stages.stages] == [
        ("dynamo-graph", "Dynamo graph", True, True, "0/0", "f"),
        ("output-code", "Output code", False, True, "0/0", "f"),
        ("kernel", "Kernel k0", False, True, "0/0", "f"),
        ("assembly", "Assembly of k0", False, False, "0/0", "f"),
    ]
    tree = await editor.request("irscope/report", run=stages.run)
    assert tree.item.scriptUri == uri and tree.item.findings == 1 and tree.torch == "2.13.0"
    (compile,) = tree.compiles
    assert (compile.uri, compile.line) == (uri, 2)
    assert [s.name for s in compile.stages] == ["dynamo-graph", "output-code"]
    assert [(k.name, k.line) for k in compile.kernels] == [("k0", 0), ("extern_kernels.mm", 3)]
    graph = await editor.request("irscope/graph", run=stages.run, stage="0/0/dynamo-graph")
    assert graph.title == "Dynamo graph of f (0/0)" and graph.stageUri == stages.stages[0].uri
    assert graph.nodes.name[1] == "y" and graph.nodes.originLine[1] == 4 and graph.files == [uri]
    told = await editor.request("irscope/graph", run=stages.run, stage="0/0/dynamo-graph", asText=True)
    assert json.loads(told.text)["nodes"]["name"] == graph.nodes.name
    kernels = await editor.request("irscope/graphKernels", run=stages.run, stage="0/0/dynamo-graph")
    assert len(kernels.nodes) == len(graph.nodes.name)


async def test_a_stage_that_cannot_be_made_says_why(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}, "python": "/nowhere/python"})
    uri = editor.open(script)
    assembly = (await editor.request("irscope/stagesOf", uri=uri, run=True)).stages[-1]
    for _ in range(2):  # it is tried each time
        document = await editor.request("irscope/document", uri=assembly.uri)
        assert document.languageId == "plaintext" and document.text.startswith("Assembly of k0: cannot be made now.")
        assert "/nowhere/python is not installed here" in document.text
    assert not (await editor.request("irscope/stagesOf", uri=uri)).stages[-1].made
    with pytest.raises(Exception, match="has no stage 0/0/kernel/k0/sass"):
        await editor.request("irscope/document", uri=assembly.uri.replace("assembly", "sass"))


def test_a_stage_that_another_request_has_made_meanwhile_is_not_made_again(
    script: Path, store_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assembly = StageRef("0/0/kernel/k0/assembly", "assembly", "asm", 4)
    with Store(store_path) as store:
        run = store.create_run(str(script), (), Lane.DEEP, digest_of(SCRIPT))
        store.put_compile(run, compile_of(str(script)))
        store.put_stage(run, "0/0", assembly, "ret\n", 1.0)
    made: list[str] = []
    monkeypatch.setattr("irscope.lowering.make", lambda store, report, stage, python: made.append(stage))
    assert make_stage(store_path, run, assembly.id, "/usr/bin/python3") == ""
    assert make_stage(store_path, run, "0/0/kernel/k1/assembly", "/usr/bin/python3") == ""
    assert made == ["0/0/kernel/k1/assembly"]


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("irscope/report", {"run": "none"}, "No run is named none"),
        ("irscope/graph", {"run": "none", "stage": "0/0/x"}, "No run is named none"),
        ("irscope/document", {"uri": "irscope:/none/0/0/x.py"}, "No run is named none"),
        ("irscope/document", {"uri": "file:///x.py"}, "is not a stage"),
        ("irscope/run", {"uri": 3}, "'uri' must be a str"),
        ("irscope/kernelsAt", {"uri": "file:///x.py"}, "'line' is missing"),
        ("irscope/what", {}, "irscope/what"),
    ],
)
async def test_a_wrong_request_says_what_is_wrong(
    start_editor: StartEditor, method: str, params: dict[str, Any], message: str
) -> None:
    editor = await start_editor()
    with pytest.raises(Exception) as caught:
        await asyncio.wait_for(editor.client.protocol.send_request_async(method, params), 60)
    assert message in str(caught.value)
    assert "Traceback" not in str(caught.value) and editor.client.messages == []


async def test_a_graph_of_a_stage_that_is_none(start_editor: StartEditor, play: Play, script: Path) -> None:
    play(act(script))
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    run = (await editor.request("irscope/run", uri=editor.open(script), lane="deep")).run
    with pytest.raises(Exception, match="not a printed FX graph"):
        await editor.request("irscope/graph", run=run, stage="0/0/kernel/k0")


async def test_many_nodes_do_not_stop_the_server(start_editor: StartEditor, script: Path, store_path: str) -> None:
    lines = ["class G(torch.nn.Module):", '    def forward(self, x0: "f32[8][1]cpu"):']
    lines += [f'        x{n}: "f32[8][1]cpu" = torch.relu(x{n - 1})' for n in range(1, 6001)]
    with Store(store_path) as store:
        run = store.create_run(str(script), (), Lane.DEEP, digest_of(SCRIPT))
        store.put_compile(run, compile_of(str(script)))
        store.put_stage(run, "0/0", stage("0/0", "dynamo-graph"), "\n".join([*lines, "        return x6000"]), 0)
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    editor = await start_editor(playing=True)
    uri = editor.open(script)
    await editor.until(lambda: editor.lens_refreshes > 1)
    # By hand, since the client of the tests takes seconds to read the answer.
    protocol: Any = editor.client.protocol
    answered = asyncio.Event()
    protocol.structure_message = _skip_graphs(protocol.structure_message, answered)
    protocol.send_request("irscope/graph", {"run": run, "stage": "0/0/dynamo-graph"}, msg_id="graph")
    while not answered.is_set():
        begun = Instant()
        await editor.lenses(uri)
        assert not late(begun, 0.25), "a lens waited for a picture"


def _skip_graphs(structure: Callable[[Any], Any], answered: asyncio.Event) -> Callable[[Any], Any]:
    def skip(data: dict[str, Any]) -> Any:
        if data.get("id") == "graph":
            answered.set()
            return json.loads('{"jsonrpc": "1.0"}', object_hook=lambda d: type("Skipped", (), d))
        return structure(data)

    return skip


async def test_symbols_have_their_value_and_source_wherever_they_are_named(
    start_editor: StartEditor, play: Play, script: Path
) -> None:
    """In the hovers of a node and of a finding, in the graph panel's data and in the cards of the pipeline."""
    symbol = {"symbol": "s77", "hint": "9", "source": "L['x'].size()[0]", "bounds": [2, None], "narrowed": [2, None]}
    text = GRAPH.format(script=str(script)).replace("f32[4,", "f32[s77,")
    compiled = to_json(compile_of(str(script), "0/0", "f", 3))
    stages = [
        [to_json(stage("0/0", "dynamo-graph")), text, _Y],
        [to_json(stage("0/0", "symbols")), "", {"symbols": [symbol]}],
    ]
    named = finding(str(script), 6, 4, 15, message="The size s77 is fixed.")
    play({**act(script), "compiles": [[compiled, stages]], "kernels": [], "findings": [to_json(named)]})
    editor = await start_editor(playing=True, settings={"run": {"onSave": "off"}})
    uri = editor.open(script)
    run = (await editor.request("irscope/run", uri=uri, lane="deep")).run
    told = ("s77", "L['x'].size()[0]", "9 in this compile, 2 to ∞")
    graph = await editor.request("irscope/graph", run=run, stage="0/0/dynamo-graph")
    assert [(one.name, one.source, one.text) for one in graph.symbols] == [told]
    pipeline = await editor.request("irscope/pipeline", run=run)
    assert [(one.name, one.source, one.text) for one in pipeline.stages[0].symbols] == [told]
    said = "- `s77` of `L['x'].size()[0]`: 9 in this compile, 2 to ∞"
    assert said in await editor.hover(uri, 5, 6)
    assert said in await editor.hover(uri_of_stage(run, "0/0/dynamo-graph", "python"), 5, 8)


_Y: dict[str, Any] = {
    "graph": 1, "views": [], "backward": [], "targets": ["torch.relu"], "frames": [], "stacks": [], "modules": [],
    "sources": [], "symbols": {"s77": 9}, "values": [["tensor", "float32", ["s77", 8], [8, 1], "cpu", 288]],
    "nodes": {
        "name": ["y"], "op": ["call_function"], "target": [0], "inputs": [[]], "value": [0], "flops": [None],
        "stack": [-1], "module": [-1], "aten": [-1], "seq": [None], "from": [[]],
    },
}  # fmt: skip
"""What is kept of the node ``y`` of `GRAPH`."""
