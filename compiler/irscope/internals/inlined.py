"""Which functions of the user's a compile walked through: the compiled one, and those that were inlined into it.

The graphs do not show all of them: a function that only calls others, or only looks at sizes and settings, leaves no
operation there.  Dynamo keeps a list of the code objects that it has walked through to their end.
"""

from __future__ import annotations

import types
from collections.abc import Iterable

from irscope.internals.frames import FrameLook
from irscope.usercode.user_files import is_package_file, is_user_file

TRACED_CODES = FrameLook(
    what="functions that were inlined into compiled ones",
    function="_compile_inner",
    file="torch/_dynamo/convert_frame.py",
    local="tracer_output.output_graph.tracing_context.traced_code",
    fits=lambda value: isinstance(value, list),
    versions="2.13",
)


def traced_codes() -> list[types.CodeType]:
    """Dynamo's list, on the stack of a hook that sees the modified bytecode; empty if it cannot be found."""
    return TRACED_CODES.find() or []


def functions_of(codes: Iterable[types.CodeType]) -> list[tuple[str, int, str]]:
    """File, first line and name of each function that is not PyTorch's or Python's own, in the order of the walk."""
    found: dict[tuple[str, int, str], None] = {}
    for code in codes:
        if is_user_file(code.co_filename) or is_package_file(code.co_filename):
            found[code.co_filename, code.co_firstlineno, code.co_name] = None
    return list(found)
