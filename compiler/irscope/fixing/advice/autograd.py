"""Gradients inside of compiled code."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice.common import around, called, replacing, setting, some, without_keyword
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.plain import traced_autograd
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names

_ONCE_PER_CALL = "skip_fwd_side_effects_in_bwd_under_checkpoint = True"
_ONCE_CAVEAT = "Plain Python does it in the forward, and again in the backward. Compiled code then does it once."


def backward_call(spot: Spot) -> Advice:
    """Advice for ``loss.backward()`` in compiled code."""
    what = f"{spot.short(spot.call)} runs the backward pass while the forward is traced"
    why = "The graph of the forward is still being made; its backward is compiled with it and runs when it is called outside."
    text = spot.text(spot.call) or "loss.backward()"
    head = text.partition(".backward")[0]
    body = getattr(spot.functions[0], "body", []) if spot.functions else []
    follows = body[body.index(spot.statement) + 1 :] if isinstance(body, list) and spot.statement in body else []
    rest = [spot.text(statement) for statement in follows if not isinstance(statement, ast.Return)]
    code = "\n".join([f"{head if head.isidentifier() else 'loss'} = {called(spot)}", text, *rest])
    do = f"Return the loss {'before it, and do the rest' if rest else 'and call it'} in the caller"
    caveat = "The backward is compiled with the forward."
    return Advice(what, why, some(traced_autograd(spot), Option(do, code, caveat)))


def requires_grad_set(spot: Spot) -> Advice:
    """``x.requires_grad_()`` and ``x.requires_grad = True``."""
    node, statement = spot.expression, spot.statement
    shown = spot.short(statement if isinstance(statement, ast.Assign) else node)
    what = f"{shown} changes what requires grad while tracing"
    why = "Which tensors require grad is fixed when the graph begins."
    match node:
        case ast.Call(func=ast.Attribute(value=tensor)) | ast.Attribute(value=tensor):
            pass
        case _:
            return Advice(what, why, (Option(_BEFORE),))
    text = spot.text(statement)
    arguments = {name for function in spot.functions for name in bound_names(function.args)}
    name = tensor.id if isinstance(tensor, ast.Name) else ""
    nodes = spot.source.all((ast.Assign, ast.AnnAssign, ast.AugAssign), spot.functions[:1])
    returns = spot.source.all(ast.Return, spot.functions[:1])
    if name in arguments:
        option = around(spot, "Set it in the caller, before the compiled code", text)
    elif name and returns and all(isinstance(r.value, ast.Name) and r.value.id == name for r in returns):
        # The caller has it.
        option = around(spot, _IN_CALLER, "", "", text.replace(name, "result", 1))
    elif name and any(name in bound_names(assign) for assign in nodes):
        option = Option("Make two functions of it, one up to this line and one from here, and compile each")
    elif set(loaded_names(tensor)) & spot.local_names():
        option = Option(_BEFORE)
    else:
        option = around(spot, _BEFORE, text)
    return Advice(what, why, (option,), tensor)


_IN_CALLER = "Do it in the caller, with the returned tensor"
_BEFORE = "Set it before the compiled code is called: once, for a parameter"


def leaf_leaks(spot: Spot) -> Advice:
    """A tensor made a leaf inside of the graph, and returned."""
    what = f"{spot.short(spot.call)} makes a new leaf of autograd, and the function returns what depends on it"
    why = "A leaf that is made inside of the graph cannot leave it: its gradient would belong to no input."
    match spot.call:
        case ast.Call(func=ast.Attribute(value=tensor)):
            outside = around(spot, _IN_CALLER, "", "", "result.requires_grad_()")
            return Advice(what, why, (outside,), tensor)
    return Advice(what, why)


def checkpointed(spot: Spot) -> Advice:
    """A body of checkpoint, cond, map, … that changes something outside of itself."""
    node = spot.statement if isinstance(spot.statement, (ast.Assign, ast.AugAssign)) else spot.expression
    what = f"{spot.short(node)} changes something outside of a function that becomes a separate graph"
    why = f"Its body becomes a separate graph, which may only return tensors. {spot.cause.explanation}".strip()
    # PyTorch's hint names the operator with the body, for each operator.
    operator = re.search(r"Higher Order Operator: (?P<name>\S+)", spot.context.payload)
    said = operator["name"] if operator else f"{spot.context.payload} {' '.join(spot.cause.hints)}"
    once = setting(spot, _ONCE_PER_CALL, _ONCE_CAVEAT, "For `checkpoint`: allow it in the forward only")
    after = Option("Return the value from the function and store it after the call")
    return Advice(what, why, (once, after) if "checkpoint" in said else (after,))


def made_with_grad(spot: Spot) -> Advice:
    """``torch.ones(…, requires_grad=True)``."""
    call = spot.call
    what = f"{spot.short(call)} makes a new leaf of autograd while tracing"
    why = "Dynamo has no rule for `requires_grad=True` in the functions that make tensors."
    if call is None:
        return Advice(what, why)
    code = f"{without_keyword(spot, call, 'requires_grad')}.requires_grad_()"
    caveat = "What depends on it must not be returned with its gradient history: detach it, or consume it inside."
    return Advice(what, why, (replacing(spot, call, code, "Ask for it in a second step", caveat),))


def data_replaced(spot: Spot) -> Advice:
    """``y.data = x``."""
    statement = spot.statement
    what = f"{spot.short(statement)} replaces the data of a tensor without autograd noticing"
    why = "Dynamo follows this only for tensors that come from outside of the compiled code."
    match statement:
        case ast.Assign(targets=[ast.Attribute(attr="data", value=ast.Name(id=name))], value=value):
            code = f"{name} = {spot.tight(value)}.detach()"
            caveat = "Other names of the old tensor keep the old data."
            return Advice(what, why, (replacing(spot, statement, code, "Bind the name to the new tensor", caveat),))
    return Advice(what, why)
