"""Of which modules `compile()` is said to have no effect; with classes in place of torch's, and a Dynamo that skips some."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.internals import module_compile
from irscope.internals.module_compile import skipped_modules


class Module:
    def __init__(self, *children: Module, hooks: bool = False) -> None:
        self.children = children
        self._forward_hooks = {1: print} if hooks else {}

    def _call_impl(self) -> None: ...

    def modules(self) -> Iterator[Module]:
        yield self
        for child in self.children:
            yield from child.modules()

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        called = around if kwargs.get("is_wrapped") else self._call_impl  # PyTorch 2.14 puts a frame around it
        self._compiled_call_impl = SimpleNamespace(_torchdynamo_orig_callable=called)
        return args, kwargs


def around() -> None: ...


class Linear(Module):
    __module__ = "torch.nn.modules.linear"

    def forward(self) -> None: ...


class Elsewhere(Module):
    __module__ = "torch.distributed.tensor"

    def forward(self) -> None: ...


class Own(Module):
    def forward(self) -> None: ...


class Sharding: ...


class ShardedLinear(Sharding, Linear):
    """As FSDP2 makes one."""


TORCHS = {Module._call_impl.__code__, Linear.forward.__code__, Elsewhere.forward.__code__}
assigned = Linear()
assigned.forward = print  # type: ignore[method-assign]


def named(
    monkeypatch: pytest.MonkeyPatch,
    module: Module,
    skipped: Any = TORCHS,
    **options: Any,
) -> list[str]:
    """The names that are called back with."""
    skips = None if skipped is None else lambda code: code in skipped
    monkeypatch.setattr(module_compile, "_SKIPS", SimpleNamespace(find=lambda: skips))
    fsdp: Any = SimpleNamespace(FSDPModule=Sharding)
    monkeypatch.setitem(sys.modules, "torch.distributed.fsdp", fsdp)
    seen: list[str] = []
    original = Module.compile
    nn: Any = SimpleNamespace(Module=Module)
    undo: Any = skipped_modules(seen.append).apply(nn)
    try:
        assert module.compile(1, **options) == ((1,), options)
    finally:
        undo()
    assert Module.compile is original
    return seen


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (Linear(), ["Linear"]),
        (Linear(Linear(), Elsewhere()), ["Linear"]),
        (ShardedLinear(), ["Linear"]),
        (Linear(Own()), []),
        (Own(Linear()), []),
        (Linear(Linear(hooks=True)), []),  # Dynamo compiles what has hooks
        (Elsewhere(hooks=True), ["Elsewhere"]),
        (assigned, []),  # what is not a method is not known
    ],
)
def test_modules_of_which_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, module: Module, names: list[str]
) -> None:
    assert named(monkeypatch, module) == names


def test_where_dynamo_does_not_skip_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(monkeypatch, Linear(), TORCHS - {Module._call_impl.__code__}) == []
    assert named(monkeypatch, Linear(), skipped=None) == []  # a PyTorch that does not say
    assert named(monkeypatch, Linear(), is_wrapped=True) == []
