"""Where findings of each sort are, shared by the kinds."""

from __future__ import annotations

import ast

from irscope.events.stack import (
    FramePlace,
    innermost_user,
    places_now,
    related_to,
)
from irscope.findings.moment import Moment
from irscope.protocol import Compile, Finding, Origin, Range, Related, Severity
from irscope.usercode.source import function_around, function_at, nodes_at, range_of_line, range_of_name, range_of_node
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.function_names import RESUME_PREFIX, plain_name


def function_of(compile: Compile) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """The function in the syntax tree that a compile belongs to, a resume function's included."""
    if compile.function.startswith(RESUME_PREFIX):
        return function_around(compile.file, compile.line)
    return function_at(compile.file, compile.function, compile.line)


def function_range(compile: Compile) -> Range:
    """The name of a compile's function in its ``def`` line, else the line."""
    node = function_of(compile)
    return range_of_name(compile.file, node) if node is not None else range_of_line(compile.file, compile.line)


def at_expression(moment: Moment, **facts: object) -> Finding | None:
    """A finding at the innermost user expression of what is being traced, else of the Python stack."""
    places = places_now(moment.error)
    at = innermost_user(places)
    return None if at is None else _finding(moment, places[at], related_to(places, at), facts)


def at_function(moment: Moment, **facts: object) -> Finding | None:
    """A finding at the name of the function that is being compiled; of a library's function, at the user's call."""
    compile = moment.compile
    if compile is None or not is_user_file(compile.file):
        return at_expression(moment, **facts)
    return _finding(moment, FramePlace(compile.file, plain_name(compile.function), function_range(compile)), (), facts)


def at_origin(moment: Moment, origin: Origin, callee: str = "", **facts: object) -> Finding:
    """A finding at a line of which no column is known: at the call of ``callee`` if it is there, else the line."""
    calls = calls_at(origin, callee)
    where = range_of_node(origin.file, calls[-1]) if calls else range_of_line(origin.file, origin.line)
    return _finding(moment, FramePlace(origin.file, "", where), (), facts)


def calls_at(origin: Origin, callee: str) -> list[ast.Call]:
    """The calls of a function or method of this name in a line; none for an empty name."""
    calls = [node for node in nodes_at(origin.file, origin.line) if isinstance(node, ast.Call)]
    return [node for node in calls if callee and ast.unparse(node.func).rpartition(".")[2] == callee]


def _finding(moment: Moment, place: FramePlace, related: tuple[Related, ...], facts: dict[str, object]) -> Finding:
    compiles = (moment.record.compile,) if moment.record.compile else ()
    defaults: dict[str, object] = {"explanation": "", "hints": (), "link": None, "severity": Severity.INFORMATION}
    return Finding(
        file=place.file,
        range=place.range,
        count=1,
        compiles=compiles,
        related=related,
        **{**defaults, **facts},  # type: ignore[arg-type]
    )
