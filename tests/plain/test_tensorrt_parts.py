"""What the partitioner of torch_tensorrt 2.13.0 said of a small net (`tests/pipelines/test_tensorrt.py`), recorded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from irscope.capture.operation_graphs import Operation, written_graph
from irscope.internals.tensorrt import Refusal
from irscope.ir.graphs import parse_graph
from irscope.pipeline_captures.tensorrt import parts
from irscope.pipeline_captures.tensorrt.capture import parts_of
from irscope.pipeline_captures.tensorrt.parts import DryRun, Part, Stay

TARGETS = {
    "convolution": "aten.convolution.default", "norm": "aten._native_batch_norm_legit_no_training.default",
    "getitem": "operator.getitem", "relu": "aten.relu.default", "mul": "aten.mul.Tensor", "add": "aten.add.Tensor",
    "special_i0e": "aten.special_i0e.default", "mean": "aten.mean.dim", "sigmoid": "aten.sigmoid.default",
    "mul_1": "aten.mul.Tensor", "linear": "aten.linear.default", "tanh": "aten.tanh.default",
    "special_i0e_1": "aten.special_i0e.default", "exp": "aten.exp.default",
}  # fmt: skip
FIRST = Part("_run_on_acc_0", True, ("convolution", "norm", "getitem", "relu", "mul", "add"))
SECOND = Part("_run_on_acc_2", True, ("mean", "sigmoid", "mul_1", "linear", "tanh"))
BETWEEN = Part("_run_on_gpu_1", False, ("special_i0e",))
PARTS = [FIRST, BETWEEN, SECOND, Part("_run_on_gpu_3", False, ("special_i0e_1", "exp"))]
BLOCKS = [
    FIRST, BETWEEN, SECOND, Part("_run_on_gpu_3", False, ("special_i0e_1",)), Part("_run_on_acc_4", True, ("exp",)),
]  # fmt: skip
REFUSALS = {"special_i0e": Refusal(), "special_i0e_1": Refusal()}
REFUSED_TOPK = Refusal(
    True, ("topk_validator",), ("[top_k validator] Currently only topk values up to 3840 are supported, got k=4000.",)
)
DYNAMIC_DIAGONAL = Refusal(True, is_dynamic=True)


def dry_run(has_gpu: bool = False) -> DryRun:
    return DryRun("2.13.0", has_gpu, 5, TARGETS, PARTS, parts.stays_of(PARTS, BLOCKS, REFUSALS, 5))


def test_each_operation_outside_of_engines_has_its_reason() -> None:
    stays = parts.stays_of(PARTS, BLOCKS, REFUSALS, 5)
    assert {name: stay.code for name, stay in stays.items()} == {
        "special_i0e": parts.NO_CONVERTER,
        "special_i0e_1": parts.NO_CONVERTER,
        "exp": parts.SMALL,
    }
    assert stays["exp"].why == "a block of 1, and an engine has at least 5 operators"


def test_a_converter_that_refuses_is_told_with_what_was_logged() -> None:
    whole = [Part("_run_on_gpu_0", False, ("topk", "diagonal"))]
    stays = parts.stays_of(whole, whole, {"topk": REFUSED_TOPK, "diagonal": DYNAMIC_DIAGONAL}, 5)
    assert parts.message_of(stays["topk"], "aten.topk.default") == (
        "aten.topk.default stays with PyTorch: its converter refuses these arguments (topk_validator). Torch-TensorRT "
        "says: [top_k validator] Currently only topk values up to 3840 are supported, got k=4000."
    )
    assert (stays["diagonal"].code, stays["diagonal"].why) == (
        parts.DYNAMIC,
        "its converter does not take dynamic sizes",
    )
    for stay in stays.values():
        assert parts.hints_of(stay)


def test_what_is_logged_is_bounded() -> None:
    whole = [Part("", False, ("topk",))]
    [stay] = parts.stays_of(whole, whole, {"topk": Refusal(True, ("v",), ("x" * 10_000,))}, 5).values()
    assert len(stay.said) < 400


def test_only_the_first_operation_of_a_small_block_has_a_finding() -> None:
    block = Part("_run_on_acc_0", True, ("relu", "mul"))
    left = [Part("_run_on_gpu_0", False, ("relu", "mul", "topk"))]
    stays = parts.stays_of(left, [block], {"topk": REFUSED_TOPK}, 5)
    assert [name for name, stay in stays.items() if stay.is_told] == ["relu", "topk"]
    assert stays["mul"].why == "a block of 2, and an engine has at least 5 operators"


REPORT = """\
A dry run of the partitioner of Torch-TensorRT 2.13.0: no engine is built.
The script goes on with its own program.
This machine has no GPU. irscope told Torch-TensorRT of one with compute capability 8.0.
Settings: the defaults of torch_tensorrt.compile (min_block_size=5).
An engine may still fail when it is built: the partitioner asks converters, not TensorRT.

11 of 14 operations are in 2 TensorRT engines.

# parts, in the order in which they run
TensorRT engine 0        6  _run_on_acc_0     convolution, norm, getitem, relu, …
PyTorch                  1  _run_on_gpu_1     special_i0e
TensorRT engine 1        5  _run_on_acc_2     mean, sigmoid, mul_1, linear, …
PyTorch                  2  _run_on_gpu_3     special_i0e_1, exp

# operations that stay with PyTorch
     2  aten.special_i0e.default: no converter
     1  aten.exp.default: a block of 1, and an engine has at least 5 operators

# operations in TensorRT engines
     2  aten.mul.Tensor
"""


def test_the_report_sums_it_up() -> None:
    assert parts.report_text(dry_run()).startswith(REPORT)
    assert "This machine has no GPU" not in parts.report_text(dry_run(has_gpu=True))
    assert parts.shape_of(dry_run()) == (
        "The program would run as 2 TensorRT engines and 2 parts in PyTorch. This is a dry run: no engine is built."
    )


def test_a_program_without_an_engine_says_so() -> None:
    left = [Part("_run_on_gpu_0", False, ("topk",))]
    run = DryRun("2.13.0", True, 5, {"topk": "aten.topk.default"}, left, {"topk": Stay(parts.REFUSED, "why")})
    assert "0 of 1 operations are in 0 TensorRT engines." in parts.report_text(run)
    assert "# operations in TensorRT engines" not in parts.report_text(run)
    assert parts.shape_of(run) == "No operator of this program would be in a TensorRT engine."


def test_comments_say_where_each_operation_runs_and_a_graph_with_them_is_read() -> None:
    notes = parts.notes_of(dry_run())
    assert notes["relu"] == "TensorRT engine 0"
    assert notes["tanh"] == "TensorRT engine 1"
    assert notes["special_i0e"] == "PyTorch: no converter"
    operations = [
        Operation("x", "placeholder", "x"),
        Operation(
            "special_i0e", "call_function", "aten.special_i0e.default", ("x",), ("x",), note=notes["special_i0e"]
        ),
        Operation("exp", "call_function", "aten.exp.default", ("special_i0e",), ("special_i0e",), note=notes["exp"]),
        Operation("output", "output", "output", ("exp",), ("exp",)),
    ]
    read = {node.name: node for node in parse_graph(written_graph("Partitioned", 0, operations)[0]).nodes}
    assert read["exp"].target == "torch.ops.aten.exp.default"
    assert read["exp"].inputs == ("special_i0e",)


def node(name: str, op: str = "call_function", target: str = "") -> Any:
    return SimpleNamespace(name=name, op=op, target=target or name)


def module(nodes: list[Any], **children: list[Any]) -> Any:
    """As the partitioner gives it: submodules, and a graph that calls them."""
    inside = [(name, SimpleNamespace(graph=SimpleNamespace(nodes=below))) for name, below in children.items()]
    return SimpleNamespace(graph=SimpleNamespace(nodes=nodes), named_children=lambda: [*inside, ("conv", object())])


def test_parts_are_read_without_their_inputs_which_are_named_like_operations() -> None:
    cut = module(
        [
            node("x", "placeholder"),
            node("a", "call_module", "_run_on_acc_0"),
            node("b", "call_module", "_run_on_gpu_1"),
        ],
        _run_on_acc_0=[node("x", "placeholder"), node("relu"), node("output", "output")],
        _run_on_gpu_1=[node("relu", "placeholder"), node("special_i0e")],
    )
    assert parts_of(cut, TARGETS) == [
        Part("_run_on_acc_0", True, ("relu",)),
        Part("_run_on_gpu_1", False, ("special_i0e",)),
    ]


def test_what_the_partitioner_adds_may_have_the_name_of_what_it_moved() -> None:
    """Of BERT: a result of the engine is taken by a ``getitem``, and the engine has one of this name."""
    nodes = [node("x", "placeholder"), node("a", "call_module", "_run_on_acc_0"), node("getitem")]
    cut = module(nodes, _run_on_acc_0=[node("norm"), node("getitem"), node("relu")])
    assert parts_of(cut, TARGETS) == [Part("_run_on_acc_0", True, ("norm", "getitem", "relu"))]


def test_what_the_other_partitioner_leaves_where_it_was_is_in_pytorch() -> None:
    """The global partitioner makes submodules for engines only."""
    nodes = [node("mul"), node("fused", "call_module", "_run_on_acc_0"), node("getitem_9"), node("add"), node("exp")]
    assert parts_of(module(nodes, _run_on_acc_0=[node("relu")]), TARGETS) == [
        Part("", False, ("mul",)),
        Part("_run_on_acc_0", True, ("relu",)),
        Part("", False, ("add", "exp")),
    ]
