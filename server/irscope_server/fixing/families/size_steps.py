"""What a function does first to arguments of some sizes, such as padding odd ones: done by a plain function around it.

Compiled code is made for each answer to a question about sizes, ``if x.shape[-1] % 2:``; the rest is then compiled for the
sizes after that step alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source
from irscope_server.fixing.splitting import can_be_split, is_method, with_before

_TITLE = "Do what depends on sizes before the compiled code"
_CAVEAT = "What is done there is no longer in the graph."
_SIZE = m.Attribute(attr=m.Name("shape")) | m.Call(func=m.Attribute(attr=m.Name("size") | m.Name("dim")))


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch, node = source.module_name("torch"), source.at(finding.range)
    function = source.function(node) if node is not None else None
    if torch is None or function is None or not can_be_split(source, function):
        return
    steps = _steps(source, function)
    if not steps:
        return
    changes: dict[cst.CSTNode, Change] = {one: cst.RemoveFromParent() for one in steps}
    lines = [source.code(one).strip("\n") for one in steps]
    yield Proposal(_TITLE, _CAVEAT, with_before(source, function, torch, lines, {}, changes), last=True)


def _steps(source: Source, function: cst.FunctionDef) -> list[cst.BaseStatement]:
    """The statements at the beginning that change an argument if its sizes are so: ``if x.shape[-1] % 2: x = pad(x)``."""
    assert isinstance(function.body, cst.IndentedBlock)
    own = [one.name.value for one in function.params.params][is_method(source, function) :]
    found: list[cst.BaseStatement] = []
    for one in function.body.body:
        if m.matches(one, m.SimpleStatementLine(body=[m.Expr(m.SimpleString())])):
            continue
        if not isinstance(one, cst.If) or one.orelse is not None or not _asks_sizes(source, one.test, set(own)):
            break
        assigns = [
            each.body[0] for each in one.body.body if isinstance(each, cst.SimpleStatementLine) and len(each.body) == 1
        ]
        if len(assigns) != len(one.body.body) or not all(_changes_argument(source, each, set(own)) for each in assigns):
            break
        found.append(one)
    return found


def _asks_sizes(source: Source, test: cst.BaseExpression, own: set[str]) -> bool:
    """Whether a condition reads nothing but sizes of arguments."""
    sizes = m.findall(test, _SIZE)
    inside = {name for one in sizes for name in m.findall(one, m.Name())}
    read = [one for one in m.findall(test, m.Name()) if one not in inside]
    heads = {source.code(one.value if isinstance(one, cst.Attribute) else one.func.value) for one in sizes}  # type: ignore[attr-defined]
    return bool(sizes) and heads <= own and all(source.code(one) in source.constants for one in read)


def _changes_argument(source: Source, node: cst.BaseSmallStatement, own: set[str]) -> bool:
    """``x = pad(x, (0, 1))``: of arguments and functions of modules alone."""
    if not m.matches(node, m.Assign(targets=[m.AssignTarget(target=m.Name())], value=m.Call())):
        return False
    assign = cst.ensure_type(node, cst.Assign)
    heads = {source.code(one).partition(".")[0] for one in m.findall(assign.value, m.Name() | m.Attribute())}
    words = {source.code(cst.ensure_type(one, cst.Attribute).attr) for one in m.findall(assign.value, m.Attribute())}
    keywords = {
        one.keyword.value for one in m.findall(assign.value, m.Arg()) if isinstance(one, cst.Arg) and one.keyword
    }
    known = own | set(source.imported_names) | set(source.constants) | words | keywords
    return source.code(assign.targets[0].target) in own and {one for one in heads if one.isidentifier()} <= known


FAMILY = Family("size steps", ("recompilation",), _propose, ("recompile-condition",))
