"""Operators whose output shape depends on values."""

from __future__ import annotations

import ast

from irscope.fixing.advice.common import replacing, setting, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.rules.masks import masked

_WHY = "A graph must know the shapes of its tensors, and this one depends on the values of the input."
_CAPTURE = "capture_dynamic_output_shape_ops = True"
_CAVEAT = "The size becomes a symbol of the graph; Python that branches on it breaks again."


def dynamic_shape(spot: Spot) -> Advice:
    """``nonzero``, ``x[mask]``, ``unique``, ``masked_select``, ``repeat_interleave``, ``bincount``, …"""
    node = spot.expression
    operator = spot.cause.context.removeprefix("aten.").partition(".")[0] or "this operator"
    what = f"the shape of the result of {spot.short(node)} depends on values"
    capture = setting(spot, _CAPTURE, _CAVEAT)
    return Advice(what, _WHY, some(_masked_reduction(spot), capture, _static_form(spot, operator)), _source(node))


def no_meta_kernel(spot: Spot) -> Advice:
    """As above, for an operator that cannot be traced with a dynamic shape at all."""
    what = f"the shape of the result of {spot.short(spot.expression)} depends on values"
    return Advice(what, f"{_WHY} This operator cannot be put into a graph even so.", (), _source(spot.expression))


def one_hot(spot: Spot) -> Advice:
    """Advice for ``one_hot`` without a number of classes."""
    call = spot.call
    what = f"the width of the result of {spot.short(call)} is the largest value plus one"
    if call is None or not call.args:
        return Advice(what, _WHY)
    code = f"{spot.text(call.func)}({spot.text(call.args[0])}, num_classes=NUM_CLASSES)"
    return Advice(what, _WHY, (Option("State the number of classes", code),), call.args[0])


def _source(node: ast.expr | None) -> ast.expr | None:
    if isinstance(node, ast.Subscript):
        return node.slice
    return node.args[0] if isinstance(node, ast.Call) and node.args else node


def _masked_reduction(spot: Spot) -> Option | None:
    """``x[x > 0].sum()`` is ``torch.where(x > 0, x, 0).sum()``."""
    match spot.expression, spot.source.parent(spot.source.parent(spot.expression)):
        case ast.Subscript(slice=ast.Compare()), ast.Call() as call:
            text = masked(spot.source, call, spot.torch)
            return replacing(spot, call, text, "Keep the shape and let the others be zero") if text else None
    return None


def _static_form(spot: Spot, operator: str) -> Option | None:
    """The operator with its output size given."""
    match operator, spot.expression:
        case "nonzero", ast.Call(func=ast.Attribute(value=x, attr="nonzero"), args=[]) | ast.Call(args=[x, *_]):
            code = f"torch.nonzero_static({spot.text(x)}, size=MAX_COUNT)"
            return Option("Give it a fixed size", code, "Missing rows are -1.")
        case "repeat_interleave", ast.Call() as call:
            code = f"{spot.text(call)[:-1]}, output_size=TOTAL)"
            return Option("State the length of the result", code, "If the sum of the repeats is known in advance.")
        case "nonzero", ast.Subscript(value=values, slice=mask):
            code = f"torch.where({spot.text(mask)}, {spot.text(values)}, 0)"
            return Option("Keep the shape and mask the rest", code, "The others stay, as zeros.")
    return None
