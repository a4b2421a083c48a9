"""Reasons why a node became nothing."""

from __future__ import annotations

import pytest
from irscope.ir.nodes import NodeFacts, Value
from irscope.protocol import StageRef
from irscope.provenance.elements import Element, Item, Items
from irscope.provenance.fates import fate_of, firsts_of

STAGE = StageRef("0/0/joint-graph", "joint-graph", "python", 0)
TENSOR = Value(kind="tensor", dtype="torch.float32", sizes=(4,), strides=(1,), device="cpu", bytes=16)
SAME = "changes nothing: its input is of this type and layout already"


def facts(name: str, inputs: tuple[str, ...] = ()) -> NodeFacts:
    return NodeFacts(
        name=name, line=1, op="call", target="", value=TENSOR, inputs=inputs, users=(), flops=None, read=None, written=None,
        is_view=False, is_backward=False, stack=(), modules=(), original_aten="", seq_nr=None, sources=(),
    )  # fmt: skip


def fate(target: str, *inputs: str, number: str = "") -> str:
    """Of a node that gives what its first input is like, and that the graph returns."""
    items = [
        *(Item(Element(STAGE.id, name, 1, 1), facts=facts(name), op="placeholder") for name in ("x", "y")),
        Item(
            Element(STAGE.id, "node", 2, 2),
            facts=facts("node", inputs),
            op="call",
            target=target,
            inputs=inputs,
            number=number,
        ),
        Item(Element(STAGE.id, "output", 3, 3), op="output", inputs=("node",)),
    ]
    return fate_of(items[2], Items.of(items), STAGE, [])


@pytest.mark.parametrize(
    "target",
    ["to", "float", "contiguous", "torch.ops.aten._to_copy.default", "torch.ops.aten.expand.default",
     "torch.ops.aten.clone.default", "torch.nn.functional.dropout"],
)  # fmt: skip
def test_an_operation_that_gives_its_input_changes_nothing(target: str) -> None:
    assert fate(target, "x") == SAME


def test_a_mode_is_not_dead() -> None:
    """It stands in a graph for what is traced behind it, and nothing needs it."""
    items = [Item(Element(STAGE.id, "mode", 1, 1), op="call", target="torch._C._set_grad_enabled")]
    assert fate_of(items[0], Items.of(items), STAGE, []) == "sets a mode in which AOTAutograd traces what follows it"


def test_only_a_neutral_number_changes_nothing() -> None:
    assert fate("torch.ops.aten.add.Tensor", "x", number="0") == SAME
    assert fate("torch.ops.aten.mul.Tensor", "x", number="1.0") == SAME
    assert fate("torch.ops.aten.add.Tensor", "x", number="1") == ""
    assert fate("torch.ops.aten.mul.Tensor", "x") == ""


@pytest.mark.parametrize(
    ("target", "inputs"),
    [
        ("torch.ops.aten.sub.Tensor", ("x", "y")),  # computed once with another: see Provenance.fate
        ("torch.ops.aten.relu.default", ("x",)),
        ("torch.ops.aten.mul.Tensor", ("x", "y")),
    ],
)
def test_a_result_like_its_input_is_no_reason_where_something_is_computed(target: str, inputs: tuple[str, ...]) -> None:
    assert fate(target, *inputs) == ""


FOLDED = "folded: it depends on constants alone, and was computed when the program was compiled"


@pytest.mark.parametrize(
    ("above", "reason"),
    [
        ([("w", "get_attr", "w", ()), ("i", "call", "onnx.Constant", ())], FOLDED),
        ([("w", "get_attr", "w", ()), ("c", "get_attr", "c", ()), ("i", "call", "onnx.Cast", ("c",))], FOLDED),
        ([("w", "get_attr", "w", ()), ("i", "placeholder", "i", ())], ""),
        ([("w", "get_attr", "w", ()), ("x", "placeholder", "x", ()), ("i", "call", "onnx.Cast", ("x",))], ""),
        ([("w", "get_attr", "w", ()), ("i", "call", "onnx.RandomNormal", ())], ""),
        ([("w", "get_attr", "w", ())], ""),  # what i is, nobody knows
    ],
)
def test_what_depends_on_constants_alone_is_folded(
    above: list[tuple[str, str, str, tuple[str, ...]]], reason: str
) -> None:
    rows = [*above, ("node", "call", "onnx.Gather", ("w", "i")), ("output", "output", "", ("node",))]
    graph = Items.of([
        Item(Element(STAGE.id, name, number, number), op=op, target=target, inputs=inputs)
        for number, (name, op, target, inputs) in enumerate(rows, 1)
    ])  # fmt: skip
    assert fate_of(graph.by_name["node"], graph, STAGE, []) == reason


def test_what_is_written_in_place_is_not_dead() -> None:
    """Nobody uses what a copy into an input gives back; where it copies what was computed there, nothing is left of it."""

    def node(name: str, target: str, *inputs: str) -> Item:
        return Item(Element(STAGE.id, name, 2, 2), facts=facts(name, inputs), op="call", target=target, inputs=inputs)

    graph = Items.of([
        *(Item(Element(STAGE.id, name, 1, 1), facts=facts(name), op="placeholder") for name in ("x", "y")),
        node("put", "torch.ops.aten.index_put_.default", "x", "y"),
        node("relu", "torch.ops.aten.relu.default", "y"),
        node("unused", "torch.ops.aten.cos.default", "y"),
        node("back", "torch.ops.aten.copy_.default", "x", "put"),
        node("other", "torch.ops.aten.copy_.default", "x", "relu"),
        Item(Element(STAGE.id, "output", 3, 3), op="output"),
    ])  # fmt: skip
    found = {item.element.name: fate_of(item, graph, STAGE, []) for item in graph.items if item.op == "call"}
    assert found["back"] == "a copy that is not needed: its input was computed in place"
    assert found["unused"].startswith("dead")
    assert not any(found[name].startswith(("dead", "copies")) for name in ("put", "relu", "other"))


def test_what_is_computed_twice_is_found_behind_copies_and_is_not_what_writes_in_place() -> None:
    rows = ["x", "a = torch.ops.aten.div.Tensor(x, y);  x = None", "c = torch.ops.aten.clone.default(x)",
            "b = torch.ops.aten.div.Tensor(c, y)", "put = torch.ops.aten.copy_.default(x, y)",
            "again = torch.ops.aten.copy_.default(x, y)", "after = torch.ops.aten.relu.default(put)"]  # fmt: skip
    graph = Items.of([Item(Element(STAGE.id, name, 1, 1), facts=facts(name), op="placeholder") for name in ("x", "y")] + [
        Item(Element(STAGE.id, name, line, line), facts=facts(name, inputs), op="call", target=f"torch.ops.aten.{target}",
             inputs=inputs)
        for line, (name, target, inputs) in enumerate([
            ("a", "div.Tensor", ("x", "y")), ("c", "clone.default", ("x",)), ("b", "div.Tensor", ("c", "y")),
            ("put", "copy_.default", ("x", "y")), ("again", "copy_.default", ("x", "y")), ("after", "relu.default", ("put",)),
        ], 2)
    ])  # fmt: skip
    assert firsts_of(graph, rows) == {"a": "a", "c": "x", "b": "a", "after": "after"}
