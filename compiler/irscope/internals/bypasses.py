"""Calls of the script that go around compiled code: methods of a compiled module.  PyTorch leaves no record of them."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.source import function_at
from irscope.usercode.user_files import is_torch_file
from irscope.vocabulary.records import dataclass

_METHODS = "calls of methods of a compiled module, which are not compiled"
_VERSIONS = "2.13"


@dataclass(frozen=True)
class Taken:
    """A method that the script took from a compiled module.

    Args:
        module, method: The names of the module's class and of the method.
        file, line: Where the method begins.
        runs_modules: Whether its code, or that of methods that it calls, calls the module or one of those in it.
        place: What ``look`` gave when it was taken first.
    """

    module: str
    method: str
    file: str
    line: int
    runs_modules: bool
    place: Any


def methods_of_compiled(look: Callable[[], Any], receive: Callable[[Taken], None]) -> Hook:
    """Calls back at the end of the run, once for each method that the script took from a compiled module.

    `torch.compile` compiles the call of the module: its other methods are those of the module as it was.
    """
    taken: dict[tuple[str, str], Taken] = {}

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
                    where = code.co_filename, code.co_firstlineno
                    taken[key] = Taken(*key, *where, _runs_modules(value.__self__, code, set()), look())
            return value

        def told() -> None:
            for method in taken.values():
                receive(method)

        return undo_all([replace_attribute(compiled, "__getattr__", getting), told])

    return Hook(_METHODS, "torch._dynamo.eval_frame", _VERSIONS, apply)


def _runs_modules(owner: Any, code: types.CodeType, seen: set[types.CodeType]) -> bool:
    """Whether code calls ``self(…)`` or ``self.forward``, names a module of the owner that is not compiled for itself, or
    names a method that does."""
    seen.add(code)
    if _calls_self(code):
        return True
    modules = getattr(owner, "_modules", {})
    for name in code.co_names:
        if name == "forward" or (name in modules and _is_plain(modules[name])):
            return True
        method = getattr(getattr(type(owner), name, None), "__code__", None)
        if method is not None and method not in seen and not is_torch_file(method.co_filename):
            if _runs_modules(owner, method, seen):
                return True
    return False


def _calls_self(code: types.CodeType) -> bool:
    node = function_at(code.co_filename, code.co_name, code.co_firstlineno)
    calls = [call.func for call in ast.walk(node) if isinstance(call, ast.Call)] if node is not None else []
    return any(isinstance(called, ast.Name) and code.co_varnames[:1] == (called.id,) for called in calls)


def _is_plain(module: Any) -> bool:
    return not hasattr(module, "_orig_mod") and getattr(module, "_compiled_call_impl", None) is None
