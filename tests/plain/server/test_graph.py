"""A graph as the panel gets it: its columns, what a pass changed, and the kernels of its nodes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.ir.graphs import edges_of, parse_graph
from irscope.ir.nodes import NodeFacts, Source, Value
from irscope.ir.roofline import THIS_CPU, Peaks
from irscope.profiling.profile import CudaGraphs, Profile
from irscope.protocol import Compile, CompileOutcome, Kernel, Lane, Outcome, OutcomeKind, StageRef, to_json
from irscope.store.store import Store
from irscope_server.base.archive import Archive
from irscope_server.base.params import GraphParams, StageParams
from irscope_server.graph.answers import GraphKernels
from irscope_server.graph.columns import ADDED, CHANGED, REMOVED, SAME, columns, compared
from irscope_server.graph.requests import GraphCache, graph, graph_kernels, versions_of
from irscope_server.graph.targets import cpu_of, targets
from made import GRAPH
from shapes import graph_misfits, misfits

TEXT = GRAPH.format(script="/w/a.py")


def uri_of(path: str) -> str:
    return f"file://{path}"


def facts(name: str, **changes: Any) -> NodeFacts:
    known: dict[str, Any] = {
        "name": name, "line": 0, "op": "call_function", "target": "", "value": Value(), "inputs": (), "users": (),
        "flops": None, "read": None, "written": None, "is_view": False, "is_backward": False, "stack": (),
        "modules": (), "original_aten": "", "seq_nr": None, "sources": (),
    }  # fmt: skip
    return NodeFacts(**{**known, **changes})


def test_columns_of_a_printed_graph() -> None:
    graph = parse_graph(TEXT)
    got = columns(graph, edges_of(graph), {}, uri_of)
    nodes = got["nodes"]
    assert nodes["name"] == ["L_x_", "y", "sin", "add", "output"]
    assert nodes["kind"] == [0, 2, 2, 2, 3]
    assert [got["ops"][op] for op in nodes["op"]] == ["placeholder", "torch.relu", "sin", "operator.add", "output"]
    assert (nodes["line"][1], got["files"], nodes["originLine"][1]) == (5, ["file:///w/a.py"], 4)
    assert nodes["file"] == [-1, 0, 0, 0, -1]
    assert (got["dtypes"], got["devices"], nodes["bytes"][1]) == (["f32"], ["cpu"], 4 * 8 * 4)
    assert got["edges"] == [0, 1, 1, 2, 2, 3, 3, 4]
    assert {len(column) for column in dict[str, Any](nodes).values()} == {5}, "every column has an entry for every node"


def test_what_is_known_of_a_node() -> None:
    graph = parse_graph(TEXT)
    known = {
        "y": facts("y", modules=(("L['self'].layers[0].norm", "LayerNorm"),), read=128, written=128, flops=1024),
        "sin": facts("sin", stack=()),
        "add": facts("add", stack=(object(),)),
    }
    got = columns(graph, edges_of(graph), known, uri_of)
    assert got["modules"] == [{"path": ["self", "layers", "0", "norm"], "type": "LayerNorm"}]
    assert got["nodes"]["module"] == [-1, 0, -1, -1, -1]
    assert got["nodes"]["home"] == [-1, 0, 0, -1, -1], (
        "what a pass made is drawn with what it uses, the user's own outside"
    )
    assert got["nodes"]["moved"][1] == 256 and got["nodes"]["flops"][1] == 1024


def test_devices_to_estimate_for_have_rates_by_printed_dtype() -> None:
    by_name = {target.name: target for target in targets(Peaks("mine", 1.0, {"float32": 2.0}))}
    h100, mine = by_name["NVIDIA H100 SXM"], by_name["mine"]
    assert next(iter(by_name)) == "mine" and (mine.bandwidth, mine.rates[0].flops) == (1.0, 2.0)
    assert h100.bandwidth == 3.35e12
    assert {rate.dtype: rate.flops for rate in h100.rates}["bf16"] == 989.4e12
    assert all("f32" in {rate.dtype for rate in target.rates} for target in by_name.values()), "that of all others"


def test_the_bytes_that_are_known_count_more_than_what_the_text_says() -> None:
    """Of sizes that are symbols, too: the facts have hints in place of them."""
    graph = parse_graph(TEXT)
    known = {"y": facts("y", value=Value(kind="tensor", bytes=999)), "sin": facts("sin", value=Value(bytes=5))}
    assert columns(graph, edges_of(graph), known, uri_of)["nodes"]["bytes"][1:3] == [999, 4 * 8 * 4]


BEFORE = TEXT
AFTER = (
    TEXT.replace("sin + 1;", "cos + 1;  cos = None")
    .replace("sin = None", "")
    .replace('sin: "f32[4, 8][8, 1]cpu" = y.sin();', 'cos: "f32[4, 8][8, 1]cpu" = y.cos();')
)


def test_two_versions_in_one() -> None:
    both = compared(BEFORE, AFTER)
    states = dict(zip([node.name for node in both.graph.nodes], both.states, strict=True))
    assert states == {"L_x_": SAME, "y": SAME, "sin": REMOVED, "cos": ADDED, "add": CHANGED, "output": SAME}
    names = [node.name for node in both.graph.nodes]
    assert names.index("y") < names.index("sin"), "what is gone stands behind what it followed"
    assert [(names[a], names[b]) for a, b in both.edges] == [
        ("L_x_", "y"),
        ("y", "cos"),
        ("cos", "add"),
        ("add", "output"),
        ("y", "sin"),
    ]


def test_what_is_gone_from_the_beginning_comes_first() -> None:
    both = compared(BEFORE.replace("L_x_:", 'L_w_: "f32[8]", L_x_:'), BEFORE)
    assert both.graph.nodes[0].name == "L_w_" and both.states[0] == REMOVED
    assert len(both.graph.nodes) == 6


def stage(identity: str, name: str, passed: str = "") -> StageRef:
    return StageRef(identity, name, "python", 0, passed)


COMPILE = Compile(
    "0/0", "f", "/w/a.py", 3, CompileOutcome.COMPILED, 0, 3, 1.0,
    (
        stage("0/0/dynamo-graph", "dynamo-graph"),
        stage("0/0/joint-graph", "joint-graph"),
        stage("0/0/joint-graph/01-fold", "joint-graph", "fold"),
        stage("0/0/forward-graph", "forward-graph"),
        stage("0/0/post-grad-graph/00-tidy", "post-grad-graph", "tidy"),
        stage("0/0/post-grad-graph", "post-grad-graph"),
        stage("0/0/backward-graph", "backward-graph"),
        stage("0/0/output-code", "output-code"),
    ),
)  # fmt: skip


def test_versions_stand_in_the_order_in_which_they_came_to_be() -> None:
    """The joint graph is printed before its passes, the post-grad graph after them."""
    assert [(one.stage, one.before) for one in versions_of(COMPILE)] == [
        ("0/0/dynamo-graph", ""),
        ("0/0/joint-graph", "0/0/dynamo-graph"),
        ("0/0/joint-graph/01-fold", "0/0/joint-graph"),
        ("0/0/forward-graph", "0/0/joint-graph/01-fold"),
        ("0/0/post-grad-graph/00-tidy", "0/0/forward-graph"),
        ("0/0/post-grad-graph", "0/0/post-grad-graph/00-tidy"),
        ("0/0/backward-graph", "0/0/joint-graph/01-fold"),
    ]


def test_without_a_backward_the_passes_of_the_joint_graph_follow_the_inference_graph() -> None:
    stages = (
        stage("0/0/dynamo-graph", "dynamo-graph"),
        stage("0/0/joint-graph/00-start", "joint-graph", "start"),
        stage("0/0/inference-graph", "inference-graph"),
        stage("0/0/joint-graph/01-fold", "joint-graph", "fold"),
        stage("0/0/post-grad-graph", "post-grad-graph"),
    )
    assert [one.stage.partition("0/0/")[2] for one in versions_of(dataclasses.replace(COMPILE, stages=stages))] == [
        "dynamo-graph",
        "inference-graph",
        "joint-graph/00-start",
        "joint-graph/01-fold",
        "post-grad-graph",
    ]


def data(graph: int, names: list[str], modules: list[str], sources: list[Any] | None = None) -> dict[str, Any]:
    some = len(names)
    return {
        "graph": graph, "views": [], "backward": [], "targets": ["aten.sin"], "values": [], "frames": [], "stacks": [],
        "modules": [[path, "M"] for path in modules], "sources": sources or [], "symbols": {},
        "nodes": {
            "name": names, "op": ["call_function"] * some, "target": [0] * some, "inputs": [[]] * some, "value": [-1] * some,
            "flops": [None] * some, "stack": [-1] * some, "module": [*range(len(modules)), *([-1] * (some - len(modules)))],
            "aten": [-1] * some, "seq": [None] * some, "from": [[0] if sources and at == 0 else [] for at in range(some)],
        },
    }  # fmt: skip


CODE = """\
async_compile.wait(globals())
cpp_fused_sin_0 = async_compile.cpp_pybinding(['float*'], r'''
extern "C" void kernel() {}
''')

def call(args):
    # Topologically Sorted Source Nodes: [sin], Original ATen: []
    cpp_fused_sin_0(buf0)
    return (buf0, )
"""


@pytest.fixture
def server(tmp_path: Path) -> Any:
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("/w/a.py", (), Lane.DEEP, "")
        store.put_compile(run, COMPILE)
        for place, one in enumerate(COMPILE.stages):
            text = CODE if one.name == "output-code" else AFTER if one.passed else BEFORE
            store.put_stage(run, "0/0", one, text, place)
        store.put_stage_data(run, "0/0/joint-graph", data(7, ["sin", "y"], ["L['self'].inner"]))
        source = ["sin", "some_pass", "replace", 7, []]
        store.put_stage_data(run, "0/0/joint-graph/01-fold", {"pass": "fold", "new": data(8, ["cos"], [], [source])})
        store.put_stage_data(
            run, "0/0/output-code", {"calls": [{"kernel": "cpp_fused_sin_0", "handle": 1, "nodes": ["op0"]}]}
        )
        store.put_kernel(run, Kernel("cpp_fused_sin_0", "cpp", "0/0", "0/0/output-code", ()))
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    return SimpleNamespace(archive=Archive(path), graphs=GraphCache(), uri_of=uri_of, run=run)


def test_the_cpu_is_the_one_that_a_profile_of_the_script_or_of_another_one_measured(tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/w/other.py", (), Lane.DEEP, "")
        assert cpu_of(store, "/w/a.py") is None
        store.put_profile(
            run, to_json(Profile("r", 1, 0.0, 1.0, 0.0, (), (), (), CudaGraphs(0, 0), cpu_peaks=(2.0, 3.0)))
        )
        assert cpu_of(store, "/w/a.py") == Peaks(THIS_CPU, 2.0, {"float32": 3.0})


async def test_what_a_pass_did(server: Any) -> None:
    params = GraphParams(server.run, "0/0/joint-graph/01-fold", "0/0/joint-graph")
    answer = await graph(server, params)
    got = json.loads(answer.json)
    assert got["title"] == "Joint graph (forward and backward) after fold of f (0/0)"
    assert got["stageUri"].endswith("/0/0/joint-graph/01-fold.py") and got["beforeUri"].endswith("/joint-graph.py")
    module = dict(zip(got["nodes"]["name"], got["nodes"]["module"], strict=True))
    assert got["modules"] == [{"path": ["self", "inner"], "type": "M"}]
    assert module["cos"] == module["sin"] == 0, "what a pass made is of the module of what it came from"
    assert sorted(got["nodes"]["state"]) == [SAME, SAME, SAME, ADDED, REMOVED, CHANGED]
    assert graph_misfits(got) == []
    assert await graph(server, params) is answer, "the same answer once more is not made anew"


async def test_kernels_stand_beside_the_nodes(server: Any) -> None:
    """One list for each node of the text, whatever is known of them; test_worker.py has real ones."""
    got = json.loads((await graph_kernels(server, StageParams(server.run, "0/0/post-grad-graph"))).json)
    assert misfits(GraphKernels, got) == []
    assert got == {"calls": [], "nodes": [[], [], [], [], []]}


async def test_what_is_no_graph_or_not_there_says_so(server: Any) -> None:
    with pytest.raises(ValueError, match="not a printed FX graph"):
        await graph(server, GraphParams(server.run, "0/0/output-code"))
    with pytest.raises(LookupError, match="no stage 0/9/x"):
        await graph(server, GraphParams(server.run, "0/9/x"))
    with pytest.raises(LookupError, match="no stage 0/9/x"):
        await graph(server, GraphParams(server.run, "0/0/joint-graph", "0/9/x"))


def test_sources_are_followed_by_graph_and_name() -> None:
    """Nodes of different graphs share names; only the graph's number tells them apart."""
    from irscope.provenance.graph_facts import _module_of

    modules = {(1, "mul"): ("a", "A"), (2, "mul"): ("b", "B")}
    assert _module_of((Source("mul", "p", "create", 2, ()),), modules) == ("b", "B")
    assert _module_of((Source("mul", "p", "create", 3, (Source("mul", "q", "create", 1, ()),)),), modules) == ("a", "A")
    assert _module_of((Source("mul", "p", "create", 3, ()),), modules) is None
