"""What a finding's detector is given: one record of the trace, with what is around it at this very moment."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any

from irscope.capture.trace import Record
from irscope.protocol import Compile


@dataclass(frozen=True)
class Moment:
    """A record, as it happens.

    Parameters
    ----------
    record
        The event.
    compile
        What is known of the compile it belongs to; nothing where it belongs to none or to one not begun.
    error
        The exception in flight, if any.
    fullgraph
        Whether a graph break is an error here.
    """

    record: Record
    compile: Compile | None
    error: BaseException | None
    fullgraph: bool


def look(record: Record, compile: Compile | None) -> Moment:
    """The moment at which a record is being handled.

    Dynamo's ``log_graph_break`` is sometimes called after the exception has been caught, so the exception is looked
    for in its arguments first; ``_compile`` knows whether the whole function must be one graph.  Both are looked up as
    local variables of frames on the stack, by names checked on torch 2.13; where they are missing, the exception is
    the one being handled, and ``fullgraph`` is false.
    """
    error, fullgraph = sys.exc_info()[1], False
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        name, file = frame.f_code.co_name, frame.f_code.co_filename
        if name == "log_graph_break" and file.endswith("symbolic_convert.py"):
            found: Any = frame.f_locals.get("exc")
            error = found if isinstance(found, BaseException) else error
        elif name == "_compile" and file.endswith("convert_frame.py"):
            fullgraph = bool(frame.f_locals.get("one_graph"))
            break
        frame = frame.f_back
    return Moment(record, compile, error, fullgraph)
