"""Which functions of the user's a compile walked through: the compiled one, and those that were inlined into it.

The graphs do not tell of all of them: a function that only calls others, or only looks at sizes and settings, leaves no
operation of its own behind.  Dynamo keeps a list of the code objects that it has walked through to their end.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable

from irscope.usercode import is_package_file, is_user_file

_FUNCTION, _VARIABLE = "_compile_inner", "tracer_output"
_MOST_FRAMES = 12


def traced_codes() -> list[types.CodeType]:
    """Dynamo's list, on the stack of a hook that sees the modified bytecode.

    Checked on torch 2.9 to 2.15.  Raises LookupError where it is not there.
    """
    frame: types.FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_name == _FUNCTION and frame.f_code.co_filename.endswith("convert_frame.py"):
            context = getattr(getattr(frame.f_locals.get(_VARIABLE), "output_graph", None), "tracing_context", None)
            codes = getattr(context, "traced_code", None)
            if isinstance(codes, list):
                return codes
        frame = frame.f_back
    raise LookupError(f"no list of code objects in {_FUNCTION} of torch._dynamo.convert_frame")


def functions_of(codes: Iterable[types.CodeType]) -> list[tuple[str, int, str]]:
    """File, first line and name of each function that is not PyTorch's or Python's own, in the order of the walk."""
    found: dict[tuple[str, int, str], None] = {}
    for code in codes:
        if is_user_file(code.co_filename) or is_package_file(code.co_filename):
            found[code.co_filename, code.co_firstlineno, code.co_name] = None
    return list(found)
