"""Which frames are of compiled code, on stacks as PyTorch makes them, and what is read of a fault's text."""

from __future__ import annotations

import pytest
from irscope.driver.faults import Faults
from irscope.internals.compiled_frames import call_around, compiled_frame, function_around
from irscope.protocol import StackFrame

TORCH = "/v/lib/python3.11/site-packages/torch/"
CODE = "/tmp/inductor/ab/cab.py"
FUNCTIONS = {("/w/m.py", "fn")}


def stack(*frames: str) -> list[StackFrame]:
    """From ``file:function``, where files that begin with ``t/`` are torch's."""
    pairs = [frame.rsplit(":", 1) for frame in frames]
    return [StackFrame(file.replace("t/", TORCH, 1) if file[:2] == "t/" else file, 1, name) for file, name in pairs]


CALLED = ("/w/m.py:<module>", "t/_dynamo/eval_frame.py:compile_wrapper", "/w/m.py:fn", "t/_dynamo/eval_frame.py:_fn")
AOT = ("t/_functorch/aot_autograd.py:forward", "t/_functorch/_aot_autograd/runtime_wrappers.py:runtime_wrapper")
TRAINS = ("t/autograd/function.py:apply", "t/_functorch/_aot_autograd/utils.py:call", "t/_dynamo/eval_frame.py:_fn")
INDUCTOR = ("t/_inductor/output_code.py:__call__", f"{CODE}:call")


@pytest.mark.parametrize(
    ("frames", "at", "function", "calls"),
    [
        ((*CALLED, *AOT, *INDUCTOR), 7, 2, 1),
        ((*CALLED, *AOT, *TRAINS, *INDUCTOR), 10, 2, 1),
        ((*CALLED, *AOT, *TRAINS, "<eval_with_key>.3:forward"), 9, 2, 1),
        ((*CALLED, "<eval_with_key>.3:forward", "t/nn/functional.py:embedding"), 4, 2, 1),
        (("/w/m.py:<module>", "t/_tensor.py:backward", "t/autograd/graph.py:_engine_run_backward", *TRAINS, *INDUCTOR), 7, None, 7),
    ],
    ids=["inference", "training", "AOTAutograd alone", "Dynamo alone", "backward"],
)  # fmt: skip
def test_inside_compiled_code(frames: tuple[str, ...], at: int, function: int | None, calls: int) -> None:
    found = stack(*frames)
    inside = compiled_frame(found, {CODE}, FUNCTIONS)
    assert inside == at
    assert function_around(found, inside) == function
    assert call_around(found, inside) == (calls if function is not None else inside)


@pytest.mark.parametrize(
    "frames",
    [
        ("/w/m.py:<module>",),
        ("/w/m.py:<module>", "<eval_with_key>.1:forward"),
        (*CALLED[:3],),
        ("/w/m.py:main", "t/_dynamo/eval_frame.py:_fn", "t/fx/graph_module.py:call", "<eval_with_key>.1:forward"),
        (*CALLED[:2], "t/_dynamo/convert_frame.py:__call__", "t/_inductor/output_code.py:__call__", f"{CODE}:call"),
        ("/w/m.py:<module>", "t/autograd/graph.py:run", "t/_inductor/compile_fx.py:compile", "<eval_with_key>.1:forward"),
    ],
    ids=["script", "fx", "plain Python below", "disabled", "while compiling", "while compiling the backward"],
)  # fmt: skip
def test_outside_compiled_code(frames: tuple[str, ...]) -> None:
    assert compiled_frame(stack(*frames), {CODE}, FUNCTIONS) is None


FAULT = """\
Fatal Python error: Segmentation fault

Thread 0x00007f2756169 (most recent call first):
  File "/lib/threading.py", line 331 in wait

Current thread 0x00007f277d65bb80 (most recent call first):
  File "/w/\\xe9\\u20ac.py", line 10 in boom
  File "/w/m.py", line 26 in <module>

Extension modules: numpy._core (total: 25)
"""


def faults(text: str) -> list[tuple[StackFrame, ...]]:
    found = Faults()
    data = text.encode()
    for start in range(0, len(data), 7):  # as it may come
        found.feed(data[start : start + 7])
    return found.stacks()


def test_the_stack_of_a_signal() -> None:
    current, other = faults(FAULT)
    assert [(one.file, one.line, one.function) for one in current] == [
        ("/w/m.py", 26, "<module>"), ("/w/é€.py", 10, "boom"),
    ]  # fmt: skip
    assert other == (StackFrame("/lib/threading.py", 331, "wait"),)


def test_the_newest_fault_counts() -> None:
    assert faults(FAULT + FAULT.replace("26", "27"))[0][0].line == 27


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("", []),
        ("Fatal Python error: ", []),
        ("Fatal Python error: x\nThread (most recent call first):\n", [[]]),
        ("{}\n\x00\n" + "x" * 99_999, []),
        ('Fatal Python error: x\n  File "a", line 1 in b\n', []),  # of no thread
        (FAULT.replace("26", "9" * 40), [["boom"], ["wait"]]),
    ],
)
def test_what_is_no_stack_is_passed_over(text: str, functions: list[list[str]]) -> None:
    assert [[frame.function for frame in stack] for stack in faults(text)] == functions
