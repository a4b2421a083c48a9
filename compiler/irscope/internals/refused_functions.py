"""The function that a graph break is about: one under ``torch.compiler.disable``, or one that Dynamo does not trace.

PyTorch's message has its name alone, and of a wrapper that ``functools.wraps`` made the name of what it wraps.
"""

from __future__ import annotations

import traceback
import types
from typing import Any

from irscope.internals.frames import FrameLook

_WHAT = "which function is under torch.compiler.disable"
_INLINED = FrameLook(
    what=_WHAT,
    function="check_inlineable",
    file="torch/_dynamo/symbolic_convert.py",
    local="func",
    fits=lambda value: callable(getattr(value, "get_function", None)),
    versions="2.13",
)
_CALLED = FrameLook(
    what=_WHAT,
    function="call_function",
    file="torch/_dynamo/variables/functions.py",
    local="self",
    fits=lambda value: callable(getattr(value, "call_function", None)),
    versions="2.13",
)
_MOST_WRAPPERS = 20


def refused_function(error: BaseException | None) -> types.CodeType | None:
    """The code of the function that Dynamo did not go into when it raised an error; None if it is not known, or not a
    function of Python."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
            if _INLINED.is_at(frame):
                return _code_of(_INLINED.read(frame).get_function())
            if _CALLED.is_at(frame):
                return _code_of(getattr(_CALLED.read(frame), "value", None))
        error = error.__cause__ or error.__context__
    return None


def _code_of(function: Any) -> types.CodeType | None:
    """The code below decorators."""
    for _ in range(_MOST_WRAPPERS):
        inner = getattr(function, "_torchdynamo_orig_callable", None) or getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None
