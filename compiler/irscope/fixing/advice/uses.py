"""What a value at the break is used for."""

from __future__ import annotations

import ast
import itertools

from irscope.fixing.advice.common import assigned_name
from irscope.fixing.advice.spot import Spot


def uses_of_value(spot: Spot) -> set[str]:
    """What the value is used for, where it is made or where the name that it gets is read later.

    The words are ``decision``, ``text``, ``index``, ``range``, ``argument`` and ``result``.
    """
    node, name = spot.expression, assigned_name(spot.statement)
    if name and spot.source.parent(node) is spot.statement:
        return {_use(spot, read) for read in _reads(spot, name)}
    return {_use(spot, node)} if node is not None else set()


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
        match parent:
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert() if parent.test is child:
                return "decision"
            case ast.FormattedValue() | ast.JoinedStr():
                return "text"
            case ast.Slice() | ast.Subscript():
                return "index"
            case ast.Call():
                return "range" if spot.source.full_name(parent.func) == "range" else "argument"
            case ast.Attribute() if child is node:
                return "argument"
            case ast.BinOp() if not isinstance(parent.op, ast.Mod):
                break
            case ast.stmt():
                break
    return "result"
