"""Calls of the script that go around compiled code: methods of a compiled module, and hooks that it does not know.

PyTorch leaves no record of either.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.names import PrivateName
from irscope.usercode.user_files import is_torch_file

_METHODS = "calls of methods of a compiled module, which are not compiled"
_LATE = "hooks that are added to a module after it was compiled"
_VERSIONS = "2.13"
_SKIPS_HOOKS = PrivateName(_LATE, "torch._dynamo.config", "skip_nnmodule_hook_guards", _VERSIONS)
_REGISTER = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
)
_inlined: weakref.WeakSet[Any] = weakref.WeakSet()
"""The modules whose calls are in graphs, with the hooks that they had."""


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


def modules_inlined(_receive: object) -> Hook:
    """Keeps which modules are called in traced code: those that are compiled with the hooks that they have then."""

    def apply(nn_module: types.ModuleType) -> Undo:
        variable: Any = nn_module.__dict__["UnspecializedNNModuleVariable"]
        original = variable.call_function

        @functools.wraps(original)
        def call_function(self: Any, *args: Any, **kwargs: Any) -> Any:
            _inlined.add(self.value)
            return original(self, *args, **kwargs)

        return replace_attribute(variable, "call_function", call_function)

    return Hook(_LATE, "torch._dynamo.variables.nn_module", _VERSIONS, apply)


def late_hooks(receive: Callable[[str, str], None]) -> Hook:
    """Calls back when the script adds a hook to a module whose calls are in graphs: the name of the class, and the method
    that added it."""

    def apply(module: types.ModuleType) -> Undo:
        cls: Any = module.__dict__["Module"]
        return undo_all([replace_attribute(cls, name, seen(getattr(cls, name))) for name in _REGISTER])

    def seen(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def register(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self in _inlined and _SKIPS_HOOKS.find():
                receive(type(self).__name__, original.__name__)
            return original(self, *args, **kwargs)

        return register

    return Hook(_LATE, "torch.nn.modules.module", _VERSIONS, apply)
