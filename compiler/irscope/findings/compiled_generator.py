"""A generator function that is compiled itself.

Dynamo refuses it before there is a compile, so that the trace has no record of it.  It is a graph break of which the
whole function is the place, and under ``fullgraph=True`` a compile error.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.capture.stack import Place, live_places, related_to
from irscope.findings import graph_break
from irscope.findings.breakmessage import BreakMessage, code_of_type
from irscope.protocol import Finding, Severity
from irscope.source import function_at, range_of_line, range_of_name
from irscope.usercode import is_user_file

KIND = "graph-break"
_TYPE = "Attempt to trace generator"


def hook(receive: Callable[[types.CodeType, bool], None]) -> Hook:
    """Sees the code objects that Dynamo finds to be generators, when it was asked to compile just these.

    A generator that runs below a compiled function is refused too; there it is the break above it that matters.
    """

    def apply(convert_frame: Any) -> Undo:
        original = convert_frame.is_generator

        def is_generator(code: types.CodeType) -> Any:
            found = original(code)
            if found and (asked := _asked()) is not None:
                receive(code, asked)
            return found

        return replace_attribute(convert_frame, "is_generator", is_generator)

    return Hook("generator functions that are compiled themselves", "torch._dynamo.convert_frame", "2.9 to 2.15", apply)


def _asked() -> bool | None:
    """Whether ``fullgraph`` is asked of the frame at hand; nothing where it was not ``torch.compile`` that called it."""
    fullgraph = False
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.endswith("convert_frame.py"):
        fullgraph = bool(getattr(frame.f_locals.get("self"), "_one_graph", fullgraph))
        frame = frame.f_back
    return fullgraph if frame is not None and frame.f_code.co_filename.endswith("eval_frame.py") else None


def make(code: types.CodeType, fullgraph: bool) -> Finding | None:
    """The finding at the function's name; nothing for a function of a library."""
    if not is_user_file(code.co_filename):
        return None
    node = function_at(code.co_filename, code.co_name, code.co_firstlineno)
    where = (
        range_of_name(code.co_filename, node)
        if node is not None
        else range_of_line(code.co_filename, code.co_firstlineno)
    )
    place = Place(code.co_filename, code.co_name, where)
    cause = BreakMessage(_TYPE, "Generators cannot be compiled by themselves.", (), "", code_of_type(_TYPE), None)
    words = graph_break.words_at(place, [cause], "", skipped=not fullgraph)
    places = [*live_places(), place]
    finding = Finding(
        kind=KIND,
        code=cause.code or KIND,
        severity=Severity.WARNING,
        message=words.message,
        explanation=words.explanation,
        hints=words.hints,
        link=f"https://meta-pytorch.github.io/compile-graph-break-site/gb/{cause.code.lower()}.html"
        if cause.code
        else None,
        file=place.file,
        range=place.range,
        count=1,
        compiles=(),
        related=related_to(places, len(places) - 1),
        fixes=graph_break.fixes_of(words),
    )
    if not fullgraph:
        return finding
    headline = words.message.replace("the graph is cut here", "and fullgraph=True allows no graph break")
    return dataclasses.replace(
        finding, kind="compile-error", severity=Severity.ERROR, message=f"Compilation failed: {headline}"
    )
