"""Python conditions on tensors, written as one tensor; and what a value at the break is used for."""

from __future__ import annotations

import ast
import itertools

from irscope.fixing.advice.common import around, assigned_name
from irscope.fixing.advice.model import Advice
from irscope.fixing.advice.spot import Spot
from irscope.fixing.conditions import decided, is_flag, is_tensor
from irscope.fixing.source import bound_names

Decision = ast.If | ast.While | ast.IfExp | ast.Assert


def decision_at(spot: Spot) -> Decision | None:
    """The ``if``, ``while``, ``assert`` or conditional expression whose condition the break is in."""
    if isinstance(spot.node, Decision):
        return spot.node
    for child, node in itertools.pairwise(spot.source.around(spot.node)):
        match node:
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                return node if node.test is child else None
            case ast.Call(func=ast.Name(id="bool" | "float" | "all" | "any") | ast.Attribute(attr="item")):
                pass
            case ast.Attribute(attr="item"):
                pass
            case ast.BoolOp() | ast.UnaryOp() | ast.Compare() | ast.BinOp() | ast.NamedExpr():
                pass
            case _:
                return None
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


def failed_assertion(spot: Spot, statement: ast.Assert) -> Advice:
    """An assertion that is false for what is known while tracing: no tensor's value is asked for."""
    what = f"`assert` fails during tracing: {spot.short(statement.test)} is false for this call"
    why = "That is known without any tensor's value, and plain Python runs the function to raise the error."
    do = "Check it in the caller, before the compiled code"
    return Advice(what, why, (around(spot, do, f"assert {spot.text(statement.test)}"),))


# --- what a value is used for --------------------------------------------------------------------------------------------


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
