"""Numbers on paths add up at each level, and a kernel is divided among its lines and modules."""

from __future__ import annotations

import dataclasses
import gzip
import io
import re
from pathlib import Path as FilePath
from typing import Any

import pytest
from facts import a_compile, a_kernel, an_outcome
from irscope.cli.measured import profile_lines
from irscope.cli.text import Paint
from irscope.driver.opened_profile import opened
from irscope.ir.kineto import read_events
from irscope.ir.nodes import NO_FACTS, Frame, NodeFacts, Value
from irscope.ir.roofline import Peaks, kernel_costs
from irscope.measures.compiled import compiled_tree
from irscope.measures.splitting import parts_of, shares_of
from irscope.measures.tree import Measure, Path, PathPart, PathTree, chained, folded, tree_of
from irscope.profiling.joining import Joined
from irscope.profiling.measuring import profile_of
from irscope.profiling.profile import MeasuredKernel, MeasuredLine, Profile, bound_text
from irscope.profiling.timeline import timeline
from irscope.protocol import Origin, Report, Resumed, from_json, to_json
from irscope.provenance.kernel_paths import _with_modules
from irscope.store.store import Store

RECORDED = FilePath(__file__).parent / "profiles"
MEASURES = (Measure("time", "seconds"), Measure("moved", "bytes"))
PEAKS = Peaks("made up", 100.0, {"float32": 1000.0})


def path(*names: str) -> Path:
    return tuple(PathPart(name, name.partition(".")[0].title()) for name in names)


def adds_up(tree: PathTree) -> None:
    for index, node in enumerate(tree.nodes):
        assert node.parent < index and (node.parent < 0) == (index == 0)
        inside = [child.inclusive for child in tree.nodes if child.parent == index]
        for measure, whole in enumerate(node.inclusive):
            assert whole == pytest.approx(node.exclusive[measure] + sum(numbers[measure] for numbers in inside))


def a_layered_tree() -> PathTree:
    values = {
        path("Net", f"layers.{layer}", name): (1.0 + layer, 8.0) for layer in range(4) for name in ("mlp", "attn")
    }
    values[path("Net", "layers.1")] = (0.5, 0.0)
    values[path("Net", "norm")] = (2.0, 1.0)
    values[()] = (3.0, 0.0)
    return tree_of("step", MEASURES, values)


def test_what_a_node_has_is_its_own_part_and_what_is_inside() -> None:
    tree = a_layered_tree()
    adds_up(tree)
    assert tree.nodes[0].inclusive == (25.5, 65.0) and tree.nodes[0].exclusive == (3.0, 0.0)
    (layer,) = [node for node in tree.nodes if node.name == "layers.1"]
    assert layer.exclusive == (0.5, 0.0) and layer.inclusive == (4.5, 16.0) and layer.kind == "Layers"
    assert from_json(PathTree, to_json(tree)) == tree


def test_layers_that_repeat_are_one_row() -> None:
    tree = folded(a_layered_tree())
    adds_up(tree)
    assert [(node.name, node.inclusive[0]) for node in tree.nodes] == [
        ("step", 25.5), ("Net", 22.5), ("layers.0–3 ×4", 20.5), ("mlp", 10.0), ("attn", 10.0), ("norm", 2.0),
    ]  # fmt: skip


def test_calls_that_only_lead_to_one_other_are_one_row() -> None:
    seconds = {("a", "b", "c", "d"): 1.0, ("a", "b", "c", "e", "f"): 2.0, ("a", "b", "c", "e"): 4.0}
    tree = chained(tree_of("step", MEASURES, {path(*names): (number, 0.0) for names, number in seconds.items()}))
    adds_up(tree)
    assert [(node.name, node.kind, node.parent, node.inclusive[0]) for node in tree.nodes] == [
        ("step", "", -1, 7.0), ("a … c", "C", 0, 7.0), ("d", "D", 1, 1.0), ("e", "E", 1, 6.0), ("f", "F", 3, 2.0),
    ]  # fmt: skip


def node(
    name: str, line: int, read: int, written: int, flops: int | None = None, inputs: tuple[str, ...] = ()
) -> NodeFacts:
    return NO_FACTS._replace(
        name=name, op="call_function", read=read, written=written, flops=flops, inputs=inputs,
        value=Value("tensor", "torch.float32", bytes=written), stack=(Frame("/w/net.py", line, "forward"),),
        modules=(("L['self']", "Net"), (f"L['self'].part{line}", "Part")),
    )  # fmt: skip


def shares(nodes: list[NodeFacts], seconds: float, peaks: Peaks | None = PEAKS) -> dict[str, Any]:
    parts = parts_of(nodes, "Net", (Origin("/w/train.py", 3),), peaks)
    return {
        part.frames[-1].name: pytest.approx(share) for part, share in zip(parts, shares_of(parts, seconds), strict=True)
    }


def test_a_fused_kernel_is_divided_by_what_each_line_would_take() -> None:
    nodes = [node("a", 1, 100, 100), node("b", 2, 500, 100), node("c", 2, 100, 100)]
    assert shares(nodes, 7.0) == {"net.py:1": 0.2, "net.py:2": 0.8}
    assert shares(nodes, 7.0, None) == {"net.py:1": 0.2, "net.py:2": 0.8}, "by bytes alone"
    assert shares([node("a", 1, 0, 0), node("b", 2, 0, 0)], 7.0) == {"net.py:1": 0.5, "net.py:2": 0.5}
    (part,) = parts_of(nodes[:1], "Net", (Origin("/w/train.py", 3),), PEAKS)
    assert [step.name for step in part.frames] == ["train.py:3", "net.py:1"]
    assert [(step.name, step.kind) for step in part.modules] == [("Net", ""), ("part1", "Part")]


def test_a_product_has_all_but_the_further_bytes_of_its_epilogue() -> None:
    product = node("mm", 1, 800, 100, flops=1_000_000)
    epilogue = node("add", 2, 200, 100, inputs=("mm", "residual"))
    assert shares([product, epilogue], 10.0) == {"net.py:1": 0.9, "net.py:2": 0.1}, "100 more bytes take a second"
    assert shares([product, node("relu", 2, 100, 100, inputs=("mm",))], 10.0) == {"net.py:1": 1.0}
    assert shares([product, epilogue], 0.5) == {"net.py:1": 0.0, "net.py:2": 1.0}, "measured is less than the model"
    assert shares([product, epilogue], 10.0, None) == {"net.py:1": 1.0}


def test_what_a_pass_has_made_without_a_line_has_no_part() -> None:
    made = node("clone", 9, 900, 900)._replace(stack=(), modules=())
    assert shares([made, node("a", 1, 100, 100)], 1.0) == {"net.py:1": 1.0}
    (part,) = parts_of([made], "Net", (), PEAKS)
    assert (part.frames, part.modules) == ((), (PathPart("Net"),)) and shares_of([part], 1.0) == [1.0]
    (part,) = parts_of([], "Net", (Origin("/w/train.py", 3),), None)
    assert [step.name for step in part.frames] == ["train.py:3"]


def test_a_sum_of_gradients_is_in_the_module_of_its_line() -> None:
    first, other, last = node("a", 1, 8, 8), node("b", 2, 8, 8), node("c", 1, 8, 8)
    nodes = [first, last._replace(modules=()), node("d", 3, 8, 8)._replace(modules=()), other]
    assert [each.modules for each in _with_modules(nodes)] == [first.modules, first.modules, (), other.modules]


@pytest.fixture(scope="module", params=["training", "graphs"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    store = tmp_path_factory.mktemp("measures") / "runs.db"
    store.write_bytes(gzip.decompress((RECORDED / f"{request.param}.db.gz").read_bytes()))
    with Store(str(store)) as runs:
        return opened(str(RECORDED / f"{request.param}.json.gz"), runs, runs.find_run())


def test_the_kernels_of_a_gpu_add_up_by_module_and_by_line(found: Profile) -> None:
    for tree in (found.by_module, found.by_frame):
        adds_up(tree)
        assert tree.nodes[0].inclusive[0] == pytest.approx(found.device_seconds)
        assert tree.nodes[0].inclusive[2] == pytest.approx(sum(one.moved_bytes or 0 for one in found.kernels))
    lines = {node.line: node.exclusive[0] for node in found.by_frame.nodes if node.exclusive[0] and node.file}
    assert set(lines) == {one.line for one in found.lines}
    assert all(
        seconds <= sum(one.seconds for one in found.lines if one.line == line) for line, seconds in lines.items()
    )


def test_a_table_has_the_largest_rows_and_says_how_many_more(found: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # a row that is too long for the terminal is two
    paint = Paint(io.StringIO())
    short, long = profile_lines(found, paint, 4), profile_lines(found, paint, show_all=True)
    assert "(--all)" not in "\n".join(long)
    assert sum(line.startswith(("module ", "line ", "kernel ")) for line in short) == 3
    more = [int(number) for number in re.findall(r"… and (\d+) \w+ more \(--all\)", "\n".join(short))]
    assert more[:2] == [len(folded(found.by_module).nodes) - 4, len(chained(found.by_frame).nodes) - 4]
    as_one = len(found.by_frame.nodes) - len(chained(found.by_frame).nodes)
    assert len(long) == len(short) + sum(more) - len(more) + as_one


def test_a_bound_that_is_more_than_what_was_measured_is_marked(tmp_path: FilePath) -> None:
    """As where the peak of a CPU was measured while others worked on it."""
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / "training.db.gz").read_bytes()))
    with Store(str(path)) as store:
        report = store.report(store.find_run())
        peaks = Peaks("this CPU, measured", 2e11, {"float32": 2e12})
        steps = timeline(read_events(str(RECORDED / "training.json.gz")))
        found = profile_of(steps, Joined(store, report, peaks), report, (), peaks.name)
    refuted = [one for one in found.kernels if one.is_bound_refuted]
    assert 0 < len(refuted) < len(found.kernels)
    assert all(one.bound_seconds == one.seconds and bound_text(one).startswith("≤ ") for one in refuted)
    rows: list[MeasuredKernel | MeasuredLine] = [*found.kernels, *found.lines]
    for row in rows:
        assert row.bound_seconds is None or row.bound_seconds <= row.seconds
    for tree in (found.by_module, found.by_frame):
        adds_up(tree)
        assert all(node.inclusive[1] <= node.inclusive[0] * (1 + 1e-9) for node in tree.nodes)
    assert f"≤: {len(refuted)} kernels took less than that" in found.bound_words
    text = "\n".join(profile_lines(found, Paint(io.StringIO()), show_all=True))
    assert text.count("≤ ") == len(refuted) and found.bound_words in text
    assert from_json(Profile, to_json(found)) == found


def test_what_goes_on_after_a_break_has_its_own_time(tmp_path: FilePath) -> None:
    """By the name that it has in all other views, although both were called as one program."""
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / "training.db.gz").read_bytes()))
    with Store(str(path)) as store:
        report = store.report(store.find_run())
        (first, *_) = report.compiles
        going_on = dataclasses.replace(first, resumed=Resumed("forward", first.file, 9))
        report = dataclasses.replace(report, compiles=(going_on, *report.compiles[1:]))
        joined = Joined(store, report, PEAKS)
        named = {part.modules[0].name for code in joined._codes.values() for call in code.calls for part in call.parts}
    assert going_on.title == "forward, after line 9" and going_on.title in named


def test_each_call_of_a_library_function_has_its_own_cost(tmp_path: FilePath) -> None:
    """A small product is not bound by what a product of the same graph takes on average."""
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / "training.db.gz").read_bytes()))
    with Store(str(path)) as store:
        report = store.report(store.find_run())
        calls = [call for code in Joined(store, report, PEAKS)._codes.values() for call in code.calls]
        costs = kernel_costs(store, report, PEAKS)
    moved: dict[tuple[str, str], list[int]] = {}
    for call in calls:
        if call.work is not None and call.work.moved is not None:
            moved.setdefault((call.stage, call.kernel), []).append(call.work.moved)
    for cost in costs:
        assert sum(moved.get((cost.stage, cost.name), ())) == (cost.moved or 0)
    assert any(len(set(each)) > 1 for each in moved.values())


def test_what_was_compiled_as_a_tree() -> None:
    compiles = (
        a_compile(id="0/0", program="Net", graph_ops=3, seconds=2.0, file="/m.py", line=7),
        a_compile(id="1/0", program="Net", graph_ops=3, seconds=1.0),
        a_compile(id="2/0", program="", function="step", graph_ops=0, seconds=0.25),
    )
    kernels = tuple(
        a_kernel(compile=compile, language=language, module=module, module_class=kind)
        for compile, language, module, kind in [
            ("0/0", "cpp", "layers.0.mlp", "MLP"),
            ("0/0", "cpp", "layers.1.mlp", "MLP"),
            ("0/0", "extern", "layers.1", "Layer"),
            ("1/0", "cpp", "", "Net"),
        ]
    )
    report = Report(1, "r1", "/m.py", "2.13.0", an_outcome(), compiles, (), kernels, ())
    tree = folded(compiled_tree(report))
    adds_up(tree)
    assert [(node.name, node.kind, node.inclusive) for node in tree.nodes] == [
        ("this run", "", (3, 1, 2, 3.25)),
        ("Net", "", (3, 1, 2, 3.0)),
        ("step", "", (0, 0, 0, 0.25)),
        ("layers.0–1 ×2", "Layer", (2, 1, 0, 0)),
        ("mlp", "MLP", (2, 0, 0, 0)),
    ]
    assert (tree.nodes[1].file, tree.nodes[1].line) == ("/m.py", 7)
    step = tree_of("step", (Measure("time", "seconds"),), {path("Net", "layers.1", "mlp"): (0.5,)})
    timed = folded(compiled_tree(report, step))
    assert [measure.name for measure in timed.measures][-1] == "time in kernels"
    assert {node.name: node.inclusive[-1] for node in timed.nodes} == {
        "this run": 0.5, "Net": 0.5, "step": 0.0, "layers.0–1 ×2": 0.5, "mlp": 0.5,
    }  # fmt: skip
