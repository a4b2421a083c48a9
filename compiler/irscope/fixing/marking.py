"""Marks on the tensors whose sizes vary, before the call that compiled the function again."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from irscope.fixing.source import Source
from irscope.fixing.splitting import parameters
from irscope.fixing.syntax import Function, is_simple
from irscope.protocol import Finding, RecompilationFacts, RelatedRole


def triggering_call(source: Source, finding: Finding) -> ast.Call | None:
    """The call, in the file of the finding, whose arguments did not fit."""
    place = next((related for related in finding.related if related.role is RelatedRole.TRIGGER), None)
    call = source.at(place.range) if place is not None and place.file == finding.file else None
    call = call.value if isinstance(call, ast.Expr) else call
    return call if isinstance(call, ast.Call) else None


def argument_of(source: Source, function: Function, call: ast.Call, name: str) -> tuple[ast.expr, str] | None:
    """What a call gives to a parameter, and what takes it out of that: ``[1]`` of ``*arguments``, else empty; None if it is
    not certain."""
    arguments, order = arguments_of(source, call), [name for name in parameters(function) if name != "self"]
    by_name = {how: value for value, how in arguments}
    if name in by_name:
        return by_name[name], ""
    number = order.index(name) if name in order else -1
    for position, (value, how) in enumerate(arguments[: number + 1]):
        if how not in ("", "*"):
            return None
        if how or position == number:
            return value, f"[{number - position}]" if how else ""
    return None


def marked_at_call(source: Source, finding: Finding) -> str | None:
    """The text with all tensors marked whose sizes vary; None if it is not certain what the call passes."""
    call, torch, function = triggering_call(source, finding), source.torch, source.function_at(finding.range)
    statement = source.statement(call)
    varying = varying_sizes(finding)
    if call is None or statement is None or not is_simple(statement) or not varying:
        return None
    is_small = isinstance(finding.facts, RecompilationFacts) and finding.facts.has_size_0_or_1
    mark = f"{torch}._dynamo.decorators.mark_unbacked" if is_small else f"{torch}._dynamo.mark_dynamic"
    names, marked = dict[ast.AST, str](), list[str]()
    for path, dimensions in varying.items():
        expression = _passed(source, function, call, path, names)
        if expression is None:
            return None
        marked.append(f"{mark}({expression}, {dimensions[0] if len(dimensions) == 1 else dimensions})")
    _keep_order(source, call, names)
    return with_marks(source, statement, names, marked)


def with_marks(source: Source, statement: ast.stmt, names: Mapping[ast.AST, str], marks: Sequence[str]) -> str:
    """The text with marks before a statement with a call; arguments of the call that get names get them before that."""
    made = [f"{names[value]} = {source.code(value)}" for value in sorted(names, key=source.span)]
    return source.changed({statement: "\n".join([*dict.fromkeys(made), *marks, source.code(statement, names)])})


def varying_sizes(finding: Finding) -> dict[str, list[int]]:
    """The dimensions that vary, by the path of the tensor: ``x``, ``batch['ids']``."""
    varying = finding.facts.varying if isinstance(finding.facts, RecompilationFacts) else ()
    is_about_sizes = finding.code == "recompile-size" or sum(len(size.dimensions) for size in varying) > 1
    return {size.path: [*size.dimensions] for size in varying} if is_about_sizes else {}


def arguments_of(source: Source, call: ast.Call) -> list[tuple[ast.expr, str]]:
    """What a call passes, in order, with how: by a name, as ``*`` or ``**``, or by position (empty)."""
    passed = [(value.value, "*") if isinstance(value, ast.Starred) else (value, "") for value in call.args]
    passed += [(keyword.value, keyword.arg or "**") for keyword in call.keywords]
    return sorted(passed, key=lambda argument: source.span(argument[0]))


def _passed(source: Source, function: Function, call: ast.Call, path: str, names: dict[ast.AST, str]) -> str | None:
    """What the caller can call the tensor; new names are noted in ``names``."""
    head = re.match(r"\w+", path)
    argument = argument_of(source, function, call, head[0]) if head is not None else None
    if head is None or argument is None:
        return None
    value, taken = argument
    return f"{_named(source, value, 'arguments' if taken else head[0], names)}{taken}{path[head.end() :]}"


def _keep_order(source: Source, call: ast.Call, names: dict[ast.AST, str]) -> None:
    """Arguments before one that is made before the call are made before it, too: they may draw random numbers."""
    arguments = arguments_of(source, call)
    last = max((number for number, (value, _) in enumerate(arguments) if value in names), default=-1)
    for number, (value, how) in enumerate(arguments[: last + 1]):
        if not isinstance(value, ast.Constant):
            _named(source, value, "arguments" if how.startswith("*") else f"argument_{number}", names)


def _named(source: Source, value: ast.expr, name: str, names: dict[ast.AST, str]) -> str:
    """The name of an argument; what has none gets one before the call."""
    if isinstance(value, ast.Name):
        return value.id
    if value not in names:
        names[value] = source.fresh(name)
    return names[value]
