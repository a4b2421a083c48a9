"""Graphs that are not parsed: of nodes that the store knows, and of Inductor's schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.ir.graphs import edges_of, parse_graph
from irscope.ir.nodes import facts_of
from irscope.protocol import Compile, CompileOutcome, Lane, Outcome, OutcomeKind, StageRef
from irscope.provenance import Provenance
from irscope.provenance.graph_facts import original_calls
from irscope.store.store import Store
from irscope_server.base.archive import Archive
from irscope_server.base.params import GraphParams, StageParams
from irscope_server.graph.answers import GraphColumns, GraphKernels
from irscope_server.graph.columns import columns
from irscope_server.graph.known import known_columns
from irscope_server.graph.requests import GraphCache, graph, graph_kernels
from irscope_server.panels import places
from irscope_server.stages.tree import Headings, stage_item
from shapes import graph_misfits, misfits

# Names, operations and types as PyTorch prints them; `_tensor_constant0` is no call, and `made` is a pass's;
# the second comment is one of torch 2.15.
TEXT = """\
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[4, 8][8, 1]cpu", arg1_1: "f32[8, 8][8, 1]cpu"):
         # File: /w/a.py:5 in f, code: y = x @ w
        mm: "f32[4, 8][8, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1);  arg1_1 = None

        # No stacktrace found for following nodes
        made: "f32[4, 8][8, 1]cpu" = torch.ops.aten.clone.default(mm)
        _tensor_constant0: "f32[][]cpu" = self._tensor_constant0

        # recompute: MUST_SAVE Backward of forward node: File: /w/a.py:6 in f, code: return y.max(1)
        max_1 = torch.ops.aten.max.dim(made, 1);  made = _tensor_constant0 = None
        getitem: "f32[4][1]cpu" = max_1[0];  max_1 = None
        return (getitem,)
"""


def data_of(**changes: Any) -> dict[str, Any]:
    """What is kept of the nodes of `TEXT`."""
    names = ["arg0_1", "arg1_1", "mm", "made", "_tensor_constant0", "max_1", "getitem", "output"]
    nodes = {
        "name": names,
        "op": ["placeholder"] * 2 + ["call_function"] * 2 + ["get_attr"] + ["call_function"] * 2 + ["output"],
        "target": [0, 1, 2, 3, 4, 5, 6, 7],
        "inputs": [[], [], [0, 1], [2], [], [3], [5], [6]],
        "value": [0, 1, 0, 0, 2, 4, 3, -1],
        "flops": [None, None, 512, None, None, None, None, None],
        "stack": [-1, -1, 0, -1, -1, 0, 0, -1],
        "module": [-1, -1, 0, -1, -1, -1, -1, -1],
        "aten": [-1] * 8,
        "seq": [None] * 8,
        "from": [[], [], [], [0], [], [], [], []],
    }
    return {
        "graph": 3,
        "nodes": {**nodes, **changes},
        "views": [6],
        "backward": [],
        "targets": ["arg0_1", "arg1_1", "aten.mm.default", "aten.clone.default", "_tensor_constant0", "aten.max.dim",
                    "operator.getitem", "output"],
        "values": [["tensor", "torch.float32", [4, 8], [8, 1], "cpu", 128],
                   ["tensor", "torch.float32", [8, 8], [8, 1], "cpu", 256],
                   ["tensor", "torch.float32", [], [], "cpu", 4],
                   ["tensor", "torch.float32", [4], [1], "cpu", 16],
                   ["list", [3, 3]]],
        "frames": [["/w/a.py", 5, "f"]],
        "stacks": [[0]],
        "modules": [["L['self'].inner", "Linear"]],
        "sources": [["mul", "a_pass", "replace", 1, []]],
        "symbols": {},
    }  # fmt: skip


def spelled(got: Mapping[str, Any]) -> dict[str, Any]:
    """The columns with what their numbers lead to."""
    tables = {"op": "ops", "detail": "details", "dtype": "dtypes", "device": "devices", "file": "files"}
    nodes = {
        key: [got[tables[key]][at] if at >= 0 else at for at in column] if key in tables else column
        for key, column in got["nodes"].items()
    }
    for column, table in {"module": "modules", "home": "modules", "original": "originals"}.items():
        nodes[column] = [got[table][at] if at >= 0 else at for at in nodes[column]]
    return {**nodes, "edges": got["edges"]}


def test_a_known_graph_gives_what_parsing_gives() -> None:
    graph = parse_graph(TEXT)
    facts = {fact.name: fact for fact in facts_of(data_of())}
    slow = spelled(columns(graph, edges_of(graph), facts, str))
    known = known_columns(TEXT, data_of(), dict, str)
    assert known is not None
    quick = spelled(known)
    assert quick == slow
    assert misfits(GraphColumns, json.loads(json.dumps(known))) == []
    assert quick["op"][2:7] == ["aten.mm", "aten.clone", "get_attr", "aten.max.dim", "operator.getitem"]
    assert quick["moved"][2] == 128 + 256 + 128 and quick["moved"][6] == 0, "a view touches no memory"
    assert quick["line"][2] == 3 and quick["originLine"][2:7] == [4, -1, -1, 5, 5]


def test_what_an_operation_was_made_from() -> None:
    """The operator before decompositions, and what the user's code calls: along the ancestors in earlier graphs."""
    sources = [["weights", "p", "create", 0, []], ["mul", "p", "create", 5, [0]], ["lost", "p", "create", 9, []]]
    changes = {"aten": [-1, -1, 2, 8, -1, 8, -1, -1], "from": [[], [], [2], [1], [], [0, 1], [], []]}
    data = {**data_of(**changes), "sources": sources}
    data["targets"].append("aten._softmax.default")
    above = {(0, "weights"): "torch.nn.functional.softmax", (0, "lost"): "no"}
    known = known_columns(TEXT, data, dict, str, lambda: above)
    assert known is not None
    found = [known["originals"][at] if at >= 0 else [] for at in known["nodes"]["original"]]
    both = ["aten._softmax", "torch.nn.functional.softmax"]
    assert found == [[], [], [], both, [], both, [], []], "mm was nothing else"
    graph = parse_graph(TEXT)
    facts = {fact.name: fact for fact in facts_of(data)}
    slow = columns(graph, edges_of(graph), facts, str, calls_above=above)
    assert (slow["originals"], slow["nodes"]["original"]) == (known["originals"], known["nodes"]["original"])


def test_ancestors_of_a_damaged_store_are_followed_once() -> None:
    """Each has two parents, which are the same: as a tree they would be more than can be counted."""
    sources: list[Any] = [["a", "p", "create", 0, []]]
    sources += [[f"n{at}", "p", "create", 1, [at, at]] for at in range(200)]
    data = {**data_of(**{"from": [[], [], [200], [], [], [], [], []]}), "sources": sources}
    known = known_columns(TEXT, data, dict, str, lambda: {(0, "a"): "torch.relu"})
    assert known is not None and known["originals"] == [["torch.relu"]]
    facts = facts_of(data)
    assert [*original_calls(facts[2].sources, {(0, "a"): "torch.relu"})] == ["torch.relu"]


def test_what_a_pass_made_is_of_the_module_of_what_it_came_from() -> None:
    asked: list[int] = []

    def above() -> dict[tuple[int, str], tuple[str, str]]:
        asked.append(1)
        return {(1, "mul"): ("L['self'].other", "Other"), (2, "mul"): ("L['self'].wrong", "Wrong")}

    known = known_columns(TEXT, data_of(), above, str)
    assert known is not None
    assert spelled(known)["module"][3] == {"path": ["self", "other"], "type": "Other"}
    assert spelled(known)["module"][4:6] == [-1, -1]
    own = data_of(module=[-1, -1, 0, 0, -1, 0, 0, -1])
    assert known_columns(TEXT, own, above, str) is not None
    assert len(asked) == 1, "where every node has a module, no other graph is read"


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("        getitem", "        item"),
        TEXT.replace("return (getitem,)", "pass"),
        TEXT + TEXT,
        "def call(args):\n    return args\n",
    ],
)
def test_data_that_is_not_of_the_text_is_not_used(text: str) -> None:
    assert known_columns(text, data_of(), dict, str) is None
    assert known_columns(TEXT, {"nodes": []}, dict, str) is None


def row(name: str, kind: str, origins: list[str], reads: list[Any], writes: list[Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "parts": [name], "origins": origins, "reads": reads, "writes": writes,
            "device": "cpu", **more}  # fmt: skip


OP0 = row("op0", "ExternKernelSchedulerNode", ["mm"], [["arg0_1", 128], ["arg1_1", 256]], [["buf0", 128]])
OP1 = row("op1", "SchedulerNode", ["made"], [["buf0", 128]], [["buf1", 128]])
OP2 = row("op2", "SchedulerNode", ["made", "max_1"], [["buf1", 128]], [["buf2", 16]])
OP3 = row("op3", "SchedulerNode", ["mm"], [["arg0_1", 128]], [["buf3", 128]])
PRE = """\
op0: ExternKernelSchedulerNode(ExternKernelOut)
op0.unmet_dependencies = []
op0.met_dependencies = [StarDep(name='arg0_1', mode=None), StarDep(name='arg1_1', mode=None)]
op0.outputs = [
    buf0: ExternKernelOut
    buf0.layout = FixedLayout('cpu', torch.float32, size=[4, 8], stride=[8, 1])
]


op1: SchedulerNode(ComputedBuffer)
op1.unmet_dependencies = [MemoryDep('buf0', c0, {c0: 32})]
op1.met_dependencies = []
buf1_layout = FixedLayout('cpu', torch.bfloat16, size=[4, 8], stride=[8, 1])


op2: SchedulerNode(ComputedBuffer)
op2.unmet_dependencies = [MemoryDep('buf1', c0, {c0: 32})]
op2.met_dependencies = []


op3: SchedulerNode(ComputedBuffer)
op3.unmet_dependencies =
    [   WeakDep(name='buf2', mutating_buf='buf3')]
op3.met_dependencies = [MemoryDep('arg0_1', c0, {c0: 32})]
"""
FUSION = """\
# 1 fused
op1 [made]  +  op2 [made, max_1]: vertical  (score)
# 1 refused
op0 [mm]  |  op1 [made]: it is a library's
"""
CODE = """\
async_compile.wait(globals())
cpp_fused_max_0 = async_compile.cpp_pybinding(['float*'], r'''
extern "C" void kernel() {}
''')

def call(args):
    extern_kernels.mm(arg0_1, arg1_1, out=buf0)
    cpp_fused_max_0(buf0)
    return (buf2, )
"""
STAGES = tuple(
    StageRef(f"0/0/{name}", name, language, 0)
    for name, language in (
        ("post-grad-graph", "python"),
        ("ir-pre-fusion", "python"),
        ("fusion", "plaintext"),
        ("ir-post-fusion", "python"),
        ("output-code", "python"),
    )
)


@pytest.fixture
def server(tmp_path: Path) -> Any:
    path = str(tmp_path / "runs.db")
    fused = {**row("op1_op2", "FusedSchedulerNode", ["made", "max_1"], [], []), "parts": ["op1", "op2"]}
    pair = {"first": {"nodes": ["op1"]}, "second": {"nodes": ["op2"]}, "kind": "vertical", "score": "9"}
    refused = {"first": {"nodes": ["op0"]}, "second": {"nodes": ["op1"]}, "kind": "vertical", "reason": "no"}
    post = PRE.replace("op1: Sch", "op1_op2: FusedSchedulerNode(a,b)\nop1_op2.snodes[0] =\nop1: Sch")
    data = {
        "post-grad-graph": data_of(),
        "ir-pre-fusion": {"nodes": [OP0, OP1, OP2, OP3]},
        "fusion": {"fused": [pair], "refused": [refused]},
        "ir-post-fusion": {"nodes": [OP0, fused, OP3]},
        "output-code": {
            "calls": [
                {"kernel": "extern_kernels.mm", "handle": 1, "nodes": ["op0"]},
                {"kernel": "cpp_fused_max_0", "handle": 2, "nodes": ["op1", "op2"]},
            ]
        },
    }
    texts = {
        "post-grad-graph": TEXT,
        "ir-pre-fusion": PRE,
        "fusion": FUSION,
        "ir-post-fusion": post,
        "output-code": CODE,
    }
    with Store(path) as store:
        run = store.create_run("/w/a.py", (), Lane.DEEP, "")
        store.put_compile(run, Compile("0/0", "f", "/w/a.py", 3, CompileOutcome.COMPILED, 0, 3, 1.0, STAGES))
        for place, one in enumerate(STAGES):
            store.put_stage(run, "0/0", one, texts[one.name], place)
            store.put_stage_data(run, one.id, data[one.name])
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    return SimpleNamespace(archive=Archive(path), graphs=GraphCache(), uri_of=str, run=run)


async def drawn(server: Any, stage: str) -> dict[str, Any]:
    got = dict(json.loads((await graph(server, GraphParams(server.run, stage))).json))
    assert graph_misfits(got) == []
    return got


async def test_a_schedule_is_a_graph_of_what_waits_for_what(server: Any) -> None:
    got = await drawn(server, "0/0/ir-pre-fusion")
    nodes = got["nodes"]
    names = nodes["name"]
    assert names == ["arg0_1", "arg1_1", "op0", "op1", "op2", "op3"], "what nobody writes stands first"
    edges = [(names[a], names[b]) for a, b in zip(got["edges"][::2], got["edges"][1::2], strict=True)]
    assert sorted(edges) == [
        ("arg0_1", "op0"), ("arg0_1", "op3"), ("arg1_1", "op0"), ("op0", "op1"), ("op1", "op2"), ("op2", "op3"),
    ]  # fmt: skip
    assert [got["ops"][at] for at in nodes["op"][2:]] == ["aten.mm", "aten.clone", "aten.max.dim", "aten.mm"]
    details = [got["details"][at] if at >= 0 else "" for at in nodes["detail"]]
    assert details[0] == "f32[4, 8][8, 1]cpu", "of an input as the post-grad graph has it"
    assert details[2:5] == ["f32[4, 8][8, 1]cpu", "bf16[4, 8][8, 1]cpu", ""]
    assert (nodes["bytes"][2], nodes["moved"][2], nodes["flops"][2]) == (128, 512, 512)
    assert nodes["flops"][5] is None, "what is no library's call has no formula"
    assert nodes["line"][2:] == [0, 9, 15, 20]
    assert nodes["originLine"][4] == 5 and nodes["places"][4] == [], "what a pass made has no line to add"
    assert nodes["spans"][2:4] == [[0, 8], [9, 14]], "up to the next description"
    assert nodes["group"] == [-1] * 6 and got["groups"] == []


@pytest.mark.parametrize(
    ("stage", "line", "spans"),
    [("fusion", 1, [1, 1, 3, 3]), ("ir-post-fusion", 11, [11, 16, 9, 10])],
)
async def test_what_was_fused_is_a_group(server: Any, stage: str, line: int, spans: list[int]) -> None:
    got = await drawn(server, f"0/0/{stage}")
    nodes = got["nodes"]
    assert nodes["name"] == ["arg0_1", "arg1_1", "op0", "op1", "op2", "op3"], "the nodes are those before fusion"
    assert nodes["group"] == [-1, -1, -1, 0, 0, -1]
    assert got["groups"] == [{"name": "op1_op2", "type": "FusedSchedulerNode"}]
    assert nodes["line"][3] == line and nodes["spans"][3] == spans, "what is said of it, and of the fused node"
    assert got["decisions"] == [
        {"first": [3], "second": [4], "fused": True, "kind": "vertical", "why": "9"},
        {"first": [2], "second": [3], "fused": False, "kind": "vertical", "why": "no"},
    ]
    assert got["title"].endswith("of f (0/0)") and f"/0/0/{stage}." in got["stageUri"]
    kernels = json.loads((await graph_kernels(server, StageParams(server.run, f"0/0/{stage}"))).json)
    assert misfits(GraphKernels, kernels) == []
    assert [one["name"] for one in kernels["calls"]] == ["extern_kernels.mm", "cpp_fused_max_0"]
    assert kernels["nodes"] == [[], [], [0], [1], [1], []]


async def test_a_schedule_without_data_says_so(server: Any) -> None:
    with Store(server.archive.path) as store:
        for name in ("ir-pre-fusion", "ir-post-fusion"):
            store.put_stage_data(server.run, f"0/0/{name}", {"nodes": []})
    with pytest.raises(ValueError, match="only the text of this schedule's nodes was kept"):
        await graph(server, GraphParams(server.run, "0/0/fusion"))


def test_what_can_be_drawn() -> None:
    items = {one.name: stage_item("r", one, Headings(STAGES)).is_graph for one in STAGES}
    assert [name for name, is_graph in items.items() if not is_graph] == ["output-code"]


@pytest.mark.parametrize(
    "changes",
    [{"sources": [["mul", "a_pass", "replace", 1, [0]]]}, {"values": [["list", [0]]] * 5}],
    ids=lambda changes: next(iter(changes)),
)
async def test_data_that_goes_in_a_circle_is_not_followed(server: Any, changes: dict[str, Any]) -> None:
    """Of a damaged store, or one from elsewhere: the text alone is shown."""
    with Store(server.archive.path) as store:
        store.put_stage_data(server.run, "0/0/post-grad-graph", {**data_of(), **changes})
    assert (await drawn(server, "0/0/post-grad-graph"))["nodes"]["name"][2:4] == ["mm", "made"]


async def test_steps_that_follow_each_other_read_the_stages_once(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    texts: list[str] = []
    original, reading = Provenance, Store.stage_text

    def counted(*args: Any) -> Any:
        made.append(args)
        return original(*args)

    def read(self: Store, run: str, stage: str) -> str:
        texts.append(stage)
        return reading(self, run, stage)

    monkeypatch.setattr(places, "Provenance", counted)
    monkeypatch.setattr(Store, "stage_text", read)
    for line in (3, 6):
        answer = await places.step(server, places.StepParams(server.run, "0/0/post-grad-graph", line=line))
        assert json.loads(answer.json)["exact"]
    assert len(made) == 1
    assert len(texts) == len(set(texts)), "not even after the store was closed and opened"
