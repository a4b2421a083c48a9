"""Gradients inside of compiled code."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice.common import around, custom_op, replacing, setting, some, without_keyword
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names

_ONCE_PER_CALL = "skip_fwd_side_effects_in_bwd_under_checkpoint = True"
_ONCE_CAVEAT = (
    "Plain Python does it twice: in the forward, and again where the backward computes the forward once more. Compiled code "
    "then does it once."
)
_TRACE = "trace_autograd_ops = True"


def backward_call(spot: Spot) -> Advice:
    """Advice for ``loss.backward()`` in compiled code."""
    what = f"{spot.short(spot.call)} runs the backward pass while the forward is traced"
    why = "The graph of the forward is still being made; its backward is compiled with it and runs when it is called outside."
    text = spot.text(spot.call) if spot.call is not None else "loss.backward()"
    outside = around(
        spot, "Return the loss and call it in the caller", "", "The backward is compiled with the forward.", text
    )
    outside = Option(outside.do, outside.code.replace("result =", _receiver(spot) + " ="), outside.caveat)
    return Advice(what, why, some(_traced(spot), outside))


def gradient_call(spot: Spot) -> Advice:
    """``torch.autograd.grad(…)``."""
    what = f"{spot.short(spot.call)} computes gradients while the forward is traced"
    why = "It asks for the backward of a graph that is still being made."
    functional = Option("Use `torch.func.grad` on a function of the inputs", "", "Dynamo traces it without a setting.")
    return Advice(what, why, some(_traced(spot), functional))


def _traced(spot: Spot) -> Option | None:
    """Dynamo's setting; in a graph after a break it gives no gradients, since what the graph before made has a history."""
    if spot.context.resumed:
        return None
    caveat = "Not for inputs that already have an autograd history, and not for results that still require grad."
    return setting(spot, _TRACE, caveat, "Let Dynamo trace autograd")


def _receiver(spot: Spot) -> str:
    call = spot.call
    if call is not None and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return call.func.value.id
    return "loss"


def requires_grad_set(spot: Spot) -> Advice:
    """``x.requires_grad_()`` and ``x.requires_grad = True``."""
    node, statement = spot.expression, spot.statement
    shown = spot.short(statement if isinstance(statement, ast.Assign) else node)
    what = f"{shown} changes what requires grad while tracing"
    why = "Which tensors require grad is fixed when the graph begins."
    tensor: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        tensor = node.func.value
    elif isinstance(node, ast.Attribute):
        tensor = node.value
    if tensor is None:
        return Advice(what, why, (Option(_BEFORE),))
    arguments = {name for function in spot.functions for name in bound_names(function.args)}
    if isinstance(tensor, ast.Name) and tensor.id in arguments:
        before = spot.text(statement) if statement is not None else ""
        return Advice(what, why, (around(spot, "Set it in the caller, before the compiled code", before),), tensor)
    if isinstance(tensor, ast.Name) and _returned_alone(spot, tensor.id):
        after = spot.text(statement).replace(tensor.id, "result", 1) if statement is not None else ""
        return Advice(what, why, (around(spot, _IN_CALLER, "", "", after),), tensor)
    if isinstance(tensor, ast.Name) and spot.is_assigned(tensor.id):
        split = Option("Make two functions of it, one up to this line and one from here, and compile each")
        return Advice(what, why, (split,), tensor)
    text = spot.text(statement) if statement is not None else ""
    local = set(loaded_names(tensor)) & spot.local_names()
    return Advice(what, why, (Option(_BEFORE) if local else around(spot, _BEFORE, text),), tensor)


_IN_CALLER = "Do it in the caller, with the returned tensor"
_BEFORE = "Set it before the compiled code is called: once, for a parameter"


def _returned_alone(spot: Spot, name: str) -> bool:
    """Whether each ``return`` of the function gives this variable, so that the caller has it."""
    function = spot.functions[0] if spot.functions else None
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)] if function is not None else []
    return bool(returns) and all(isinstance(r.value, ast.Name) and r.value.id == name for r in returns)


def leaf_leaks(spot: Spot) -> Advice:
    """A tensor made a leaf inside of the graph, and returned."""
    call = spot.call
    tensor = call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None
    what = f"{spot.short(call)} makes a new leaf of autograd, and the function returns what depends on it"
    why = "A leaf that is made inside of the graph cannot leave it: its gradient would belong to no input."
    outside = around(spot, _IN_CALLER, "", "", "result.requires_grad_()") if tensor is not None else None
    return Advice(what, why, some(outside), tensor)


def dirty_not_returned(spot: Spot) -> Advice:
    """``ctx.mark_dirty(x)`` where ``forward`` returns something else than ``x``."""
    what = f"{spot.short(spot.expression)} marks an input as changed, but `forward` does not return that input"
    why = "Dynamo asks that what is marked with `ctx.mark_dirty` is changed in place and returned itself."
    code = "ctx.mark_dirty(x)\nx.add_(1)\nreturn x"
    return Advice(what, why, (Option("Change the input first, then return the input itself", code),))


def dirty_outside(spot: Spot) -> Advice:
    """Advice for the ``forward`` of an autograd function that is traced by itself."""
    what = f"{spot.short(spot.expression)} is traced on its own, outside of `apply`"
    why = "The call of `apply` broke, so Dynamo traced `forward` like any function. Fix the graph break at the call of `apply`."
    return Advice(what, why, (Option("Fix the graph break at the call of `apply` first"),))


def functorch(spot: Spot) -> Advice:
    """A break inside of ``vmap``, ``grad``, ``jvp``, …"""
    what = f"{spot.short(spot.expression)} has a graph break inside of the function that it transforms"
    why = "A transform of `torch.func` must be traced as a whole. Fix the graph break inside, which is reported there."
    return Advice(what, why, (Option("Fix the graph break inside of that function first"),))


def checkpointed(spot: Spot) -> Advice:
    """A body of checkpoint, cond, map, … that changes something outside of itself."""
    node = spot.statement if isinstance(spot.statement, (ast.Assign, ast.AugAssign)) else spot.expression
    what = f"{spot.short(node)} changes something outside of a function that becomes a separate graph"
    why = f"Its body becomes a separate graph, which may only return tensors. {spot.cause.explanation}".strip()
    once = None
    if _is_checkpoint(spot):
        once = setting(spot, _ONCE_PER_CALL, _ONCE_CAVEAT, "For `checkpoint`: allow it in the forward only")
    after = Option("Return the value from the function and store it after the call")
    return Advice(what, why, some(once, after))


def _is_checkpoint(spot: Spot) -> bool:
    """Whether the operator with the body is `checkpoint`; PyTorch's hint names it for each operator."""
    operator = re.search(r"Higher Order Operator: (?P<name>\S+)", spot.context.payload)
    return "checkpoint" in (operator["name"] if operator else f"{spot.context.payload} {' '.join(spot.cause.hints)}")


def subclass(spot: Spot) -> Advice:
    """``__torch_function__`` and tensor subclasses that override what Dynamo must know."""
    what = f"{spot.short(spot.expression)} works on a tensor subclass in a way that cannot be traced"
    why = spot.cause.explanation
    options = some(Option("Hand plain tensors to the compiled code", "x.as_subclass(torch.Tensor)", "Its `__torch_function__` is then not called."),
                   custom_op(spot, spot.call))  # fmt: skip
    return Advice(what, why, options)


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


def kept_gradient(spot: Spot) -> Advice:
    """``y.retain_grad()`` and ``y.grad_fn``, which belong to autograd's own graph."""
    what = f"{spot.short(spot.expression)} asks for autograd's graph, which does not exist inside of compiled code"
    why = "The backward of compiled code is compiled as well; the tensors in between never get a node of autograd."
    text = spot.text(spot.expression) if spot.expression is not None else ""
    return Advice(what, why, (around(spot, "Return the tensor and do it in the caller", "", "", text),))


def data_replaced(spot: Spot) -> Advice:
    """``y.data = x``."""
    statement = spot.statement
    what = f"{spot.short(statement)} replaces the data of a tensor without autograd noticing"
    why = "Dynamo follows this only for tensors that come from outside of the compiled code."
    option = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "data" and isinstance(target.value, ast.Name):
            code = f"{target.value.id} = {spot.tight(statement.value)}.detach()"
            changes = (spot.replace_statements([statement], code),)
            caveat = "Other names of the old tensor keep the old data."
            option = Option("Bind the name to the new tensor", code, caveat, changes)
    return Advice(what, why, some(option))
