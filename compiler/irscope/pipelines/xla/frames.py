"""The lines of the program that make an operation."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable

from irscope.capture.operation_graphs import Frames
from irscope.usercode.user_files import is_irscope_file

_CALLER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "running.py")
"""What calls the program."""


def program_frames(frames: Iterable[types.FrameType]) -> Frames:
    """File, line and function of the frames below the call of the program, outermost first.

    Parameters
    ----------
    frames
        The stack, innermost first.
    """
    found: list[tuple[str, int, str]] = []
    for frame in frames:
        code = frame.f_code
        if code.co_filename == _CALLER and code.co_name == "call":
            break
        if not is_irscope_file(code.co_filename):
            found.append((code.co_filename, frame.f_lineno or 1, code.co_name))
    return tuple(reversed(found))
