"""A generator function that is compiled itself.

Dynamo refuses it before there is a compile, so that the trace has no record of it.  It is a graph break of which the
whole function is the place, and under ``fullgraph=True`` a compile error.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator

from irscope.events.break_message import BreakMessage, code_of_type
from irscope.events.stack import FramePlace, related_to, with_traced
from irscope.findings.detector import Detector
from irscope.findings.kinds import compile_error, graph_break
from irscope.findings.moment import Moment
from irscope.internals.unrecorded import refused_generators
from irscope.protocol import Finding
from irscope.usercode.source import function_at, range_of_line, range_of_name
from irscope.usercode.user_files import is_user_file

_TYPE = "Attempt to trace generator"


def detect(_moment: Moment, code: types.CodeType, fullgraph: bool) -> Iterator[Finding]:
    """The finding of a code object that Dynamo has refused."""
    if (finding := make(code, fullgraph)) is not None:
        yield finding


def make(code: types.CodeType, fullgraph: bool) -> Finding | None:
    """The finding at the function's name; None for a function of a library."""
    if not is_user_file(code.co_filename):
        return None
    node = function_at(code.co_filename, code.co_name, code.co_firstlineno)
    where = (
        range_of_name(code.co_filename, node)
        if node is not None
        else range_of_line(code.co_filename, code.co_firstlineno)
    )
    place = FramePlace(code.co_filename, code.co_name, where)
    cause = BreakMessage(_TYPE, "Generators cannot be compiled by themselves.", (), "", code_of_type(_TYPE), None)
    places = with_traced([place])
    words = graph_break.words_at(places, len(places) - 1, [cause], "", skipped=not fullgraph)
    finding = Finding(
        kind=graph_break.KIND.id,
        code=cause.code or graph_break.KIND.id,
        severity=graph_break.KIND.severity,
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
        finding,
        kind=compile_error.KIND.id,
        severity=compile_error.KIND.severity,
        message=f"Compilation failed: {headline}",
    )


DETECTORS = (Detector("compiled-generator", detect, hook=refused_generators),)
