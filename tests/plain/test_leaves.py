"""The parts of a result that two runs are compared by."""

from __future__ import annotations

import sys
import types

import pytest
from irscope.runner.leaves import leaves


@pytest.mark.parametrize(("one", "other"), [([1], (1,)), ([], ()), ({"a": [2]}, {"a": (2,)})])
def test_a_list_is_not_a_tuple(one: object, other: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=type("Tensor", (), {})))
    assert leaves(one) == leaves(type(one)(one))  # type: ignore[call-arg]
    assert leaves(one) != leaves(other)
