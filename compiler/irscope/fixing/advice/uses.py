"""What a value at the break is used for."""

from __future__ import annotations

import ast
import itertools

from irscope.fixing.advice.common import assigned_name
from irscope.fixing.advice.spot import Spot


def uses_of_value(spot: Spot) -> set[str]:
    """What the value is used for, where it is made or where the name that it gets is read later.

    The words are ``arithmetic``, ``decision``, ``text``, ``index``, ``range``, ``argument`` and ``result``.
    """
    node, statement = spot.expression, spot.statement
    if node is None:
        return set()
    if (name := assigned_name(statement)) and isinstance(statement, ast.Assign) and statement.value is node:
        return {_use(spot, n) for n in _reads(spot, name)}
    return {_use(spot, node)}


def decision_later(spot: Spot) -> str:
    """The first line of the first ``if`` or ``while`` that reads the name that the value gets; else empty."""
    name = assigned_name(spot.statement)
    readers = [spot.source.statement(read) for read in _reads(spot, name)] if name else []
    return next((spot.text(node).split("\n")[0] for node in readers if isinstance(node, (ast.If, ast.While))), "")


def _reads(spot: Spot, name: str) -> list[ast.Name]:
    names = spot.source.all(ast.Name, spot.functions[0]) if spot.functions else []
    last = spot.context.range.end.line
    return [n for n in names if n.id == name and isinstance(n.ctx, ast.Load) and n.lineno > last]


def _use(spot: Spot, node: ast.AST) -> str:
    for child, parent in itertools.pairwise(spot.source.around(node)):
        if isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Mod):
            return "arithmetic"
        if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)) and parent.test is child:
            return "decision"
        if isinstance(parent, (ast.FormattedValue, ast.JoinedStr)):
            return "text"
        if isinstance(parent, (ast.Slice, ast.Subscript)):
            return "index"
        if isinstance(parent, ast.Call):
            return "range" if spot.qualified(parent.func) == "range" else "argument"
        if isinstance(parent, ast.stmt):
            return "result"
        if isinstance(parent, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            continue
        if child is node and isinstance(parent, ast.Attribute):
            return "argument"
    return "result"
