"""Dynamo takes Triton kernels into graphs without a GPU, with any arguments of `has_triton`."""

import functools
import types
from typing import Any

from irscope.internals.triton_on_cpu import _seen_by_dynamo


def test_what_asks_for_triton_may_pass_arguments() -> None:
    module: Any = types.ModuleType("torch.utils._triton")

    @functools.cache
    def has_triton(*, include_cpu: bool = False) -> bool:  # as in torch 2.15
        return include_cpu

    module.has_triton, module.has_triton_package = has_triton, lambda: True
    undo = _seen_by_dynamo(module)
    assert (module.has_triton(), module.has_triton(include_cpu=True)) == (False, True)
    undo()
    assert module.has_triton is has_triton
