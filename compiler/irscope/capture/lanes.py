"""What each lane changes in PyTorch."""

from __future__ import annotations

import sys
import types
from typing import Any

from irscope.capture.caches import deep_hooks
from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.protocol import Lane


def hooks_for(lane: Lane) -> list[Hook]:
    return [_EAGER_BACKEND] if lane is Lane.FAST else deep_hooks()


def _use_eager_backend(eval_frame: types.ModuleType) -> Undo:
    """Lets Dynamo hand its graphs to the eager back end where the script asks for a registered compiler.

    A back end that is the user's own function runs as it is: its failures are findings too.
    """
    original = eval_frame.get_compiler_fn

    def get_compiler_fn(compiler_fn: Any) -> Any:
        return original("eager" if _is_registered(compiler_fn) else compiler_fn)

    return replace_attribute(eval_frame, "get_compiler_fn", get_compiler_fn)


def _is_registered(compiler_fn: Any) -> bool:
    """Whether a back end is one of PyTorch's registry.

    ``torch.compile`` wraps what it was given: Inductor in a class of its own, anything else in one that holds the
    function as ``compiler_fn``, the user's own function too.
    """
    registry: Any = sys.modules["torch._dynamo.backends.registry"]
    if isinstance(compiler_fn, str):
        if compiler_fn not in registry._BACKENDS:
            registry._lazy_import()
        return compiler_fn in registry._BACKENDS  # an unknown name fails, as without irscope
    if not hasattr(compiler_fn, "compiler_name"):
        return False
    function = getattr(compiler_fn, "compiler_fn", None)
    return function is None or any(function is known for known in registry._COMPILER_FNS.values())


_EAGER_BACKEND = Hook(
    what="the fast lane: the script's own back end was used instead of the eager one",
    module="torch._dynamo.eval_frame",
    versions="2.9 to 2.13",
    apply=_use_eager_backend,
)
