"""The parts of a result that two runs are compared by."""

from __future__ import annotations

import io
import math
import sys
import types
from typing import Any

import pytest
from irscope.runner.leaves import difference, leaves


@pytest.mark.parametrize(("one", "other"), [([1], (1,)), ([], ()), ({"a": [2]}, {"a": (2,)})])
def test_a_list_is_not_a_tuple(one: object, other: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=type("Tensor", (), {})))
    assert leaves(one) == leaves(type(one)(one))  # type: ignore[call-arg]
    assert leaves(one) != leaves(other)


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (math.inf, math.inf, ""),
        (-math.inf, math.inf, "inf in place of -inf"),
        (math.inf, 3.0, "3.0 in place of inf"),
        (3.0, math.inf, "inf in place of 3.0"),
        (1.0, 1.000001, ""),
        (1.0, 1.001, "1.001 in place of 1.0"),
        (math.nan, math.nan, ""),
        (math.nan, 1.0, "1.0 in place of nan"),
        (1.0, math.nan, "nan in place of 1.0"),
        (complex(1, math.inf), complex(1, math.inf), ""),
    ],
)
def test_infinity_is_near_itself_only(
    before: complex, now: complex, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best loss so far of a schedule is infinite at first: a lost update of it is a difference, and it by itself none."""
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=type("Tensor", (), {})))
    assert difference(before, now) == (words, True)


def _saved(value: Any, times: int = 1) -> io.BytesIO:
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    for _ in range(times):
        torch.save(value, file)
    return file


@pytest.mark.parametrize("is_buffer", [True, False])
def test_an_attribute_of_dynamos_in_what_is_saved_is_no_difference(is_buffer: bool) -> None:
    torch = pytest.importorskip("torch")
    marked = torch.zeros(4)
    marked._dynamo_static_input_type = "unguarded"
    plain = {"mean": torch.zeros(4), "step": 1}
    files = [plain, plain | {"mean": marked}, plain | {"mean": torch.ones(4)}, plain | {"step": 2}]
    buffers = [_saved(value) for value in files]
    of_plain, of_marked, *of_others = [leaves(buffer if is_buffer else buffer.getvalue()) for buffer in buffers]
    assert of_plain == of_marked
    assert of_plain not in of_others


def test_a_buffer_in_which_something_was_saved_twice_is_another() -> None:
    torch = pytest.importorskip("torch")
    assert leaves(_saved(torch.zeros(4))) != leaves(_saved(torch.zeros(4), times=2))
