"""The lines of the program that make an operation, and what of PyTorch/XLA the script called."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable

from irscope.capture.operation_graphs import Frames
from irscope.usercode.user_files import is_irscope_file, is_user_file

_HERE = os.path.dirname(os.path.abspath(__file__))
_CALLER = os.path.join(_HERE, "running.py")
"""What calls the program."""
_BEFORE = "_clear_pending_ops_before_compile"
BEFORE_STEP = "before a step"
"""What was pending when the context ``torch_xla.step()`` began."""
_RUNNER = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "runner") + os.sep
"""What runs the script."""


def program_frames(frames: Iterable[types.FrameType]) -> Frames:
    """File, line and function of the frames below the call of the program, or below the script's, outermost first.

    Args:
        frames: The stack, innermost first.
    """
    found: list[tuple[str, int, str]] = []
    for frame in frames:
        code = frame.f_code
        if (code.co_filename == _CALLER and code.co_name == "call") or code.co_filename.startswith(_RUNNER):
            break
        if not is_irscope_file(code.co_filename):
            found.append((code.co_filename, frame.f_lineno or 1, code.co_name))
    return tuple(reversed(found))


def asked_by(frames: Iterable[types.FrameType]) -> str:
    """The function of PyTorch/XLA that the user's code called: ``sync``, ``optimizer_step``; ``step`` for its context.

    Args:
        frames: The stack, innermost first.
    """
    found, is_before = "sync", False
    for frame in frames:
        code = frame.f_code
        file = code.co_filename.replace("\\", "/")
        if is_user_file(code.co_filename):
            break
        if file.endswith("/torch_xla/_dynamo/dynamo_bridge.py"):
            return "openxla"
        if "/torch_xla/" in file:
            found, is_before = code.co_name, is_before or code.co_name == _BEFORE
    return BEFORE_STEP if is_before else {"_compile": "step", "__next__": "loader"}.get(found, found)
