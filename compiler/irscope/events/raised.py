"""The exception that ended a script, as plain data: its stack says whether compiled code raised it."""

from __future__ import annotations

import linecache
import os
import types

from irscope.events.stack import range_at
from irscope.internals.frames import is_in
from irscope.protocol import Origin, Raised, StackFrame
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.visible import bounded

_MOST_FRAMES = 100
"""The most frames at each end of a deep stack."""
_IRSCOPE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def raised_of(error: BaseException) -> Raised:
    """The exception with its stack, without irscope's own frames, and its text if it passed through torch's code.

    An exception of the script's alone is not asked for its text: that may run code of the script's.
    """
    found: list[types.TracebackType] = []
    traceback = error.__traceback__
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_IRSCOPE):
            found.append(traceback)
        traceback = traceback.tb_next
    text = bounded(str(error)) if any(is_in(each.tb_frame.f_code, "/torch/") for each in found) else ""
    if len(found) > 2 * _MOST_FRAMES:
        found = [*found[:_MOST_FRAMES], *found[-_MOST_FRAMES:]]
    return Raised(type(error).__name__, text, tuple(_frame(each) for each in found))


def place_of(error: BaseException) -> Origin | None:
    """The line to name for an exception: a syntax error's own, else the innermost of the user's files, else the outermost
    that ran outside of irscope."""
    if isinstance(error, SyntaxError):
        return Origin(error.filename, error.lineno or 1) if error.filename else None
    place = None
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(("<", _IRSCOPE)) and (place is None or is_user_file(file)):
            place = Origin(file, traceback.tb_lineno or 0)
        traceback = traceback.tb_next
    return place


def _frame(traceback: types.TracebackType) -> StackFrame:
    code, line = traceback.tb_frame.f_code, traceback.tb_lineno or 1
    where = range_at(code, line, traceback.tb_lasti) if is_user_file(code.co_filename) else None
    text = linecache.getline(code.co_filename, line) if code.co_filename.startswith("<eval_with_key>") else ""
    return StackFrame(code.co_filename, line, code.co_name, where, bounded(text.strip()))
