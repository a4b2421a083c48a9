"""Python decides by a tensor's value: ``if``, ``while``, ``assert``, conditional expressions."""

from __future__ import annotations

import ast
import dataclasses
import itertools

from irscope.fixing.advice.common import decide_in_caller, option, replacing, some
from irscope.fixing.advice.conditions import Decision, condition, decision_at, failed_assertion, looks_like_tensor
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.choosing import is_no_tensor
from irscope.fixing.edits import statements
from irscope.fixing.predication import Flat, Flattening, bound_before
from irscope.fixing.rules.branches import BOTH, chosen_expression, flattened
from irscope.fixing.source import Source, parse_expression
from irscope.fixing.syntax import Function
from irscope.protocol import FixMethod, Range
from irscope.usercode.bindings import targets_of

_WHY = "A graph has no branches: while it is traced, tensors have shapes but no values."
_ASSERTED = "A failure is then a RuntimeError with this text, and on a GPU it arrives later."
_COND = "Only one side runs; both must give tensors of one shape and dtype, and none may change or return an input."

WHILE_LOOP_CAVEAT = (
    "`from torch._higher_order_ops import while_loop`; a prototype of PyTorch, for loops whose tensors keep their shapes "
    "and dtypes."
)
WHILE_LOOP = "(x,) = while_loop(lambda x: condition(x), lambda x: (step(x),), (x,))"
_COUNTS = "A graph cannot count in Python: return a tensor that says it, and count after the call."
_INTO_GRAPH = "Put the loop into the graph"
_BY_VALUE = Option(
    "Choose by value inside of the graph",
    "torch.where(condition, a, b)",
    "Or `torch.cond(condition, make_a, make_b)`, where only one side should run.",
)


def data_dependent_branch(spot: Spot) -> Advice:
    """Advice for a branch, a loop or an assertion that needs a tensor's value."""
    decision = decision_at(spot)
    if decision is None:
        return _without_decision(spot)
    test = decision.test
    if isinstance(decision, ast.Assert) and "ConstantVariable(bool: False)" in spot.cause.context:
        return failed_assertion(spot, decision)
    word = {ast.If: "if", ast.While: "while", ast.IfExp: "if", ast.Assert: "assert"}[type(decision)]
    around = [*spot.source.around(spot.node)]
    operand = next((value for value in getattr(test, "values", ()) if value in around), test)
    what = f"`{word}` needs the value of the tensor {spot.short(operand)} while tracing"
    counter = _counter(spot, decision)
    if counter is not None:
        return Advice(what, _WHY, (Option(f"Take {spot.short(counter)} out of the compiled code", "", _COUNTS),), test)
    return Advice(what, _WHY, branch_options(spot, decision) or (_BY_VALUE,), test)


def _counter(spot: Spot, decision: Decision) -> ast.AugAssign | None:
    """What one side of a branch counts in Python, outside of the function: no value chosen in the graph does that."""
    sides = [*decision.body, *decision.orelse] if isinstance(decision, ast.If) else []
    outer = {name for node in spot.source.all(ast.Global, spot.functions[:1]) for name in node.names}
    counting = (node for node in spot.source.all(ast.AugAssign, sides) if isinstance(node.value, ast.Constant))
    return next((node for node in counting if not isinstance(node.target, ast.Name) or node.target.id in outer), None)


def branch_options(spot: Spot, decision: Decision) -> tuple[Option, ...]:
    """How to write a decision by a tensor's value without a branch."""
    test = condition(spot, decision.test)
    if test is None and isinstance(decision, ast.If):
        return some(_under_flags(spot, decision), decide_in_caller(spot, decision.test))
    if test is None and isinstance(decision, ast.While):
        return (Option(_INTO_GRAPH, WHILE_LOOP, WHILE_LOOP_CAVEAT),)
    if test is None:
        return some(decide_in_caller(spot, decision.test))
    if isinstance(decision, ast.Assert):
        message = f", {_message_of(spot, decision.msg)}" if decision.msg is not None else ""
        do = "Assert one boolean tensor with a constant text: that goes into the graph"
        return (replacing(spot, decision, f"assert {test}{message}", do, _ASSERTED),)
    if isinstance(decision, ast.While):
        return (_while_loop(spot, decision, test),)
    if isinstance(decision, ast.IfExp):
        return _chosen(spot, decision)
    if len(decision.body) == 1 and isinstance(decision.body[0], ast.Raise) and not decision.orelse:
        return some(_assert_async(spot, decision, decision.body[0], test))
    options = _chosen(spot, decision) or some(_early_return(spot, decision, test))
    return options if len(options) > 1 else (*options, *some(decide_in_caller(spot, decision.test)))


def _without_decision(spot: Spot) -> Advice:
    """The value is asked for inside of an expression: ``a and b``, ``x in values``, ``any(…)``, a library function."""
    node = spot.expression
    what = f"{spot.short(node)} needs the value of a tensor while tracing"
    options: tuple[Option, ...] = ()
    if isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Call)):
        text = condition(spot, node)
        boolean = not isinstance(node, ast.Call) or spot.source.full_name(node.func) in ("any", "all")
        if text is not None and boolean and text != spot.text(node):
            caveat = "The result is a tensor: an `if` on it breaks again."
            options = (replacing(spot, node, text, "Keep it a tensor", caveat),)
    return Advice(what, _WHY, options or some(decide_in_caller(spot, node)) or (_BY_VALUE,), node)


# --- one side or the other --------------------------------------------------------------------------------------------


def _chosen(spot: Spot, decision: ast.If | ast.IfExp) -> tuple[Option, ...]:
    """``torch.where`` and ``torch.cond`` for the values of both sides, the cheaper first."""
    place, code = spot.source.range(decision), None
    if isinstance(decision, ast.If):
        place, code = _flattened(spot, decision) or (place, None)
    elif not is_no_tensor(decision.body) and not is_no_tensor(decision.orelse):
        code = chosen_expression(spot.source, decision, spot.torch)
    if code is None:
        return ()

    def made(do: str | FixMethod, code: str, caveat: str) -> Option:
        if isinstance(decision, ast.IfExp):
            return replacing(spot, decision, code, do, caveat)
        return option(do, code, caveat, spot.edits({}, statements(spot.source, place, code)))

    where = made(FixMethod.CHOOSE_BY_VALUE, code, BOTH)
    cond, is_heavy = _with_cond(code, spot.torch)
    if cond is None:
        return (where,)
    options = (where, made("Keep the branch, inside of the graph", cond, _COND))
    return options[::-1] if is_heavy else options


def _flattened(spot: Spot, decision: ast.If, replaced: ast.If | None = None) -> tuple[Range, str] | None:
    """What `flattened` gives, if nothing changes in place: only the rule, whose changes are verified, does that."""
    rest = spot.source.following(decision) if spot.source.all(ast.Return, decision) else []
    if _changes_parts(spot, [*decision.body, *decision.orelse, *rest]):
        return None
    return flattened(spot.source, decision, spot.torch, replaced=replaced)


def _changes_parts(spot: Spot, statements: list[ast.stmt]) -> bool:
    """Whether statements do more than give names values."""
    assigned = spot.source.all((ast.Assign, ast.AugAssign), statements)
    targets = [target for node in assigned for target in targets_of(node)]
    return bool(spot.source.all(ast.Expr, statements)) or not all(isinstance(t, (ast.Name, ast.Tuple)) for t in targets)


def _with_cond(code: str, torch: str) -> tuple[str | None, bool]:
    """A statement or expression that chooses with torch.where, with torch.cond; and whether a side may be costly."""
    source = Source(code)
    call = getattr(source.tree.body[0], "value", None)
    if len(source.tree.body) != 1 or not isinstance(call, ast.Call) or source.code(call.func) != f"{torch}.where":
        return None, False
    test, *sides = call.args
    if len(sides) != 2 or any(isinstance(side, ast.Constant) for side in sides):
        return None, False
    functions = [source.code(inner.func) for inner in source.all(ast.Call, sides)]
    is_heavy = any(name.startswith("self.") or name.isidentifier() for name in functions)
    yes, no = (_unaliased(source.code(side)) for side in sides)
    cond = f"{torch}.cond({source.code(test)}, lambda: {yes}, lambda: {no})"
    return source.changed({call: cond}).rstrip("\n"), is_heavy


def _unaliased(code: str) -> str:
    """A value that is not what an operator was given."""
    is_place = isinstance(parse_expression(code), (ast.Name, ast.Attribute, ast.Subscript))
    return f"{code}.clone()" if is_place else code


def _under_flags(spot: Spot, decision: ast.If) -> Option | None:
    """``if flag and tensor_condition: x = …``: Python goes on deciding by the flag."""
    test = decision.test
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And) or decision.orelse:
        return None
    flags = list(itertools.takewhile(lambda value: not looks_like_tensor(spot, value), test.values))
    tensors = test.values[len(flags) :]
    if not flags or not tensors or spot.source.is_elif(decision):
        return None
    asked = tensors[0] if len(tensors) == 1 else ast.BoolOp(ast.And(), tensors)
    joined = condition(spot, asked)
    if joined is None:
        return None
    if len(decision.body) == 1 and isinstance(raised := decision.body[0], ast.Raise):
        under = _assert_async(spot, decision, raised, joined)
    else:
        straight = _flattened(spot, ast.If(asked, decision.body, []), decision)
        if straight is None or spot.source.all(ast.Return, decision):
            return None
        under = option(FixMethod.CHOOSE_BY_VALUE, straight[1], BOTH)
    body = under.code.replace("\n", "\n    ")
    code = f"if {' and '.join(map(spot.text, flags))}:\n    {body}"
    return dataclasses.replace(under, code=code, edits=spot.edits({decision: code}))


# --- the others -------------------------------------------------------------------------------------------------------


def _early_return(spot: Spot, decision: ast.If, test: str) -> Option | None:
    """``if c: return a`` with more to do after it: the choice is made where the function ends."""
    match decision.body, spot.source.following(decision):
        case [ast.Return(value=ast.expr() as early)], [*rest, ast.Return(value=ast.expr() as late) as last]:
            is_plain = not decision.orelse and not spot.source.all((ast.Return, ast.Raise), rest)
        case _:
            return None
    in_function = isinstance(spot.source.parent(decision), Function)
    if not is_plain or not in_function or is_no_tensor(early) or is_no_tensor(late):
        return None
    name, value = spot.source.fresh("stop"), spot.source.fresh("early")
    first = f"{name}, {value} = {test}, {spot.text(early)}"
    final = f"return {spot.torch}.where({name}, {value}, {spot.text(late)})"
    caveat = "The rest is always computed; both results need shapes that broadcast."
    do = "Compute both results, and choose at the end"
    return Option(do, f"{first}\n...\n{final}", caveat, spot.edits({decision: first, last: final}))


def _assert_async(spot: Spot, decision: ast.If, raised: ast.Raise, test: str) -> Option:
    is_not = isinstance(decision.test, ast.UnaryOp) and isinstance(decision.test.op, ast.Not)
    right = condition(spot, decision.test.operand) if is_not else None  # type: ignore[attr-defined]
    checked = right or f"{spot.torch}.logical_not({test})"
    code = f"{spot.torch}._assert_async({checked}, {_message_of(spot, raised.exc)})"
    return replacing(spot, decision, code, "Check it inside of the graph", _ASSERTED)


def _message_of(spot: Spot, node: ast.expr | None) -> str:
    """The constant text of an exception or of an assertion's message."""
    match node.args[0] if isinstance(node, ast.Call) and node.args else node:
        case ast.Constant(value=str()) as text:
            return spot.text(text)
        case ast.JoinedStr(values=values):
            return repr("".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in values))
        case None:
            return repr("the check failed")
        case other:
            return repr(ast.unparse(other))


def _while_loop(spot: Spot, decision: ast.While, test: str) -> Option:
    """The loop as an operator of the graph, of all the names that it changes."""
    bound = bound_before(spot.source, decision)
    try:
        flat = Flattening(spot.source, spot.torch, bound).block(decision.body, {})
    except ValueError:
        flat = Flat()
    names, values = list(flat.values), list(flat.values.values())
    is_odd = _changes_parts(spot, decision.body) or any(is_no_tensor(parse_expression(value)) for value in values)
    if decision.orelse or is_odd or not names or not bound.issuperset(names):
        return Option(_INTO_GRAPH, WHILE_LOOP, WHILE_LOOP_CAVEAT)
    listed, comma = ", ".join(names), "," if len(names) == 1 else ""
    returned = ", ".join(map(_unaliased, values))
    if len(names) == 1 and not flat.lines:
        code = f"({listed},) = while_loop(lambda {listed}: {test}, lambda {listed}: ({returned},), ({listed},))"
    else:
        going, step = spot.source.fresh("going_on"), spot.source.fresh("step")
        body = "\n    ".join([*flat.lines, f"return ({returned}{comma})"])
        code = (
            f"def {going}({listed}):\n    return {test}\n\n"
            f"def {step}({listed}):\n    {body}\n\n"
            f"{listed}{comma} = while_loop({going}, {step}, ({listed}{comma}))"
        )
    edits = spot.edits({decision: code}, importing="from torch._higher_order_ops import while_loop")
    return Option(_INTO_GRAPH, code, WHILE_LOOP_CAVEAT, edits)
