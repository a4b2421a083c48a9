"""``with`` blocks that Dynamo cannot enter, or breaks inside of those that it can."""

from __future__ import annotations

import ast

from irscope.fixing.advice.common import SAME_EACH_CALL, around, assigned_name, called, pass_in, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names
from irscope.fixing.syntax import Definition

_FACTORIES = {"zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "linspace", "tensor", "eye",
              "randperm", "as_tensor", "logspace"}  # fmt: skip


def unsupported_context(spot: Spot) -> Advice:
    """``with lock:``, ``with open(…):``, ``with torch.device(…):``, …"""
    block = _with(spot)
    if block is None:
        what = f"{spot.short(spot.expression)} enters a `with` block that Dynamo does not know"
        return Advice(what, spot.cause.explanation, some(pass_in(spot, spot.expression, "")))
    item = block.items[0].context_expr
    kind = spot.qualified(item.func) if isinstance(item, ast.Call) else ""
    what = f"`with {spot.text(item)}:` cannot be entered while tracing"
    if kind == "torch.device":
        why = "It changes where tensors are made, by a mode that Dynamo does not enter as a `with` block."
        return Advice(what, why, some(_on_device(spot, block, item), _around(spot, block)))
    why = "Dynamo knows what torch's own context managers do to a graph, and those written in Python; not this one."
    if any(other.optional_vars is not None for other in block.items):
        return Advice(what, why, some(_read_above(spot, block), _read_in_caller(spot, block)))
    return Advice(what, why, (_around(spot, block),))


def opened(spot: Spot) -> Advice | None:
    """``with open(…) as file:``, where the call in its head breaks; None for another place."""
    block = _with(spot)
    if block is None or not any(item.context_expr is spot.expression for item in block.items):
        return None
    what = f"{spot.short(spot.expression)} opens a file while tracing"
    why = "A graph holds operations on tensors; files must be read or written before or after it."
    return Advice(what, why, some(_read_above(spot, block), _read_in_caller(spot, block)))


def _bound(block: ast.With) -> str:
    """The one name that a block binds, apart from that in its head: ``text`` of ``text = file.read()``; else empty."""
    made = block.body[0]
    is_alone = len(block.body) == 1 and isinstance(made, ast.Assign) and len(made.targets) == 1
    return assigned_name(made) if is_alone else ""


def _names_in_head(block: ast.With) -> set[str]:
    return {name for item in block.items if item.optional_vars for name in bound_names(item.optional_vars)}


def _read_above(spot: Spot, block: ast.With) -> Option | None:
    """Reads the file once, above the function."""
    name = _bound(block)
    heads = _names_in_head(block)
    function = spot.functions[0] if spot.functions else None
    if not name or function is None or not spot.source.owns_lines(block):
        return None
    bound, read = {name, *heads}, set(loaded_names(block)) - heads
    stored = [n for n in spot.source.all(ast.Name, function) if n.id in bound and isinstance(n.ctx, ast.Store)]
    at_top = [statement for statement in spot.source.tree.body if not isinstance(statement, Definition)]
    is_taken = any(bound & bound_names(statement) for statement in at_top)
    if len(stored) != len(bound) or is_taken or not spot.hoistable_names(read):
        return None
    text = spot.block([block])
    do, code = "Read it once, outside of the compiled code", f"{text}   # above the function"
    return Option(do, code, SAME_EACH_CALL, (spot.above(text), spot.without(block)))


def _read_in_caller(spot: Spot, block: ast.With) -> Option:
    """Reads the file in the caller, and passes in what was read; nothing is passed from a block that writes."""
    name = _bound(block)
    do = "Do what the block does in the caller" + (f", and pass `{name}` in" if name else "")
    heads = _names_in_head(block)
    local = {n for statement in block.items + block.body for n in loaded_names(statement)} & spot.local_names()
    if not name or local - heads:
        return Option(do)
    return Option(do, f"{spot.block([block])}\nresult = {called(spot, name)}")


def inside_context(spot: Spot) -> Advice:
    """A break whose cause is that a ``with`` block would have to be left and entered again."""
    block = _with(spot)
    shown = f"`with {spot.text(block.items[0].context_expr)}:`" if block is not None else "the `with` block"
    what = f"{spot.short(spot.expression)} breaks the graph inside of {shown}"
    why = "A graph that is cut inside of a `with` block cannot go on in it."
    return Advice(what, why, (Option("Move what breaks out of the block"),))


def _with(spot: Spot) -> ast.With | None:
    node = (
        spot.source.first_around(spot.node, (ast.With, ast.FunctionDef, ast.Lambda)) if spot.node is not None else None
    )
    return node if isinstance(node, ast.With) else None


def _around(spot: Spot, block: ast.With) -> Option:
    do = "Put the block around the call of the compiled code"
    return around(spot, do, f"with {', '.join(map(spot.text, block.items))}:")


def _on_device(spot: Spot, block: ast.With, item: ast.expr) -> Option | None:
    """Gives ``device=`` to the factories in the block, and dissolves it."""
    if not isinstance(item, ast.Call) or len(block.items) != 1 or len(item.args) != 1 or block.items[0].optional_vars:
        return None
    text = spot.block(block.body)
    calls = [call for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call) and _is_factory(spot, call)]
    calls = [call for call in calls if all(keyword.arg != "device" for keyword in call.keywords)]
    if not calls:
        return None
    lines = text.split("\n")
    for call in sorted(calls, key=lambda c: (c.end_lineno or 0, c.end_col_offset or 0), reverse=True):
        row, column = (call.end_lineno or 1) - 1, (call.end_col_offset or 1) - 1
        encoded = lines[row].encode()
        comma = ", " if call.args or call.keywords else ""
        given = f"{comma}device={spot.text(item.args[0])}"
        lines[row] = f"{encoded[:column].decode()}{given}{encoded[column:].decode()}"
    code, caveat = "\n".join(lines), "Modules that are made inside need `device=` as well."
    do = "Name the device where the tensor is created"
    return Option(do, code, caveat, (spot.replace_statements([block], code),))


def _is_factory(spot: Spot, call: ast.Call) -> bool:
    name = spot.qualified(call.func)
    return name.startswith("torch.") and name[len("torch.") :] in _FACTORIES
