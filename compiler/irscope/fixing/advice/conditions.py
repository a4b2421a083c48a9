"""Python conditions on tensors, written as one tensor."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice.common import around
from irscope.fixing.advice.model import Advice
from irscope.fixing.advice.spot import Spot
from irscope.fixing.conditions import decided, is_flag, is_tensor
from irscope.fixing.source import bound_names, loaded_names

Decision = ast.If | ast.While | ast.IfExp | ast.Assert
_RELATION = re.compile(r"(?P<name>Eq|Ne)\((?P<left>[^,]+), (?P<right>[^,]+)\)")
_SIGNS = {"Eq": "==", "Ne": "!="}


def decision_at(spot: Spot) -> Decision | None:
    """The ``if``, ``while``, ``assert`` or conditional expression whose condition the break is in."""
    if isinstance(spot.node, Decision):
        return spot.node
    child: ast.AST | None = spot.node
    for node in spot.ancestors:
        match node:
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                return node if node.test is child else None
            case (
                ast.BoolOp()
                | ast.UnaryOp()
                | ast.Compare()
                | ast.BinOp()
                | ast.NamedExpr()
                | ast.Attribute(attr="item")
            ):
                pass
            case ast.Call(func=ast.Name(id="bool" | "float" | "all" | "any") | ast.Attribute(attr="item")):
                pass
            case _:
                return None
        child = node
    return None


def condition(spot: Spot, node: ast.expr) -> str | None:
    """A condition as an expression that gives one boolean tensor; None if it cannot be written so."""
    operands = [value for joined in spot.source.all(ast.BoolOp, node) for value in joined.values]
    names = [f"{spot.source.full_name(call.func)}/{spot.text(call.func)}" for call in spot.source.all(ast.Call, node)]
    is_numpy = any(name.startswith("numpy.") or name.endswith(".numpy") for name in names)
    if is_numpy or is_flag(node) or not all(looks_like_tensor(spot, value) for value in operands):
        return None
    return decided(spot.source, node)


def looks_like_tensor(spot: Spot, node: ast.expr) -> bool:
    """Whether an expression is a tensor by what is called in it, or in the assignment of its name."""
    if is_tensor(spot.source, node):
        return True
    if isinstance(node, ast.Name) and spot.functions:
        assigns = spot.source.all(ast.Assign, spot.functions[0])
        values = [assign.value for assign in assigns if node.id in bound_names(assign)]
        return bool(values) and all(not isinstance(v, ast.Name) and looks_like_tensor(spot, v) for v in values)
    return False


def symbols_readable(expression: str) -> str:
    """A condition on symbols as people write it: ``Eq(u0, 0)`` is ``u0 == 0``."""
    match = _RELATION.fullmatch(expression)
    return f"{match['left']} {_SIGNS[match['name']]} {match['right']}" if match else expression


def failed_assertion(spot: Spot, statement: ast.Assert) -> Advice:
    """An assertion that is false for what is known while tracing: no tensor's value is asked for."""
    what = f"`assert` fails during tracing: {spot.short(statement.test)} is false for this call"
    why = "That is known without any tensor's value, and plain Python runs the function to raise the error."
    names = set(loaded_names(statement.test))
    local = names <= {arg.arg for arg in spot.functions[0].args.args} if spot.functions else False
    before = f"assert {spot.text(statement.test)}" if local else ""
    return Advice(what, why, (around(spot, "Check it in the caller, before the compiled code", before),))
