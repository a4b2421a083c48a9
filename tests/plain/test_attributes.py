"""Numbers of a module that a call changes are put back before the next one, and compared at the end."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from irscope.runner.attributes import attributes_of


class Tensor:
    def __init__(self, value: int) -> None:
        self.value = value

    def is_inference(self) -> bool:
        return False

    is_complex = is_inference

    def detach(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        return Tensor(self.value)

    def copy_(self, other: Tensor) -> None:
        self.value = other.value

    def numel(self) -> int:
        return 1

    def item(self) -> int:
        return self.value


class Module:
    inner: Module

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        yield "", self
        if "inner" in vars(self):
            yield "inner", self.inner


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch = types.SimpleNamespace(
        Tensor=Tensor, nn=types.SimpleNamespace(Module=Module), no_grad=contextlib.nullcontext
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    made: Any = Module()
    made.steps, made.name, made.inner = 2, "a name", Module()
    made.inner.seen, made.inner._private = Tensor(1), 1
    return made


def test_what_a_call_changes_is_put_back(module: Any) -> None:
    seen = module.inner.seen
    before = attributes_of(module)
    assert before is not None and before.changed() == {}
    module.steps += 1
    module.inner.seen.value = 7
    module.inner._private = 2
    assert before.changed() == {"steps": 3, "inner.seen": 7}
    before.put_back()
    assert (module.steps, module.inner.seen.value, before.changed()) == (2, 1, {})
    module.inner.seen = Tensor(9)
    before.put_back()
    assert module.inner.seen is seen


def test_a_number_in_a_tensor_is_that_number(module: Any) -> None:
    """A fix may keep it there; the values are compared."""
    before = attributes_of(module)
    module.steps = Tensor(2)
    assert before is not None and before.changed() == {}
    module.steps = Tensor(3)
    assert before.changed() == {"steps": 3}


def test_a_function_has_none(module: Any) -> None:
    assert attributes_of(lambda: 1) is None
