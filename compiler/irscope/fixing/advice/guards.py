"""A number that the graph computes (``u0``), where Python must know something of it while the graph is traced."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice.branches import WHILE_LOOP, WHILE_LOOP_CAVEAT, branch_options
from irscope.fixing.advice.common import replacing, some
from irscope.fixing.advice.conditions import condition, decision_at
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.advice.values import are_numbers, element_of_tensor
from irscope.fixing.conditions import SIGNS, opposite
from irscope.usercode.bindings import last_word

_EMPTY = (
    "Most operations accept empty tensors: `x[token]`, `index_add_` and linear layers then do nothing. "
    "`mean()` and `max()` of an empty tensor do not."
)
_SIZES = ("numel", "size", "nelement", "__len__", "len")
_ASKED = dict.fromkeys(("== 0", "<= 0", "< 1"), "none") | dict.fromkeys(("> 0", "!= 0", ">= 1"), "elements")
"""What a comparison asks of a number of elements."""
_STATED = "A call for which it does not hold raises a RuntimeError."
APART = Option(
    "Make two functions of it, the first up to where the number is made; call this line in the second",
    "",
    "What the first one returns has known sizes and numbers in the second.",
)
_LEAVES = (ast.Continue, ast.Return, ast.Raise, ast.Break)
_NUMBERS = re.compile(r"\bz?u[a-z]?\d+\b")


def data_dependent_guard(spot: Spot) -> Advice:
    """Advice for a guard on a number whose value is known only when the graph runs."""
    asked = spot.cause.context
    symbols = " and ".join(f"`{name}`" for name in dict.fromkeys(_NUMBERS.findall(asked))) or "It"
    plural = " and " in symbols
    why = (
        f"{symbols} {'are numbers' if plural else 'is a number'} that the graph computes from the values of a tensor, "
        f"so {'they are' if plural else 'it is'} known only when the graph runs."
    )
    question = f"whether `{asked}`" if re.search(r"[<>=]", asked) else f"the value of `{asked}`"
    decision = decision_at(spot)
    if decision is None:
        what = f"{spot.short(spot.expression or spot.statement)} needs to know {question} while tracing"
        node = spot.expression
        value = node.slice if isinstance(node, ast.Subscript) else node
        return Advice(what, why, some(_indexed(spot), APART), value)
    word = {ast.While: "while", ast.Assert: "assert"}.get(type(decision), "if")
    what = f"`{word}` needs to know {spot.short(decision.test)} while tracing"
    if asked:
        why = f"{why} Python asks {question}."
    if isinstance(decision, ast.While):
        do = "Keep the number a tensor (without `.item()`), and put the loop into the graph"
        return Advice(what, why, (Option(do, WHILE_LOOP, WHILE_LOOP_CAVEAT),), decision.test)
    options = some(_left_out(spot, decision), _stated(spot, decision), _chosen(spot, decision), _kept(spot, decision))
    return Advice(what, why, options, decision.test)


def _left_out(spot: Spot, decision: ast.AST) -> Option | None:
    """``if token.numel() == 0: continue`` and ``if token.numel() > 0: …``: for an empty tensor, the rest does nothing."""
    if not isinstance(decision, ast.If) or decision.orelse or not spot.source.owns_lines(decision):
        return None
    do, asked = f"Remove the check {spot.short(decision.test)}", _asks_for(decision.test)
    following = spot.source.following(decision)
    if any(map(_counts, decision.body if asked == "elements" else following)):
        return None
    if asked == "elements" and not spot.source.is_elif(decision):
        code = spot.source.block_code(decision.body)
        return replacing(spot, decision, code, do, _EMPTY)
    if asked == "none" and isinstance(decision.body[0], ast.Continue) and following:
        return Option(f"{do}, with its `continue`", "", _EMPTY, spot.edits({decision: None}))
    return None


def _counts(statement: ast.stmt) -> bool:
    """Whether a statement does something for an empty tensor, too: it counts, prints or fills a list."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.value, ast.Constant):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and not last_word(call.func).endswith("_")


def _asks_for(test: ast.expr) -> str:
    """Whether a condition asks if a tensor has ``elements``, or if it has ``none``; empty for another condition."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return "none" if _asks_for(operand) == "elements" else ""
        case ast.Compare(left=size, ops=[sign], comparators=[ast.Constant(value=int(number))]) if _is_size(size):
            return _ASKED.get(f"{SIGNS.get(type(sign))} {number}", "")
    return "elements" if _is_size(test) else ""


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _SIZES
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
    return False


def _chosen(spot: Spot, decision: ast.If | ast.IfExp | ast.Assert) -> Option | None:
    """``torch.cond``, which takes a condition on such numbers; ``torch.where`` and ``torch.logical_and`` do not."""
    test = condition(spot, decision.test)
    if test is None or re.search(r"logical_|[~&|]", test) or isinstance(decision, ast.Assert):
        return None
    return next((option for option in branch_options(spot, decision) if ".cond(" in option.code), None)


def _stated(spot: Spot, decision: ast.If | ast.IfExp | ast.Assert) -> Option | None:
    """``torch._check(…)`` of the condition or of its opposite, before the decision."""
    sides = _both_sides(spot, decision.test)
    if sides is None:
        return None
    holds, fails = sides
    if isinstance(decision, ast.If) and isinstance(decision.body[-1], _LEAVES):
        holds, fails = fails, holds
    other = f" Or state the opposite: `{spot.torch}._check({fails})`."
    return Option("If it is always so, state it before this line", f"{spot.torch}._check({holds})", f"{_STATED}{other}")


def _both_sides(spot: Spot, test: ast.expr) -> tuple[str, str] | None:
    """A condition and its opposite, each as one comparison: PyTorch learns nothing from ``not``."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            sides = _both_sides(spot, operand)
            return sides[::-1] if sides is not None else None
    if _is_size(test):
        return f"{spot.text(test)} > 0", f"{spot.text(test)} == 0"
    turned = opposite(spot.source, test)
    return (spot.text(test), turned) if turned else None


def _kept(spot: Spot, decision: ast.AST) -> Option | None:
    """Where the number is made by ``.item()`` in this function."""
    calls = spot.source.all(ast.Call, spot.functions[:1])
    lines = [call.lineno for call in calls if last_word(call.func) == "item"]
    if not lines or lines[0] > getattr(decision, "lineno", 0):
        return None
    return Option(f"Remove the `.item()` in line {lines[0]}, and choose with `torch.where` by the tensor")


def _indexed(spot: Spot) -> Option | None:
    """``[1, 2, 3][n]``, a list indexed by such a number."""
    match spot.expression:
        case ast.Subscript(value=values, slice=index) as entry if are_numbers(values):
            return element_of_tensor(spot, entry) if not isinstance(index, ast.Slice) else None
    return None
