"""``with`` blocks that Dynamo cannot enter, or breaks inside of those that it can."""

from __future__ import annotations

import ast

from irscope.fixing.advice.common import SAME_EACH_CALL, around, called, pass_in, replacing, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.edits import argument
from irscope.fixing.source import Source, bound_names, loaded_names
from irscope.fixing.syntax import Definition

_FACTORIES = {f"torch.{word}" for word in (
    "zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "linspace", "tensor", "eye", "randperm",
    "as_tensor", "logspace",
)}  # fmt: skip


def unsupported_context(spot: Spot) -> Advice:
    """``with lock:``, ``with open(…):``, ``with torch.device(…):``, …"""
    block = _with(spot)
    if block is None:
        what = f"{spot.short(spot.expression)} enters a `with` block that Dynamo does not know"
        return Advice(what, spot.cause.explanation, some(pass_in(spot, spot.expression, "")))
    item = block.items[0].context_expr
    what = f"`with {spot.text(item)}:` cannot be entered while tracing"
    outside = "Put the block around the call of the compiled code"
    moved = around(spot, outside, f"with {', '.join(map(spot.text, block.items))}:")
    if isinstance(item, ast.Call) and spot.source.full_name(item.func) == "torch.device":
        why = "It changes where tensors are made, by a mode that Dynamo does not enter as a `with` block."
        return Advice(what, why, some(_on_device(spot, block, item), moved))
    why = "Dynamo knows what torch's own context managers do to a graph, and those written in Python; not this one."
    has_names = any(other.optional_vars is not None for other in block.items)
    return Advice(what, why, _read_outside(spot, block) if has_names else (moved,))


def opened(spot: Spot) -> tuple[Option, ...]:
    """``with open(…) as file:``, where the call in its head breaks; nothing for another place."""
    block = _with(spot)
    is_head = block is not None and any(item.context_expr is spot.expression for item in block.items)
    return _read_outside(spot, block) if block is not None and is_head else ()


def _read_outside(spot: Spot, block: ast.With) -> tuple[Option, ...]:
    """Reads the file once, above the function, or in the caller; nothing is passed from a block that writes."""
    heads = {name for item in block.items for name in bound_names(item)}
    match block.body:
        case [ast.Assign(targets=[ast.Name(id=name)])]:
            pass
        case _:
            return (Option("Do what the block does in the caller"),)
    do, text = f"Do what the block does in the caller, and pass `{name}` in", spot.source.code(block)
    is_local = bool((set(loaded_names(block)) - heads) & spot.local_names())
    in_caller = Option(do, "" if is_local else f"{text}\nresult = {called(spot, name)}")
    bound = {name, *heads}
    names = spot.source.all(ast.Name, spot.functions[:1])
    stored = [n for n in names if n.id in bound and isinstance(n.ctx, ast.Store)]
    at_top = [statement for statement in spot.source.tree.body if not isinstance(statement, Definition)]
    is_taken = len(stored) != len(bound) or any(bound & bound_names(statement) for statement in at_top)
    if is_taken or not spot.source.owns_lines(block) or not spot.hoistable_names(set(loaded_names(block)) - heads):
        return (in_caller,)
    do, code = "Read it once, outside of the compiled code", f"{text}   # above the function"
    return Option(do, code, SAME_EACH_CALL, spot.edits({block: None}, above=text)), in_caller


def inside_context(spot: Spot) -> Advice:
    """A break whose cause is that a ``with`` block would have to be left and entered again."""
    block = _with(spot)
    shown = f"`with {spot.text(block.items[0].context_expr)}:`" if block is not None else "the `with` block"
    what = f"{spot.short(spot.expression)} breaks the graph inside of {shown}"
    why = "A graph that is cut inside of a `with` block cannot go on in it."
    return Advice(what, why, (Option("Move what breaks out of the block"),))


def _with(spot: Spot) -> ast.With | None:
    node = spot.source.first_around(spot.node, (ast.With, ast.FunctionDef, ast.Lambda))
    return node if isinstance(node, ast.With) else None


def _on_device(spot: Spot, block: ast.With, item: ast.Call) -> Option | None:
    """Gives ``device=`` to the factories in the block, and dissolves it."""
    calls = [call for call in spot.source.all(ast.Call, block.body) if spot.source.full_name(call.func) in _FACTORIES]
    calls = [call for call in calls if not {keyword.arg for keyword in call.keywords} & {"device", None}]
    if not calls or len(block.items) != 1 or len(item.args) != 1 or block.items[0].optional_vars:
        return None
    given = [argument(spot.source, call, "device", spot.text(item.args[0])) for call in calls]
    named = Source(spot.source.changed({}, given))
    (inner,) = named.on_line(block.lineno, ast.With)[:1]
    code = named.block_code(inner.body)
    caveat = "Modules that are made inside need `device=` as well."
    return replacing(spot, block, code, "Name the device where the tensor is created", caveat)
