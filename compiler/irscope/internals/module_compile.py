"""Modules on which ``compile()`` was called, and of which Dynamo will not compile anything.

``Module.compile`` compiles ``Module._call_impl``.  Dynamo skips that frame, because its file is PyTorch's, and looks at
the frames below it: the ``forward`` of the module and of those in it.  It skips those of PyTorch's own modules, too.  No
record of the trace says so.  PyTorch 2.14 compiles them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import callers, is_in
from irscope.internals.hooks import Hook, Undo, replace_attribute
from irscope.internals.names import PrivateName

_WHAT = "calls of compile() on modules of which nothing is compiled"
_VERSIONS = "2.9 to 2.15"
_SKIPS = PrivateName(_WHAT, "torch._dynamo.trace_rules", "check", _VERSIONS)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OWN = ("torch.nn.", "torch.ao.")
"""Where modules of PyTorch's are whose ``forward`` Dynamo compiles all the same if they have hooks."""


def skipped_modules(receive: Callable[[str], None]) -> Hook:
    """Calls back with the name of the class, on the stack of the call."""

    def apply(module: Any) -> Undo:
        original = module.Module.compile

        @functools.wraps(original)
        def compile(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if _is_skipped(self):
                receive(_name_of(type(self)))
            return result

        return replace_attribute(module.Module, "compile", compile)

    return Hook(what=_WHAT, module="torch.nn.modules.module", versions=_VERSIONS, apply=apply)


def _is_skipped(module: Any) -> bool:
    """Whether Dynamo skips the call of a module, and each ``forward`` in it."""
    # From 2.14 on, and with `wrap_top_frame`, Dynamo puts a frame around it that it does not skip.
    skips, called = _SKIPS.find(), getattr(module._compiled_call_impl, "_torchdynamo_orig_callable", None)
    code = getattr(called, "__code__", None)
    if skips is None or code is None or not skips(code):
        return False
    return all(_skips_forward(each, skips) for each in module.modules())


def _skips_forward(module: Any, skips: Callable[[Any], bool]) -> bool:
    code = getattr(getattr(module.forward, "__func__", None), "__code__", None)
    if code is None or not skips(code):
        return False
    return not (type(module).__module__.startswith(_OWN) and any(getattr(module, each, None) for each in _HOOKS))


def is_in_plain_module() -> bool:
    """Whether the call that is compiled now is made by a module that is not compiled itself."""
    is_outside = False
    for frame in callers():
        if is_in(frame.f_code, "torch/_dynamo/eval_frame.py"):
            is_outside = True
        elif is_outside and frame.f_code.co_name == "_call_impl" and is_in(frame.f_code, "torch/nn/modules/module.py"):
            if not hasattr(frame.f_locals.get("self"), "_orig_mod"):
                return True
    return False


def _name_of(cls: type) -> str:
    """PyTorch's name of a class; FSDP2 replaces the class of each module that it shards."""
    fsdp = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", None)
    return next((each.__name__ for each in cls.__mro__ if fsdp is None or not issubclass(each, fsdp)), cls.__name__)
