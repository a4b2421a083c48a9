"""Following a line by what was kept of a large run gives what following it through all the stages gives."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile
from irscope.ir.nodes import NodeFacts, Source, Value
from irscope.protocol import Lane, StageRef
from irscope.provenance import Provenance, trails
from irscope.provenance.elements import Items, items_of
from irscope.provenance.lines import LineTrail, trail_of
from irscope.provenance.links import Links, link
from irscope.provenance.replaced import add_replaced
from irscope.store.store import Store
from test_graphs import COND
from test_provenance_reading import MODEL, stages

LINES = (4, 8, 99)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(trails, "_LARGE", 0)
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run(MODEL, [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile(id="0/0", file=MODEL))
        for position, (id, name, text, data) in enumerate(stages()):
            store.put_stage(run, "0/0", StageRef(f"0/0/{id}", name, "", 0), text, position, data)
        yield store


def answers(store: Store) -> list[LineTrail]:
    report = store.report(store.find_run())
    return [trail_of(store, report, MODEL, line) for line in LINES]


def test_what_was_kept_gives_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = answers(store)
    run = store.find_run()
    assert any(step.places for trail in before for step in trail.steps)
    assert any(place.fate for trail in before for step in trail.steps for place in step.places)
    trails.keep_trails(store, run)
    store.tidy(run)
    with monkeypatch.context() as patch:
        patch.setattr(Provenance, "below", lambda *_: pytest.fail("all stages were read"))
        assert answers(store) == before


def test_a_line_in_the_body_of_a_higher_order_operator(store: Store) -> None:
    run = store.find_run()
    store.put_stage(run, "0/0", StageRef("0/0/post-grad-graph", "post-grad-graph", "", 0), COND, 50)
    trail = trail_of(store, store.report(run), "/w/a.py", 6)
    assert [(step.stage, [node.name for node in step.nodes]) for step in trail.steps] == [
        ("0/0/post-grad-graph", ["true_graph_0.sin", "true_graph_0.inner_0"])
    ]


def test_it_goes_when_a_stage_is_written_again(store: Store) -> None:
    run = store.find_run()
    trails.keep_trails(store, run)
    kernel = "0/0/kernel/cpp_fused_le_mul_relu_0/assembly"
    store.put_stage(run, "0/0", StageRef(kernel, "assembly", "asm", 0), "ret\n", 99)
    assert store.has_trails(run)  # what is made of a kernel when somebody asks is no part of it
    text = store.stage_text(run, "0/0/joint-graph").replace("mul_1", "product")
    store.put_stage(run, "0/0", StageRef("0/0/joint-graph", "joint-graph", "python", 0), text, 3)
    assert not store.has_trails(run)
    names = {place.name for trail in answers(store) for step in trail.steps for place in step.places}
    assert "product" in names


@pytest.mark.parametrize("kept", [None, [], {}, {"version": 0}, {"version": 1}, {"version": 1, "places": [[MODEL, 4]]}])
def test_what_is_no_trails_is_passed_over(store: Store, kept: Any) -> None:
    before = answers(store)
    store.put_trails(store.find_run(), "0/0", kept)
    assert answers(store) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"stages": [["0/9/joint-graph", 1]]},
        {"lines": ["one"] * 99},
        {"stages": [["0/0/joint-graph", 10**9]]},
        {"up": [10**9] * 99},
        {"fates": [[0, 10**9]]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_damaged_trails_are_passed_over(store: Store, changes: dict[str, Any]) -> None:
    run, before = store.find_run(), answers(store)
    trails.keep_trails(store, run)
    store.put_trails(run, "0/0", {**store.trails(run)["0/0"], **changes})
    assert answers(store) == before


@pytest.mark.parametrize("text", ["[[", "[" * 100_000], ids=["cut off", "deep"])
def test_what_is_no_json_is_passed_over(store: Store, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = answers(store)
    trails.keep_trails(store, store.find_run())
    with monkeypatch.context() as patch:
        patch.setattr(Store, "_text", lambda *_: text)
        assert store.trails(store.find_run()) == {}
    assert answers(store) == before


def test_a_store_of_version_5_is_read_on(store: Store) -> None:
    before = answers(store)
    path = store.path
    store.close()
    with sqlite3.connect(path) as db:
        db.executescript(
            "ALTER TABLE runs DROP COLUMN pipeline; ALTER TABLE runs DROP COLUMN made; DROP TABLE trails;"
            " DROP TABLE comparisons; DROP TABLE profiles; DROP TABLE places; PRAGMA user_version = 5"
        )
    db.close()
    with Store(path) as again:
        trails.keep_trails(again, again.find_run())
        assert again.has_trails(again.find_run())
        assert answers(again) == before


def test_small_runs_keep_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    trails.keep_trails(store, store.find_run())
    assert not store.has_trails(store.find_run())


def test_only_so_many_nodes_operations_first(store: Store) -> None:
    report = store.report(store.find_run())
    whole, part = trail_of(store, report, MODEL, 8), trail_of(store, report, MODEL, 8, most=1)
    assert any(len(step.nodes) > 1 for step in whole.steps)
    for long, short in zip(whole.steps, part.steps, strict=True):
        assert short.places == long.places
        assert len(short.nodes) == min(1, len(long.nodes))
        assert not short.nodes or short.nodes[0].op != "placeholder"


def test_a_back_end_that_runs_the_graph_as_it_is(tmp_path: Path) -> None:
    with Store(str(tmp_path / "eager.db")) as store:
        run = store.create_run(MODEL, [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile(id="0/0", file=MODEL))
        text = next(text for id, _, text, _ in stages() if id == "dynamo-graph")
        store.put_stage(run, "0/0", StageRef("0/0/dynamo-graph", "dynamo-graph", "python", 0), text, 1)
        (step,) = trail_of(store, store.report(run), MODEL, 8).steps
        assert [place.fate.partition(":")[0] for place in step.places] == ["run as is"]


@pytest.mark.parametrize(
    ("graph", "kernel", "fate"), [("relax-lowered", "tir", ""), ("torchscript-optimized", "", "run as is")]
)
def test_a_graph_that_calls_the_kernels_itself(tmp_path: Path, graph: str, kernel: str, fate: str) -> None:
    """What it computes for nobody, such as the release of memory, runs; and a call of a kernel is not removed."""
    text = next(text for id, _, text, _ in stages() if id == "dynamo-graph")
    text = text.replace("        return", '        kill: "f32[4]" = torch.ops.relax.vm.kill_object(y)\n        return')
    with Store(str(tmp_path / "tvm.db")) as store:
        run = store.create_run(MODEL, [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile(id="0/0", file=MODEL))
        store.put_stage(run, "0/0", StageRef(f"0/0/{graph}", graph, "python", 0), text, 1)
        if kernel:
            ref = StageRef("0/0/kernel/relu", kernel, "python", 0)
            store.put_stage(run, "0/0", ref, "def relu(): pass\n", 2, {"lines": [(1, "y")]})
        thread = Provenance(store, store.report(run), ends=False)
        elements = {one.name: one for one in thread.elements(f"0/0/{graph}")}
        assert {thread.fate(elements[name]).partition(":")[0] for name in ("y", "mul", "kill")} == {fate}


def test_a_long_graph_that_could_not_be_lowered(store: Store) -> None:
    """Each node became nothing because what needed it became nothing, down to what the graph returns."""
    count = 3000
    names = ["primals_1", *(f"sin_{number}" for number in range(count)), "output"]
    rows = [f'{name}: "f32[4]" = torch.ops.aten.sin.default({above})' for above, name in pairwise(names[:-1])]
    text = "class M(torch.nn.Module):\n    def forward(self, primals_1):\n" + "".join(
        f"        {row}\n" for row in rows
    )
    text += f"        return ({names[-2]},)\n"
    every = len(names)
    data = {
        "graph": 1,
        "nodes": {
            "name": names, "op": ["placeholder", *["call_function"] * count, "output"],
            "target": [0, *[1] * count, 2], "inputs": [[], *([number] for number in range(every - 1))],
            "value": [-1] * every, "flops": [None] * every, "stack": [-1] * every, "module": [-1] * every,
            "aten": [-1] * every, "seq": [None] * every, "from": [[]] * every,
        },
        "views": [], "backward": [], "targets": ["primals_1", "torch.ops.aten.sin.default", "output"], "values": [],
        "frames": [], "stacks": [], "modules": [], "sources": [], "symbols": {}, "subgraphs": {},
    }  # fmt: skip
    run = store.create_run(MODEL, [], Lane.DEEP, "digest")
    store.put_compile(run, a_compile(id="0/0", file=MODEL))
    store.put_stage(run, "0/0", StageRef("0/0/post-grad-graph", "post-grad-graph", "python", 0), text, 1, data)
    trails.keep_trails(store, run)
    kept = store.trails(run)["0/0"]
    end = "needed it, and what that was for, down to output: what the graph returns"
    fates = {kept["names"][number]: kept["words"][why] for number, why in kept["fates"]}
    assert fates["sin_0"] == f"only sin_1 {end}" and fates["sin_2998"] == f"only sin_2999 {end}"
    assert fates["sin_2999"] == "only output needed it: what the graph returns"
    assert fates["output"] == "what the graph returns"


# --- what a pass replaced ---------------------------------------------------------------------------------------------

BEFORE = """\
class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[4]", b: "f32[4]"):
        mm: "f32[4]" = torch.ops.aten.mm.default(a, b)
        add: "f32[4]" = torch.ops.aten.add.Tensor(mm, b);  mm = None
        kept: "f32[4]" = torch.ops.aten.relu.default(add);  add = None
        mm_1: "f32[4]" = torch.ops.aten.mm.default(kept, b)
        add_1: "f32[4]" = torch.ops.aten.add.Tensor(mm_1, b);  mm_1 = None
        return (add_1,)
"""


def version(
    added: frozenset[str], removed: frozenset[str], changed: frozenset[str] = frozenset()
) -> dict[str, frozenset[str]]:
    return {"added": added, "removed": removed, "changed": changed}


def test_what_a_pass_made_of_several_came_from_all_of_them() -> None:
    graph = items_of(StageRef("g", "joint-graph", "python", 0), BEFORE, None)
    removed = frozenset({"mm", "add", "mm_1", "add_1"})
    links: dict[str, tuple[str, ...]] = {"addmm": ("add",), "addmm_1": ("add_1",), "kept": ("kept",)}
    add_replaced(links, graph, [(version(frozenset({"addmm", "addmm_1"}), removed), ())])
    assert {name: set(parents) for name, parents in links.items()} == {
        "addmm": {"mm", "add"}, "addmm_1": {"mm_1", "add_1"}, "kept": {"kept"},
    }  # fmt: skip


def a_new_node(name: str, inputs: tuple[str, ...] = (), sources: tuple[Source, ...] = ()) -> NodeFacts:
    untold = (None, None, None, False, False, (), (), "", None)
    return NodeFacts(name, 0, "call_function", name, Value("other"), inputs, (), *untold, sources)


def test_what_a_pass_made_of_what_a_pass_had_made_came_from_what_that_stands_for() -> None:
    """An integer convolution takes the place of one, then of one with a ``relu`` behind it, and is lowered last: PyTorch
    names the node above from which the replaced one came, and nothing else that was replaced."""
    text = """
class GraphModule(torch.nn.Module):
    def forward(self, a: "u8[4]"):
        dequantize: "f32[4]" = torch.ops.quantized_decomposed.dequantize_per_tensor.default(a, 1.0, 0, 0, 255, torch.uint8)
        convolution: "f32[4]" = torch.ops.aten.convolution.default(dequantize);  dequantize = None
        relu: "f32[4]" = torch.ops.aten.relu.default(convolution);  convolution = None
        mean: "f32[]" = torch.ops.aten.mean.default(relu);  relu = None
        return (mean,)
"""
    graph = items_of(StageRef("g", "inference-graph", "python", 0), text, None)
    links: dict[str, tuple[str, ...]] = {"lowered": ("mean",), "mean": ("mean",)}  # the first is guessed, by the line
    relu, second = Source("relu", "", "", 7, ()), Source("second", "", "", 8, ())
    ours = graph.by_name["relu"]._replace(facts=a_new_node("relu", ("convolution",), (relu,)))
    graph = Items.of([*(one for one in graph.items if one.element.name != "relu"), ours], 1)
    add_replaced(
        links,
        graph,
        [
            (
                version(frozenset({"first"}), frozenset({"dequantize", "convolution"}), frozenset({"relu"})),
                (a_new_node("first"), a_new_node("relu", ("first",), (relu,))),
            ),
            (version(frozenset({"second"}), frozenset({"first", "relu"})), (a_new_node("second", (), (relu,)),)),
            (version(frozenset({"lowered"}), frozenset({"second"})), (a_new_node("lowered", (), (second,)),)),
        ],
        guessed={"lowered"},
    )
    assert set(links["lowered"]) == {"dequantize", "convolution", "relu"}
    assert links["mean"] == ("mean",)
    told: dict[str, tuple[str, ...]] = {"fused": ("convolution", "mean")}  # a compiler's own table knows more
    passed = version(frozenset({"fused"}), frozenset({"relu"}))
    add_replaced(told, graph, [(passed, (a_new_node("fused", (), (relu,)),))])
    assert set(told["fused"]) == {"convolution", "mean", "relu"}


def test_a_batch_norm_in_the_weights_of_a_convolution_became_this_one() -> None:
    conv = 'conv: "f32[4]" = torch.ops.aten.conv2d.default(x, w);  w = None'
    norm = 'norm: "f32[4]" = torch.ops.aten.batch_norm.default(conv, n, n, n, n, False, 0.1, 1e-05, True);  n = None'
    relu = 'relu: "f32[4]" = torch.ops.aten.relu.default({})'

    def links_to(*lines: str) -> Links:
        above, below = (StageRef(f"0/0/{name}", name, "python", 0) for name in ("pt2e-exported", "pt2e-observed"))
        before = items_of(above, a_graph(conv, norm, relu.format("norm")), None)
        return link(above, before, below, items_of(below, a_graph(*lines), None))

    assert links_to(conv, relu.format("conv")) == {
        "x": ("x",), "w": ("w",), "n": ("n",), "conv": ("conv", "norm"), "relu": ("relu",), "output": ("output",),
    }  # fmt: skip
    assert links_to(conv, norm, relu.format("norm"))["conv"] == ("conv",)
    assert not any("norm" in names for names in links_to(relu.format("x")).values())  # it is nowhere


def a_graph(*rows: str) -> str:
    head = ("class G(torch.nn.Module):", "    def forward(self, x, w, n):")
    return "\n".join([*head, *(f"        {one}" for one in rows), "        return (relu,)", ""])


def test_a_graph_that_was_made_anew_tells_nothing() -> None:
    rows = [f'        n{i}: "f32[4]" = torch.ops.aten.relu.default({f"n{i - 1}" if i else "a"})' for i in range(100)]
    text = (
        'class G(torch.nn.Module):\n    def forward(self, a: "f32[4]"):\n'
        + "\n".join(rows)
        + "\n        return (n99,)\n"
    )
    graph = items_of(StageRef("g", "joint-graph", "python", 0), text, None)
    links: dict[str, tuple[str, ...]] = {"new": ("n99",)}
    removed = frozenset(f"n{i}" for i in range(100))
    add_replaced(links, graph, [(version(frozenset({"new"}), removed), ())])
    assert links == {"new": ("n99",)}
