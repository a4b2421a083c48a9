"""Functions with their own backward that Dynamo traces inside of ``torch.func.grad``: it takes their forward alone.

PyTorch's issue 193279.  No record of the trace says so.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute


def dropped_backwards(receive: Callable[[str], None]) -> Hook:
    """Calls back with the name of the class, while its ``apply`` is traced.  May not raise."""

    def apply(misc: types.ModuleType) -> Undo:
        function: Any = misc.__dict__["AutogradFunctionVariable"]
        original = function.call_apply

        @functools.wraps(original)
        def call_apply(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
            if _is_in_grad() and not any(_has_history(each) for each in (*args, *kwargs.values())):
                receive(self.fn_cls.__name__)
            return original(self, tx, args, kwargs)

        return replace_attribute(function, "call_apply", call_apply)

    what = "functions whose own backward Dynamo leaves out"
    return Hook(what, "torch._dynamo.variables.misc", "2.13", apply)


def _is_in_grad() -> bool:
    functorch: Any = sys.modules["torch"]._C._functorch
    interpreter = functorch.peek_interpreter_stack()
    return interpreter is not None and interpreter.key() == functorch.TransformType.Grad


def _has_history(variable: Any) -> bool:
    return bool(variable.is_tensor()) and variable.requires_grad is not False
