"""Marks on the tensors whose sizes vary, before the call that compiled the function again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst
from irscope.protocol import Finding, RecompilationFacts, RelatedRole

from irscope_server.fixing.source import Source, statements


@dataclass
class _Call:
    """The call as it will be: what is made before it, its arguments, and what is marked."""

    made: dict[cst.Arg, str] = field(default_factory=dict)
    marked: list[str] = field(default_factory=list)
    arguments: dict[cst.Arg, cst.BaseExpression] = field(default_factory=dict)


def marked_at_call(source: Source, finding: Finding) -> str | None:
    """The text with all tensors marked whose sizes vary; None if it is not certain what the call passes."""
    place = next((one for one in finding.related if one.role is RelatedRole.TRIGGER), None)
    node = source.at(finding.range)
    function = source.function(node) if node is not None else None
    if place is None or place.file != finding.file or function is None:
        return None
    call = source.at(place.range)
    statement = source.statement(call) if call is not None else None
    if not isinstance(call, cst.Call) or not isinstance(statement, cst.SimpleStatementLine):
        return None
    torch = source.module_name("torch")
    varying = dict(varying_sizes(finding))
    if torch is None or not varying:
        return None
    is_small = isinstance(finding.facts, RecompilationFacts) and finding.facts.has_size_0_or_1
    mark = f"{torch}._dynamo.decorators.mark_unbacked" if is_small else f"{torch}._dynamo.mark_dynamic"
    made = _Call()
    for path, dimensions in varying.items():
        expression = _passed(source, function, call, path, made)
        if expression is None:
            return None
        made.marked.append(f"{mark}({expression}, {dimensions[0] if len(dimensions) == 1 else dimensions})")
    _keep_order(source, call, made)
    lines = statements("\n".join([*(made.made[arg] for arg in call.args if arg in made.made), *made.marked]))
    lines[0] = lines[0].with_changes(leading_lines=statement.leading_lines)
    changed = call.with_changes(
        args=[arg.with_changes(value=made.arguments[arg]) if arg in made.arguments else arg for arg in call.args]
    )
    after = statement.with_changes(leading_lines=[]).deep_replace(call, changed)
    assert isinstance(after, cst.BaseStatement)
    return source.changed({statement: cst.FlattenSentinel([*lines, after])})


def varying_sizes(finding: Finding) -> Iterator[tuple[str, list[int]]]:
    """The dimensions that vary, by the path of the tensor: ``x``, ``batch['ids']``."""
    varying = finding.facts.varying if isinstance(finding.facts, RecompilationFacts) else ()
    is_about_sizes = finding.code == "recompile-size" or sum(len(size.dimensions) for size in varying) > 1
    yield from ((size.path, [*size.dimensions]) for size in varying if is_about_sizes)


def _passed(source: Source, function: cst.FunctionDef, call: cst.Call, path: str, made: _Call) -> str | None:
    """What the caller can call the tensor; new names are noted in ``made``."""
    head = re.match(r"\w+", path)
    params = [one.name.value for one in (*function.params.posonly_params, *function.params.params)]
    if head is None or not head[0]:
        return None
    name, rest = head[0], path[head.end() :]
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return f"{_named(source, arg, name, made)}{rest}"
    params = params[1:] if params[:1] == ["self"] else params
    if name not in params:
        return None
    number = params.index(name)
    for position, arg in enumerate(call.args):
        if arg.star == "*" and position <= number:
            return f"{_named(source, arg, 'arguments', made)}[{number - position}]{rest}"
        if arg.star or arg.keyword is not None:
            return None
        if position == number:
            return f"{_named(source, arg, name, made)}{rest}"
    return None


def _keep_order(source: Source, call: cst.Call, made: _Call) -> None:
    """Arguments before one that is made before the call are made before it, too: they may draw random numbers."""
    last = max((number for number, arg in enumerate(call.args) if arg in made.made), default=-1)
    for number, arg in enumerate(call.args[: last + 1]):
        if arg not in made.made and not isinstance(arg.value, (cst.Name, cst.Integer, cst.Float, cst.SimpleString)):
            _named(source, arg, "arguments" if arg.star else f"argument_{number}", made)


def _named(source: Source, arg: cst.Arg, name: str, made: _Call) -> str:
    """The name of an argument; what has none gets one before the call."""
    if isinstance(arg.value, cst.Name):
        return arg.value.value
    known = made.arguments.get(arg)
    if isinstance(known, cst.Name):
        return known.value
    function = source.function(arg)
    local = source.names if function is None or name in source.names else frozenset()
    fresh = source.fresh(name) if name in local else name
    made.arguments[arg] = cst.Name(fresh)
    made.made[arg] = f"{fresh} = {source.code(arg.value)}"
    return fresh
