"""Which operations of a graph came from which, by the values that both graphs have; and graphs as they are written."""

from __future__ import annotations

from irscope.capture.operation_graphs import ITEM, Names, Operation, Tensor, written_graph
from irscope.capture.rewrites import inherited, sources_of
from irscope.ir.graphs import parse_graph
from irscope.ir.nodes import facts_of

LINES = (("net.py", 3, "forward"),)


def call(name: str, target: str, *inputs: str, line: int = 0) -> Operation:
    return Operation(
        name, "call_function", target, inputs, inputs, frames=(("net.py", line, "forward"),) if line else ()
    )


def given(name: str, op: str = "placeholder") -> Operation:
    return Operation(name, op, name)


X, W = given("x"), given("w", "get_attr")
BEFORE = [
    X,
    W,
    call("product", "MatMul", "x", "w", line=3),
    call("sum", "Add", "product", "w"),
    call("relu", "Relu", "sum", line=5),
]


def test_what_is_fused_came_from_all_that_it_replaces() -> None:
    after = [X, W, call("relu", "FusedGemm", "x", "w")]
    assert sources_of(BEFORE, after)["relu"] == ("product", "sum", "relu")


def test_what_stays_came_from_itself() -> None:
    assert sources_of(BEFORE, BEFORE) == {one.name: (one.name,) for one in BEFORE}


def test_values_without_an_earlier_name_came_from_what_they_are_computed_for() -> None:
    reshaped, gemm = call("new_1", "Reshape", "x"), call("new_2", "Gemm", "new_1", "w")
    found = sources_of(BEFORE, [X, W, reshaped, gemm, call("sum", "Reshape", "new_2"), BEFORE[-1]])
    assert found["new_1"] == found["new_2"] == found["sum"] == ("product", "sum")
    assert found["relu"] == ("relu",)


def test_an_operation_of_the_same_kind_leaves_the_rest_to_the_new_ones_before_it() -> None:
    found = sources_of(BEFORE, [X, W, call("new", "Gemm", "x", "w"), call("relu", "Relu", "new")])
    assert (found["new"], found["relu"]) == (("product", "sum"), ("relu",))


def test_an_operation_between_two_values_that_both_graphs_have_came_from_a_neighbour() -> None:
    after = [*BEFORE[:3], call("cast", "Cast", "product"), call("sum", "Add", "cast", "w"), BEFORE[-1]]
    assert sources_of(BEFORE, after)["cast"] == ("sum",)


def test_a_name_of_the_system_tells_what_a_new_value_stands_for() -> None:
    after = [
        X,
        W,
        call("blocked", "Conv", "x", "w"),
        call("again", "Conv", "blocked", "w"),
        call("relu", "Reorder", "again"),
    ]
    found = sources_of(BEFORE, after, lambda one: "product" if one.name == "blocked" else "")
    assert found["blocked"] == ("product",)
    assert found["again"] == found["relu"] == ("sum", "relu")


def test_one_of_several_results_came_from_what_their_operation_came_from() -> None:
    item = Operation("part", "call_function", ITEM, ("sum",), ("sum", "0"))
    found = sources_of(BEFORE, [X, W, BEFORE[2], call("sum", "Split", "product"), item, call("relu", "Relu", "part")])
    assert found["part"] == ("sum",)


def test_a_folded_constant_came_from_constants() -> None:
    before = [W, call("turned", "Transpose", "w"), call("y", "MatMul", "turned")]
    after = [given("turned", "get_attr"), call("y", "MatMul", "turned")]
    assert sources_of(before, after)["turned"] == ("w",)


def test_lines_come_from_what_computed_the_value_and_else_from_the_last() -> None:
    before = {one.name: one for one in BEFORE}
    fused = inherited(call("relu", "FusedGemm"), {"relu": ("product", "sum", "relu")}, before)
    assert fused.frames == (("net.py", 5, "forward"),)
    gemm = inherited(call("new", "Gemm"), {"new": ("product", "sum")}, before)
    assert gemm.frames == LINES  # the sum has no line
    assert gemm.sources == ("product", "sum")


def test_a_written_graph_is_read_as_one_of_fx() -> None:
    value = Tensor("float32", (2, "s0"))
    operations = [
        Operation("x", "placeholder", "x", value=value),
        Operation("w", "get_attr", "layers.0.weight", value=Tensor("float32", (4,)), note="[1, 2, 3, 4]"),
        Operation("pair", "call_function", "onnx.Split", ("x", "w"), ("x", "w", "axis=1", "mode='a'"), frames=LINES),
        Operation("first", "call_function", ITEM, ("pair",), ("pair", "0"), value, LINES, sources=("above",)),
        Operation("output", "output", "output", ("first",), ("first",)),
    ]  # fmt: skip
    text, data = written_graph("Model", 7, operations, above=6, passed="a pass")
    nodes = parse_graph(text).nodes
    assert [(one.name, one.op, one.target, one.inputs) for one in nodes] == [
        ("x", "placeholder", "x", ()),
        ("w", "get_attr", "layers.0.weight", ()),
        ("pair", "call", "torch.ops.onnx.Split", ("x", "w")),
        ("first", "call", "operator.getitem", ("pair",)),
        ("output", "output", "output", ("first",)),
    ]
    assert nodes[0].detail == "f32[2, s0]"
    assert nodes[2].origin is not None
    assert nodes[2].origin.line == 3
    facts = {one.name: one for one in facts_of(data, text)}
    assert [(one.name, one.graph) for one in facts["first"].sources] == [("above", 6)]
    assert (facts["first"].inputs, facts["first"].stack[0].line, facts["w"].value.bytes) == (("pair",), 3, 16)
    assert [facts[one.name].line for one in nodes] == [one.line for one in nodes]


def test_names_are_names_in_python_and_each_value_has_one() -> None:
    names = Names()
    assert [names.of(each) for each in ("up.weight", "up_weight", "0", "class", "self", "up.weight", "größe")] == [
        "up_weight", "up_weight_1", "_0", "class_", "self_1", "up_weight", "gr__e",
    ]  # fmt: skip
