"""Links between the stages of a run whose texts and data are made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_kernel, an_outcome
from irscope.protocol import Lane, Origin, StageRef
from irscope.provenance import Provenance
from irscope.provenance.elements import items_of
from irscope.provenance.fusions import explain_fusion
from irscope.provenance.kernels import add_missing_origins
from irscope.provenance.lines import trail_of
from irscope.store.store import Store

MODEL = "/home/me/model.py"
LINE = f"# File: {MODEL}:{{}} in f, code: …"

BYTECODE_311 = """\
  2           0 RESUME                   0

  3           2 LOAD_GLOBAL              1 (NULL + helper)
             14 LOAD_FAST                0 (x)
             18 CALL                     1
             28 STORE_FAST               1 (h)

  4     >>   30 LOAD_FAST                1 (h)
             32 LOAD_CONST               1 (2)
             34 BINARY_OP                5 (*)
             38 RETURN_VALUE
"""
BYTECODE_313 = """\
  2           RESUME                   0

  3           LOAD_GLOBAL              1 (helper + NULL)
              LOAD_FAST                0 (x)
              CALL                     1
  4   L1:     LOAD_FAST                1 (h)
              BINARY_OP                5 (*)
              RETURN_VALUE
"""
DYNAMO = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4]"):
        l_x_ = L_x_

        {LINE.format(8)}
        y: "f32[4]" = torch.relu(l_x_);  l_x_ = None

        {LINE.format(4)}
        mul: "f32[4]" = y * 2;  y = None
        return (mul,)
"""
JOINT = f"""\
class joint_helper(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[4]"
        tangents_1: "f32[4]"
        {LINE.format(8)}
        relu: "f32[4]" = torch.ops.aten.relu.default(primals_1);  primals_1 = None
        alias: "f32[4]" = torch.ops.aten.alias.default(relu)

        {LINE.format(4)}
        mul: "f32[4]" = torch.ops.aten.mul.Tensor(relu, 2);  relu = None
        mul_1: "f32[4]" = torch.ops.aten.mul.Tensor(tangents_1, 2);  tangents_1 = None

        {LINE.format(8)}
        le: "b8[4]" = torch.ops.aten.le.Scalar(alias, 0);  alias = None
        full: "f32[]" = torch.ops.aten.full.default([], 0.0)
        where: "f32[4]" = torch.ops.aten.where.self(le, full, mul_1);  le = full = mul_1 = None
        return (mul, where)
"""
FORWARD = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4]"):
        {LINE.format(8)}
        relu: "f32[4]" = torch.ops.aten.relu.default(primals_1);  primals_1 = None

        {LINE.format(4)}
        mul: "f32[4]" = torch.ops.aten.mul.Tensor(relu, 2)

        {LINE.format(8)}
        le: "b8[4]" = torch.ops.aten.le.Scalar(relu, 0);  relu = None
        return (mul, le)
"""
BACKWARD = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, le: "b8[4]", tangents_1: "f32[4]"):
        {LINE.format(4)}
        mul_1: "f32[4]" = torch.ops.aten.mul.Tensor(tangents_1, 2);  tangents_1 = None

        {LINE.format(8)}
        full: "f32[]" = torch.ops.aten.full.default([], 0.0)
        where: "f32[4]" = torch.ops.aten.where.self(le, full, mul_1);  le = full = mul_1 = None
        return (where,)
"""
IR = """\
op0: SchedulerNode(ComputedBuffer)
op0.writes = [MemoryDep('buf0', c0, {c0: 4})]


op1: SchedulerNode(ComputedBuffer)
op1.writes = [MemoryDep('buf1', c0, {c0: 4})]
"""
FUSED = """\
op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)
op0_op1.snodes[0] =
op0: SchedulerNode(ComputedBuffer)
op0_op1.snodes[1] =
op1: SchedulerNode(ComputedBuffer)
"""
OUTPUT = """\
cpp_fused_le_mul_relu_0 = async_compile.cpp_pybinding(['const float*'], r'''
void kernel(const float* in_ptr0)
{
    out = in;
}
''')

def call(args):
    cpp_fused_le_mul_relu_0(primals_1, buf0, buf1)
    cpp_fused_le_mul_relu_0(primals_1, buf2, buf3)
    return (buf0, buf1)
"""
ASSEMBLY = {"lines": [[1, 1], [2, 3], [3, 3]], "source": "0/0/kernel/cpp_fused_le_mul_relu_0"}


def stages() -> list[tuple[str, str, str, Any]]:
    ir = [{"name": "op0", "kind": "SchedulerNode", "origins": ["relu", "mul"], "reads": [["primals_1", 16]],
           "writes": [["buf0", 16]]},
          {"name": "op1", "kind": "SchedulerNode", "origins": ["relu", "le"], "reads": [["primals_1", 16]],
           "writes": [["buf1", 4]]}]  # fmt: skip
    call = {"kernel": "cpp_fused_le_mul_relu_0", "handle": 1, "nodes": ["op0", "op1"]}
    sides = [{"nodes": [node["name"]], "origins": node["origins"]} for node in ir]
    return [
        ("bytecode", "bytecode", BYTECODE_311, None),
        ("dynamo-graph", "dynamo-graph", DYNAMO, None),
        ("guards", "guards", "TREE_GUARD_MANAGER:\n", None),
        ("joint-graph", "joint-graph", JOINT, None),
        ("forward-graph", "forward-graph", FORWARD, None),
        ("post-grad-graph", "post-grad-graph", FORWARD, None),
        ("ir-pre-fusion", "ir-pre-fusion", IR, {"nodes": ir}),
        ("fusion", "fusion", "", {"fused": [{"first": sides[0], "second": sides[1], "kind": "horizontal",
                                             "score": "memory_score=16", "into": "op0_op1"}], "refused": []}),
        ("ir-post-fusion", "ir-post-fusion", FUSED, {"nodes": [{"name": "op0_op1", "parts": ["op0", "op1"],
                                                               "kernel": "cpp_fused_le_mul_relu_0:1"}]}),
        ("output-code", "output-code", OUTPUT, {"calls": [call, call, {**call, "handle": 2, "nodes": ["op1"]}]}),
        ("kernel/cpp_fused_le_mul_relu_0", "kernel", "void kernel()\n{\n    out = in;\n}\n", None),
        ("kernel/cpp_fused_le_mul_relu_0/assembly", "assembly", "kernel:\n  mov\n  ret\n", ASSEMBLY),
        ("kernel/cpp_fused_le_mul_relu_0/binary", "binary", "{}", {"lines": 3}),
        ("backward-graph", "backward-graph", BACKWARD, None),
        ("post-grad-graph-backward", "post-grad-graph", BACKWARD, None),
    ]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run(MODEL, [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile(id="0/0", file=MODEL, function="f", line=2))
        for position, (id, name, text, data) in enumerate(stages()):
            store.put_stage(run, "0/0", StageRef(f"0/0/{id}", name, "python", 0), text, position, data)
        store.set_outcome(run, an_outcome())
        yield store


@pytest.fixture
def thread(store: Store) -> Provenance:
    return Provenance(store, store.report(store.find_run()))


def names(elements: Any) -> list[str]:
    return [f"{element.stage.removeprefix('0/0/')}:{element.name}" for element in elements]


def named(thread: Provenance, stage: str, name: str) -> Any:
    return next(element for element in thread.elements(f"0/0/{stage}") if element.name == name)


def test_the_way_down_leaves_out_what_is_beside_it(thread: Provenance) -> None:
    assert [stage.id.removeprefix("0/0/") for stage in thread.pipeline("0/0")] == [
        "bytecode", "dynamo-graph", "joint-graph", "forward-graph", "post-grad-graph", "ir-pre-fusion",
        "ir-post-fusion", "output-code", "kernel/cpp_fused_le_mul_relu_0", "kernel/cpp_fused_le_mul_relu_0/assembly",
        "backward-graph", "post-grad-graph-backward",
    ]  # fmt: skip


def test_everything_is_linked_both_ways(thread: Provenance) -> None:
    elements = [element for stage in thread.pipeline("0/0") for element in thread.elements(stage.id)]
    assert len(elements) > 40
    for element in elements:
        assert all(element in thread.parents(child) for child in thread.children(element)), element
        assert all(element in thread.children(parent) for parent in thread.parents(element)), element


def test_from_a_line_to_its_kernel(thread: Provenance) -> None:
    below = thread.below(thread.source(MODEL, 4))
    found = {stage.removeprefix("0/0/"): [element.name for element in elements] for stage, elements in below.items()}
    assert found["bytecode"] == ["30", "32", "34", "38"]
    assert found["dynamo-graph"] == ["mul"]
    assert found["joint-graph"] == ["mul", "mul_1"]
    assert found["forward-graph"] == found["post-grad-graph"] == ["mul"]
    assert found["ir-pre-fusion"] == ["op0"] and found["ir-post-fusion"] == ["op0_op1"]
    assert found["output-code"] == [f"cpp_fused_le_mul_relu_0{call}" for call in ("", ":1", ":2")]
    assert found["kernel/cpp_fused_le_mul_relu_0/assembly"] == ["1", "2", "3"]
    assert found["backward-graph"] == ["mul_1"]


def test_the_line_of_an_inlined_function(thread: Provenance) -> None:
    """No instruction of the compiled function is on that line; the nodes are."""
    assert names(thread.children(thread.source(MODEL, 8))) == ["dynamo-graph:y"]
    assert thread.origins(named(thread, "ir-pre-fusion", "op1")) == (Origin(MODEL, 8),)


def test_up_from_machine_code(thread: Provenance) -> None:
    line = thread.at("0/0/kernel/cpp_fused_le_mul_relu_0/assembly", 2)
    assert line is not None
    assert names(thread.parents(line)) == ["kernel/cpp_fused_le_mul_relu_0:3"]
    assert set(thread.origins(line)) == {Origin(MODEL, 4), Origin(MODEL, 8)}


def test_each_call_of_a_kernel_has_its_own_nodes(thread: Provenance) -> None:
    assert names(thread.parents(named(thread, "output-code", "cpp_fused_le_mul_relu_0:1"))) == [
        "ir-post-fusion:op0_op1"
    ]
    assert names(thread.parents(named(thread, "output-code", "cpp_fused_le_mul_relu_0:2"))) == [
        "ir-post-fusion:op0_op1"
    ]
    assert names(thread.children(named(thread, "ir-post-fusion", "op0_op1")))[1:] == [
        "output-code:cpp_fused_le_mul_relu_0:1", "output-code:cpp_fused_le_mul_relu_0:2",
    ]  # fmt: skip


def test_what_is_saved_for_the_backward(thread: Provenance) -> None:
    assert "joint-graph:le" in names(thread.parents(named(thread, "backward-graph", "le")))


def test_why_something_became_nothing(thread: Provenance) -> None:
    def fate(stage: str, name: str) -> str:
        return thread.fate(named(thread, stage, name))

    assert fate("bytecode", "0") == "adds no node to the graph"
    assert fate("post-grad-graph-backward", "full") == "a constant: written into the kernels that use it"
    assert fate("post-grad-graph", "primals_1") == "an input of the graph"
    assert fate("post-grad-graph", "output") == "what the graph returns"
    assert fate("post-grad-graph", "mul") == ""


def test_a_place_in_a_text(thread: Provenance) -> None:
    assert thread.at("0/0/ir-post-fusion", 4) == named(thread, "ir-post-fusion", "op0_op1")
    assert thread.at("0/0/ir-pre-fusion", 3) is None
    assert thread.at("0/0/output-code", 3) == named(thread, "output-code", "cpp_fused_le_mul_relu_0")
    with pytest.raises(LookupError, match="has no stage 0/0/nothing"):
        thread.at("0/0/nothing", 1)


@pytest.mark.parametrize(("text", "first"), [(BYTECODE_311, "0"), (BYTECODE_313, "line 1")])
def test_the_lines_of_instructions(text: str, first: str) -> None:
    items = items_of(StageRef("0/0/bytecode", "bytecode", "", 0), text, None).items
    lines: dict[int, int] = {}
    for item in items:
        lines[item.frames[0].line] = lines.get(item.frames[0].line, 0) + 1
    assert items[0].element.name == first
    assert lines == ({2: 1, 3: 4, 4: 4} if first == "0" else {2: 1, 3: 3, 4: 3})


def test_a_corrupt_text_has_nothing(store: Store) -> None:
    run = store.find_run()
    store.put_stage(run, "0/0", StageRef("0/0/joint-graph", "joint-graph", "python", 0), "no graph (", 3)
    thread = Provenance(store, store.report(run))
    assert thread.elements("0/0/joint-graph") == ()
    assert names(thread.parents(named(thread, "forward-graph", "relu"))) == ["dynamo-graph:y"]


@pytest.mark.parametrize("data", [{"nodes": {"name": ["x"]}}, {"nodes": 3}, [], {"new": {"nodes": [None]}}])
def test_corrupt_data_links_nothing(store: Store, data: Any) -> None:
    run = store.find_run()
    store.put_stage(run, "0/0", StageRef("0/0/joint-graph", "joint-graph", "python", 0), JOINT, 3, data)
    store.put_stage(run, "0/0", StageRef("0/0/output-code", "output-code", "python", 0), OUTPUT, 9, data)
    thread = Provenance(store, store.report(run))
    for stage in thread.pipeline("0/0"):
        for element in thread.elements(stage.id):
            thread.origins(element)
            thread.fate(element)
    assert thread.origins(named(thread, "forward-graph", "relu")) == (Origin(MODEL, 8),)


def test_the_trail_of_a_line(store: Store) -> None:
    trail = trail_of(store, store.report(store.find_run()), MODEL, 4)
    steps = {step.stage.removeprefix("0/0/"): step for step in trail.steps}
    assert [node.name for node in steps["joint-graph"].nodes] == ["mul", "mul_1"]
    assert [(place.name, place.line, place.end_line) for place in steps["ir-post-fusion"].places] == [("op0_op1", 1, 5)]
    assert not any("bytecode" in stage or "kernel" in stage for stage in steps)


def test_why_two_were_fused(store: Store) -> None:
    report = store.report(store.find_run())
    (answer,) = explain_fusion(store, [report], "mul", "le")
    assert answer.together and answer.summary == "mul and le are in one kernel."
    (decision,) = answer.decisions
    assert (decision.fused, decision.reason, decision.first.nodes, decision.second.operations) == (
        True, "memory_score=16", ("op0",), ("relu", "le"),
    )  # fmt: skip
    assert set(decision.first.origins) == {Origin(MODEL, 4), Origin(MODEL, 8)}
    with pytest.raises(LookupError, match=r"has both mul and nothing\. Kernels: cpp_fused_le_mul_relu_0"):
        explain_fusion(store, [report], "mul", "nothing")


def test_why_two_were_not_fused(store: Store) -> None:
    run = store.find_run()
    sides = [{"nodes": [name], "origins": []} for name in ("op0", "op1")]
    refused = {"first": sides[0], "second": sides[1], "kind": "vertical", "reason": "no shared data", "buffers": ["b"]}
    stage = StageRef("0/0/fusion", "fusion", "", 0)
    store.put_stage(run, "0/0", stage, "", 7, {"fused": [], "refused": [refused]})
    apart = [{"name": name, "parts": [name], "kernel": name} for name in ("op0", "op1")]
    ir = StageRef("0/0/ir-post-fusion", "ir-post-fusion", "", 0)
    store.put_stage(run, "0/0", ir, IR, 8, {"nodes": [{**node, "kernel": "cpp_0:1"} for node in apart]})
    report = store.report(run)
    (answer,) = explain_fusion(store, [report], "op1", "op0")
    assert answer.summary.startswith("op1 and op0 are two loops of one kernel: they access")
    store.put_stage(run, "0/0", ir, IR, 8, {"nodes": apart})
    (answer,) = explain_fusion(store, [report], "op1", "op0")
    assert not answer.together and answer.summary.startswith("op1 and op0 are two kernels: they access the buffer in")
    assert [(decision.fused, decision.buffers) for decision in answer.decisions] == [(False, ("b",))]
    store.put_stage(run, "0/0", stage, "", 7, {"fused": [], "refused": []})
    (answer,) = explain_fusion(store, [report], "op0", "op1")
    assert answer.summary.startswith("op0 and op1 both touch primals_1, but Inductor gave no reason")


def test_lines_for_a_kernel_that_pytorch_tells_none_of(store: Store) -> None:
    run, name = store.find_run(), "cpp_fused_le_mul_relu_0"
    kernel = a_kernel(name=name, compile="0/0", stage=f"0/0/kernel/{name}", origins=())
    told = a_kernel(name="other", compile="0/0", stage="0/0/kernel/other", origins=(Origin(MODEL, 99),))
    lost = a_kernel(name="lost", compile="0/0", stage="0/0/kernel-backward/lost", origins=())
    for one in (kernel, told, lost):
        store.put_kernel(run, one)
    add_missing_origins(store, run)
    assert [one.origins for one in store.report(run).kernels] == [
        (Origin(MODEL, 4), Origin(MODEL, 8)), (Origin(MODEL, 99),), (),
    ]  # fmt: skip


def test_what_is_changed_in_place_is_not_computed_before(tmp_path: Path) -> None:
    """`a[0] = b;  setitem = a` and the same for `a[1]` do different things, though both take b."""
    text = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, L_a_: "f32[4]", L_b_: "f32[]"):
        {LINE.format(8)}
        one: "f32[4]" = torch.sin(L_b_)
        two: "f32[4]" = torch.sin(L_b_)
        L_a_[0] = L_b_;  setitem = L_a_;  setitem = None
        L_a_[1] = L_b_;  setitem_1 = L_a_;  setitem_1 = None
        return (one, two)
"""
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run(MODEL, [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile(id="0/0", file=MODEL))
        for position, name in enumerate(("dynamo-graph", "joint-graph")):
            body = text if name == "dynamo-graph" else JOINT.replace("torch.ops.aten.relu", "torch.ops.aten.cos")
            store.put_stage(run, "0/0", StageRef(f"0/0/{name}", name, "python", 0), body, position)
        thread = Provenance(store, store.report(run))
        items = thread.elements("0/0/dynamo-graph")
        assert thread._twin_of(next(one for one in items if one.name == "two")) == "the same as one: computed once"
        assert [thread._twin_of(one) for one in items if one.name.startswith("setitem")] == ["", ""]
