"""What a value at the break is used for."""

from __future__ import annotations

import ast

from irscope.fixing.advice.spot import Spot


def uses_of_value(spot: Spot) -> set[str]:
    """What the value is used for, where it is made or where the name that it gets is read later.

    The words are ``arithmetic``, ``decision``, ``text``, ``index``, ``range``, ``argument`` and ``result``.
    """
    node, statement = spot.expression, spot.statement
    if node is None:
        return set()
    if isinstance(statement, ast.Assign) and statement.value is node and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        return {_use(spot, n) for n in _reads(spot, name)}
    return {_use(spot, node)}


def readers_of_value(spot: Spot, kinds: tuple[type[ast.stmt], ...]) -> list[ast.stmt]:
    """The statements of some kinds that read the name that the value gets."""
    statement = spot.statement
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return []
    found = []
    for read in _reads(spot, statement.targets[0].id):
        reader = next((a for a in spot.ancestors_of(read) if isinstance(a, ast.stmt)), None)
        if isinstance(reader, kinds):
            found.append(reader)
    return found


def _reads(spot: Spot, name: str) -> list[ast.Name]:
    function = spot.functions[0] if spot.functions else None
    after = spot.context.range.end
    return [
        n
        for n in (ast.walk(function) if function is not None else ())
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and n.lineno > after.line
    ]


def _use(spot: Spot, node: ast.AST) -> str:
    for child, parent in zip([node, *spot.ancestors_of(node)], spot.ancestors_of(node), strict=False):
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
