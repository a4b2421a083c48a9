"""Calls of the script that go around compiled code: methods of a compiled module.  PyTorch leaves no record of them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.user_files import is_torch_file

_METHODS = "calls of methods of a compiled module, which are not compiled"
_VERSIONS = "2.13"


def methods_of_compiled(look: Callable[[], Any], receive: Callable[[str, str, Any], None]) -> Hook:
    """Calls back at the end of the run, once for each method that the script took from a compiled module: the name of the
    module's class, that of the method, and what ``look`` gave when it was taken first.

    `torch.compile` compiles the call of the module: its other methods are those of the module as it was.
    """
    taken: dict[tuple[str, str], Any] = {}

    def apply(eval_frame: types.ModuleType) -> Undo:
        compiled: Any = eval_frame.__dict__["OptimizedModule"]
        original = compiled.__getattr__

        @functools.wraps(original)
        def getting(self: Any, name: str) -> Any:
            value = original(self, name)
            code = getattr(getattr(value, "__func__", None), "__code__", None)
            if code is not None and not is_torch_file(code.co_filename):
                key = (type(value.__self__).__name__, name)
                if key not in taken:
                    taken[key] = look()
            return value

        def told() -> None:
            for (module, method), place in taken.items():
                receive(module, method, place)

        return undo_all([replace_attribute(compiled, "__getattr__", getting), told])

    return Hook(_METHODS, "torch._dynamo.eval_frame", _VERSIONS, apply)
