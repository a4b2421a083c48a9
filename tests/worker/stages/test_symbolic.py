"""The symbolic trace of real compiles, and with it the phases and the symbols, which one run gives as well."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from irscope.ir import phases
from irscope.protocol import Lane
from irscope.store.store import Store
from irscope.symbolic.trace import Walk
from irscope.symbolic.variables import variable_of
from irscope.worker.client import Worker
from support import Ran, run_captured, run_forked, run_plain_forked, write
from versions import torch_version

SCRIPT = """\
import torch

def helper(x):
    print("in the middle")  # @break
    return x.sin()

def double(x):
    return x * 2  # @mul

@torch.compile(backend="aot_eager")
def f(x, n):
    y = double(x) + n  # @call
    if y.shape[0] > 3:
        y = helper(y)  # @helper
    return y.cos().sum()

for size in (4, 5):
    f(torch.ones(size, requires_grad=True), size).backward()
"""

LOOKS_EARLY = torch_version() < (2, 12)
"""Whether a call looks at its first argument before the called function does: `build_inline_tracer` of torch 2.9 and 2.11
asks whether it is a module, which makes a tensor an input of the graph."""


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.split("\n"), 1) if f"# @{mark}" in line)


def data_of(ran: Ran, stage: str) -> Any:
    with Store(ran.store) as store:
        return store.stage_data(ran.report.run, stage)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None) -> Ran:
    folder = tmp_path_factory.mktemp("symbolic")
    ran = run_captured(write(folder, SCRIPT), folder / "runs.db", "deep", worker=shared_worker)
    assert ran.report.capture_gaps == ()
    return ran


@pytest.fixture(scope="module")
def last(ran: Ran) -> Walk:
    return Walk(data_of(ran, "0/0/symbolic-trace"))


@pytest.mark.parametrize("model", ["tiny", pytest.param("bert", marks=pytest.mark.nightly)])
def test_states_are_those_of_a_full_recording(model: str) -> None:
    """Loops, comprehensions, exceptions, generators, context managers, closures, breaks; and a real model."""
    if model == "bert" and importlib.util.find_spec("transformers") is None:
        pytest.skip("no transformers here")
    script = Path(__file__).parent / "symbolic_property.py"
    done = run_plain_forked(script, [model])
    walks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert walks, done.stderr
    assert [walk["difference"] for walk in walks] == [None] * len(walks)
    if model == "tiny":
        assert [(walk["compile"], walk["last"]) for walk in walks[:4]] == [
            ("0/0", False), ("0/0", True), ("1/0", False), ("1/0", True),
        ]  # fmt: skip
        assert walks[0]["functions"] >= 10
    else:
        assert walks[0]["steps"] > 5000


def test_each_attempt_is_a_stage(ran: Ran) -> None:
    ids = [stage.id for stage in ran.compile("0/0").stages]
    assert ids[:4] == [
        "0/0/bytecode", "0/0/symbolic-trace/attempt-0", "0/0/symbolic-trace", "0/0/dynamo-graph",
    ]  # fmt: skip
    assert data_of(ran, ids[1])["last"] is False
    assert data_of(ran, ids[2])["last"] is True


def test_the_state_at_a_graph_break(ran: Ran) -> None:
    """The attempt that found the break went into the helper; the one after it stops at the call."""
    walk = Walk(data_of(ran, "0/0/symbolic-trace/attempt-0"))
    (call, given_up), (step, found) = walk.outcomes()
    assert (given_up.kind, found.kind) == ("restart", "graph-break")
    assert found.text.startswith("GB0059 ")
    inner, outer = walk.state(step).frames
    assert (inner.function, outer.function, outer.step) == ("helper", "f", call)
    assert inner.range is not None and inner.range.start.line == line_of("break")
    assert outer.range is not None and outer.range.start.line == line_of("helper")
    assert inner.stack[-1] == "ConstantVariable 'in the middle'"
    # Dynamo has called the tensor after the variable that it was stored into.
    assert inner.locals == {"x": "TensorVariable f32[4]cpu = y"}
    assert outer.locals["y"] == "TensorVariable f32[4]cpu = y"

    last = Walk(data_of(ran, "0/0/symbolic-trace"))
    assert last.outcomes() == [(len(last) - 1, found)]
    assert last.step(len(last) - 1).function == "f"


def test_nodes_stand_at_the_instruction_that_made_them(ran: Ran, last: Walk) -> None:
    made = {name: step for step in last for name in step.nodes}
    graph = re.findall(r"^ +(\w+): .* = .*(?:\*|\+|l_)", ran.text("0/0/dynamo-graph"), re.MULTILINE)
    assert graph and set(graph) <= set(made)
    mul = next(step for step in last if step.function == "double" and step.operation.startswith("BINARY"))
    assert mul.depth == 1
    assert mul.caller is not None
    call = last.step(mul.caller)
    assert call.function == "f"
    # The input is looked at for the first time in one of them; the product is made in `double`.
    assert (len(call.nodes), len(mul.nodes)) == ((1, 1) if LOOKS_EARLY else (0, 2))
    if sys.version_info >= (3, 11):
        assert mul.range is not None and mul.range.start.line == line_of("mul")
        line = SCRIPT.split("\n")[mul.range.start.line - 1]
        assert line[mul.range.start.column : mul.range.end.column] == "x * 2"


def test_guards_stand_at_the_instruction_that_needed_them(last: Walk) -> None:
    (tensor,) = [step for step in last if "TENSOR_MATCH L['x']" in step.guards]
    assert tensor.function == ("f" if LOOKS_EARLY else "double")
    before, after = last.state(tensor.index), last.state(tensor.index + 1)
    assert set(after.guards) - set(before.guards) == set(tensor.guards)
    assert "GRAD_MODE" in last.state(0).guards


def test_variables_tell_where_they_come_from(last: Walk) -> None:
    start, end = last.frame(0), last.frame(len(last) - 1)
    x = variable_of(start.locals["x"])
    assert (x.kind, x.what, x.source) == ("", "Tensor", "L['x']")
    x = variable_of(end.locals["x"])
    assert (x.kind, x.dtype, x.shape, x.device) == ("TensorVariable", "f32", ("4",), "cpu")
    assert (x.node, x.source) == ("l_x_", "L['x']")
    y = variable_of(end.locals["y"])
    assert (y.kind, y.node, y.source) == ("TensorVariable", "y", "")
    assert variable_of(end.locals["n"]).source == "L['n']"


def test_the_whole_function_is_listed(ran: Ran) -> None:
    """Also what Dynamo did not come to; each step is in the listing of its code."""
    walk = Walk(data_of(ran, "0/0/symbolic-trace"))
    code = walk.code_of(0)
    listing = walk.listing(code)
    assert listing[-1].operation.startswith("RETURN") and "RETURN" not in walk.step(len(walk) - 1).operation
    assert [each.offset for each in listing] == sorted(each.offset for each in listing)
    for step in walk:
        assert walk.instruction(step.index) in walk.listing(walk.code_of(step.index))
    lines = {each.range.start.line for each in listing if each.range is not None}
    assert line_of("helper") + 1 in lines  # behind the break


def test_ways_to_go(ran: Ran, last: Walk) -> None:
    (call, *_) = [step.index for step in last if step.operation == "CALL"]
    assert last.step(call + 1).function == "double"
    back = last.over(call)
    assert back is not None and last.step(back).function == "f"
    assert last.back_over(back) == call
    assert last.out(call + 1) == back
    assert last.caller(call + 1) == call
    file = last.step(0).file
    assert {last.step(index).function for index in last.at_line(file, line_of("mul"))} == {"double"}
    assert last.at_line(file, 1) == []
    with pytest.raises(IndexError):
        last.state(len(last))


def test_the_text(ran: Ran, last: Walk) -> None:
    lines = ran.text("0/0/symbolic-trace").splitlines()
    assert sum(bool(re.match(r" *\d+ ", line)) for line in lines) == len(last)
    assert lines[0].split() == ["──", "f", "script.py"]
    assert lines[-1].endswith("✗ graph-break: GB0059 Failed to trace builtin operator")
    (mul,) = [line for line in lines if "BINARY" in line and "│ TensorVariable f32[4]cpu = mul" in line]
    assert mul.split()[1].split(":")[0] == str(line_of("mul"))


def test_the_fast_lane_records_when_asked(tmp_path: Path) -> None:
    """That it does not otherwise is told by test_hooks.py."""
    ran = run_forked(write(tmp_path, SCRIPT), tmp_path / "runs.db", Lane.FAST, symbolic_trace=True)
    names = {stage.name for compile in ran.report.compiles for stage in compile.stages}
    assert {"symbolic-trace", "symbols"} <= names
    assert "phases" not in names


def test_a_hook_that_sees_nothing_is_a_gap(tmp_path: Path, shared_worker: Worker | None) -> None:
    """As it would be if some torch ran instructions in another way than by `step`."""
    source = SCRIPT.replace(
        "for size in",
        """\
import torch._dynamo.symbolic_convert as convert
convert.InstructionTranslatorBase.step = convert.InstructionTranslatorBase.step.__closure__[2].cell_contents
for size in""",
    )
    assert "step.__closure__" in source
    script = write(tmp_path, source)
    ran = run_captured(script, tmp_path / "runs.db", "deep", worker=shared_worker, symbolic_trace=True)
    assert ran.report.outcome.exit_code == 0, ran.stderr
    gaps = [gap for gap in ran.report.capture_gaps if gap.what == "the symbolic trace"]
    assert gaps and gaps[0].why == "no step of 0/0 was seen"


def test_symbols(ran: Ran) -> None:
    assert "0/0/symbols" not in {stage.id for stage in ran.compile("0/0").stages}  # every size was fixed
    data = data_of(ran, "0/1/symbols")
    by_source = {symbol["source"]: symbol for symbol in data["symbols"]}
    size, number = by_source["L['x'].size()[0]"], by_source["L['n']"]
    assert (size["hint"], size["range"], size["narrowed"]) == ("5", [2, None], [4, None])
    place = ("call", "f") if LOOKS_EARLY else ("mul", "double")
    assert (size["place"]["line"], size["place"]["function"]) == (line_of(place[0]), place[1])
    assert number["place"]["line"] == line_of("call")
    (guard,) = [guard for guard in data["guards"] if guard["expression"] == f"{size['symbol']} > 3"]
    assert guard["place"]["line"] == line_of("call") + 1
    assert guard["symbols"] == [size["symbol"]]
    # The same guard stands at the step of the symbolic trace that made it.
    walk = Walk(data_of(ran, "0/1/symbolic-trace"))
    assert [step.range.start.line for step in walk if f"SHAPE_ENV {guard['expression']}" in step.guards and step.range] == [
        guard["place"]["line"]
    ]  # fmt: skip


LOWERED = """\
import torch
from torch._inductor.async_compile import AsyncCompile

AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None

layer = torch.nn.Linear(16, 8)

@torch.compile(dynamic=True)
def f(x):
    h = layer(x).view(1, x.shape[0], 2, 4).transpose(1, 2)
    return (h @ h.transpose(2, 3)).softmax(-1).sum() + h.transpose(1, 2).reshape(1, -1, 8).cumsum(1).sum()

for length in (8, 12):
    f(torch.randn(length, 16)).backward()
"""


def test_what_lowering_only_looks_up_is_no_guard(tmp_path: Path, shared_worker: Worker | None) -> None:
    """PyTorch tells of ``Eq(s27, 8)`` also where it is not checked later, and the size may become another."""
    ran = run_captured(write(tmp_path, LOWERED), tmp_path / "runs.db", "deep", worker=shared_worker)
    assert [compile.id for compile in ran.report.compiles] == ["0/0"], "one compile does for both sizes"
    data = data_of(ran, "0/0/symbols")
    (size,) = (symbol for symbol in data["symbols"] if symbol["source"] == "L['x'].size()[0]")
    low, high = size["narrowed"]
    assert low <= 8 and (high is None or high >= 12)
    assert f"Eq({size['symbol']}, 8)" not in {guard["expression"] for guard in data["guards"]}


def test_phases(ran: Ran) -> None:
    for compile in ran.report.compiles:
        tree = phases.from_data(data_of(ran, f"{compile.id}/phases"))
        names = {phase.name for phase in tree}
        assert {"entire_frame_compile", "bytecode_tracing", "build_guards"} <= names or compile.graph_ops == 0
        for number, phase in enumerate(tree):
            assert phase.parent < number
            inside = [other for other in tree if other.parent == number and other.track == phase.track]
            assert sum(other.seconds for other in inside) <= phase.seconds + 1e-4
            assert phase.own == pytest.approx(phase.seconds - sum(other.seconds for other in inside), abs=1e-4)
            for other in inside:
                assert phase.start - 1e-4 <= other.start
                assert other.start + other.seconds <= phase.start + phase.seconds + 1e-4
        (frame,) = [phase for phase in tree if phase.name == "entire_frame_compile"]
        assert frame.seconds == pytest.approx(compile.seconds, rel=0.05, abs=0.01)
    assert "aot_trace_joint_graph" in {p.name for p in phases.from_data(data_of(ran, "0/0/phases"))}
    assert ran.compile("0/0").stages[-1].name == "phases"
