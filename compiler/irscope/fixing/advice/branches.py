"""Python decides by a tensor's value: ``if``, ``while``, ``assert``, conditional expressions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from irscope.fixing.advice.common import called, some
from irscope.fixing.advice.conditions import Decision, condition, decision_at, failed_assertion, looks_like_tensor
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.changes import SyntaxChange
from irscope.fixing.source import bound_names, loaded_names
from irscope.protocol import FixMethod
from irscope.vocabulary.records import dataclass

_WHY = "A graph has no branches: while it is traced, tensors have shapes but no values."
_BOTH = "Both sides are computed, and their shapes must broadcast."
_ASSERTED = "A failure is then a RuntimeError with this text, and on a GPU it arrives later."
_COND = (
    "Only one side runs; both must give tensors of the same shape and dtype, and none may change or return an input."
)

WHILE_LOOP_CAVEAT = (
    "`from torch._higher_order_ops import while_loop`; a prototype of PyTorch, for loops whose tensors keep their shapes "
    "and dtypes."
)
WHILE_LOOP = "(x,) = while_loop(lambda x: condition(x), lambda x: (step(x),), (x,))"
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
    what = f"`{word}` needs the value of the tensor {spot.short(test)} while tracing"
    return Advice(what, _WHY, branch_options(spot, decision) or (_BY_VALUE,), test)


def branch_options(spot: Spot, decision: Decision) -> tuple[Option, ...]:
    """How to write a decision by a tensor's value without a branch."""
    test = condition(spot, decision.test)
    if test is None and isinstance(decision, ast.If):
        return some(_under_flags(spot, decision), _decided_outside(spot, decision))
    if test is None and isinstance(decision, ast.While):
        return (Option("Put the loop into the graph", WHILE_LOOP, WHILE_LOOP_CAVEAT),)
    if test is None:
        return some(_decided_outside(spot, decision))
    if isinstance(decision, ast.Assert):
        return some(_constant_message(spot, decision, test))
    if isinstance(decision, ast.While):
        return (_while_loop(spot, decision, test),)
    if isinstance(decision, ast.IfExp):
        return _choose(spot, test, _Sides("", decision.body, decision.orelse), [decision])
    if len(decision.body) == 1 and isinstance(decision.body[0], ast.Raise) and not decision.orelse:
        return some(_assert_async(spot, decision, decision.body[0], test))
    returned = _returned(spot, decision)
    if returned is not None:
        sides, replaced = returned
        return _choose(spot, test, sides, replaced)
    assigned = _assigned(spot, decision)
    if assigned is not None and len(assigned) == 1:
        return _choose(spot, test, assigned[0], [decision])
    if assigned is not None:
        return some(_choose_all(spot, test, assigned, decision), _decided_outside(spot, decision))
    return some(_early_return(spot, decision, test), _decided_outside(spot, decision))


def _without_decision(spot: Spot) -> Advice:
    """The value is asked for inside of an expression: ``a and b``, ``x in values``, ``any(…)``, a library function."""
    node = spot.expression
    what = f"{spot.short(node)} needs the value of a tensor while tracing"
    options: tuple[Option, ...] = ()
    if isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Call)):
        text = condition(spot, node)
        boolean = not isinstance(node, ast.Call) or spot.qualified(node.func) in ("any", "all")
        if text is not None and boolean and text != spot.text(node):
            caveat = "The result is a tensor: an `if` on it breaks again."
            options = (_replacing(spot, "Keep it a tensor", node, text, caveat),)
    return Advice(what, _WHY, options or some(_decided_outside_of(spot, node)) or (_BY_VALUE,), node)


# --- one side or the other --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sides:
    """What an ``if`` gives: the value of either side, and the text before the value."""

    head: str
    yes: ast.expr
    no: ast.expr

    @property
    def heavy(self) -> bool:
        """Whether a side calls something that may be costly."""
        calls = [n.func for side in (self.yes, self.no) for n in ast.walk(side) if isinstance(n, ast.Call)]
        return any(
            isinstance(f, ast.Name) or (isinstance(f, ast.Attribute) and ast.unparse(f).startswith("self."))
            for f in calls
        )


def _choose(spot: Spot, test: str, sides: _Sides, replaced: Sequence[ast.stmt | ast.IfExp]) -> tuple[Option, ...]:
    """``torch.where`` and ``torch.cond`` for two values, the cheaper first."""
    if not (_may_be_tensor(sides.yes) and _may_be_tensor(sides.no)):
        return ()
    torch, imports = spot.need("torch")
    yes, no = spot.text(sides.yes), spot.text(sides.no)
    where = f"{sides.head}{torch}.where({test}, {yes}, {no})"
    fresh_yes, fresh_no = (
        f"{spot.tight(side)}.clone()" if isinstance(side, (ast.Name, ast.Attribute, ast.Subscript)) else spot.text(side)
        for side in (sides.yes, sides.no)
    )
    cond = f"{sides.head}{torch}.cond({test}, lambda: {fresh_yes}, lambda: {fresh_no})"

    def changes(code: str) -> tuple[SyntaxChange, ...]:
        first = replaced[0]
        if isinstance(first, ast.IfExp):
            return (*imports, spot.replace(first, code))
        return (*imports, spot.replace_statements([s for s in replaced if isinstance(s, ast.stmt)], code))

    def shown(code: str) -> str:
        first = replaced[0]
        return spot.line_with(first, code) if isinstance(first, ast.IfExp) else code

    options = (
        _chosen(shown(where), changes(where)),
        Option("Keep the branch, inside of the graph", shown(cond), _COND, changes(cond)),
    )
    numbers = any(isinstance(side, ast.Constant) for side in (sides.yes, sides.no))
    if numbers:
        return options[:1]
    return options[::-1] if sides.heavy else options


def _chosen(code: str, changes: tuple[SyntaxChange, ...]) -> Option:
    method = FixMethod.CHOOSE_BY_VALUE
    return Option(method.title, code, _BOTH, changes, method=method)


def _choose_all(spot: Spot, test: str, sides: list[_Sides], decision: ast.If) -> Option | None:
    """One ``torch.where`` for each of the names that an ``if`` assigns, all computed before any is bound."""
    torch, imports = spot.need("torch")
    if not all(_may_be_tensor(side.yes) and _may_be_tensor(side.no) for side in sides):
        return None
    name = spot.fresh("chosen")
    names = ", ".join(side.head.removesuffix(" = ") for side in sides)
    values = ", ".join(f"{torch}.where({name}, {spot.text(side.yes)}, {spot.text(side.no)})" for side in sides)
    code = f"{name} = {test}\n{names} = {values}"
    edit = spot.replace_statements([decision], code)
    return _chosen(code, (*imports, edit))


def _returned(spot: Spot, decision: ast.If) -> tuple[_Sides, list[ast.stmt]] | None:
    """``if c: return a`` with ``else: return b``, or with ``return b`` right after it."""
    if len(decision.body) != 1 or not isinstance(yes := decision.body[0], ast.Return) or yes.value is None:
        return None
    behind = decision.orelse or spot.siblings_after(decision)[:1]
    if len(behind) != 1 or not isinstance(no := behind[0], ast.Return) or no.value is None:
        return None
    replaced: list[ast.stmt] = [decision] if decision.orelse else [decision, no]
    return _Sides("return ", yes.value, no.value), replaced


def _assigned(spot: Spot, decision: ast.If) -> list[_Sides] | None:
    """What each name becomes on either side, if both sides only assign names, none from another."""
    yes, no = _assignments(decision.body), _assignments(decision.orelse)
    if yes is None or no is None or not yes:
        return None
    sides = []
    for name in dict.fromkeys([*yes, *no]):
        if (name not in yes or name not in no) and not _bound_before(spot, name, decision):
            return None
        same = ast.Name(name, ast.Load())
        sides.append(_Sides(f"{name} = ", yes.get(name, _at(same, decision)), no.get(name, _at(same, decision))))
    return sides


def _assignments(block: list[ast.stmt]) -> dict[str, ast.expr] | None:
    found: dict[str, ast.expr] = {}
    for statement in block:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            target = statement.target
            value = _at(ast.BinOp(ast.Name(target.id, ast.Load()), statement.op, statement.value), statement)
        else:
            return None
        if not isinstance(target, ast.Name) or target.id in found or set(found) & set(loaded_names(value)):
            return None
        found[target.id] = value
    return found


def _at(made: ast.expr, place: ast.AST) -> ast.expr:
    """A made node, marked as one that is nowhere in the source (see `Spot.text`)."""
    made.made = True  # type: ignore[attr-defined]
    return ast.copy_location(made, place)


def _bound_before(spot: Spot, name: str, decision: ast.stmt) -> bool:
    function = spot.functions[0] if spot.functions else None
    if function is None:
        return False
    if name in {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}:
        return True
    body = function.body if isinstance(function.body, list) else []
    return any(name in bound_names(s) for s in body if (s.end_lineno or 0) < decision.lineno)


def _may_be_tensor(node: ast.expr) -> bool:
    """False for what is certainly no tensor and cannot be chosen by value."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    odd = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await,
           ast.NamedExpr, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.SetComp, ast.Compare, ast.BoolOp)  # fmt: skip
    return not isinstance(node, odd)


def _under_flags(spot: Spot, decision: ast.If) -> Option | None:
    """``if flag and tensor_condition: x = …``: Python goes on deciding by the flag."""
    test = decision.test
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And) or decision.orelse:
        return None
    flags = [value for value in test.values if not looks_like_tensor(spot, value)]
    tensors = [condition(spot, value) for value in test.values[len(flags) :]]
    texts = [text for text in tensors if text is not None]
    if not flags or test.values[: len(flags)] != flags or not texts or len(texts) < len(tensors):
        return None
    if spot.text(decision).startswith("elif"):
        return None
    torch, imports = spot.need("torch")
    joined = texts[0]
    for text in texts[1:]:
        joined = f"{torch}.logical_and({joined}, {text})"
    sides = _assigned(spot, decision)
    if len(decision.body) == 1 and isinstance(decision.body[0], ast.Raise):
        inner = f"{torch}._assert_async({torch}.logical_not({joined}), {_message_of(spot, decision.body[0].exc)})"
        do, caveat, method = "Check it inside of the graph", _ASSERTED, None
    elif sides is not None and len(sides) == 1 and _may_be_tensor(sides[0].yes):
        inner = f"{sides[0].head}{torch}.where({joined}, {spot.text(sides[0].yes)}, {spot.text(sides[0].no)})"
        method = FixMethod.CHOOSE_BY_VALUE
        do, caveat = method.title, _BOTH
    else:
        return None
    code = f"if {' and '.join(spot.text(flag) for flag in flags)}:\n    {inner}"
    return Option(do, code, caveat, (*imports, spot.replace_statements([decision], code)), method=method)


# --- the others -------------------------------------------------------------------------------------------------------


def _early_return(spot: Spot, decision: ast.If, test: str) -> Option | None:
    """``if c: return a`` with more to do after it: the choice is made where the function ends."""
    behind = spot.siblings_after(decision)
    if decision.orelse or len(decision.body) != 1 or not isinstance(early := decision.body[0], ast.Return):
        return None
    last = behind[-1] if behind else None
    if early.value is None or not isinstance(last, ast.Return) or last.value is None:
        return None
    others = [n for s in behind[:-1] for n in ast.walk(s) if isinstance(n, (ast.Return, ast.Raise))]
    in_function = isinstance(spot.parent(decision), (ast.FunctionDef, ast.AsyncFunctionDef))
    if others or not in_function or not (_may_be_tensor(early.value) and _may_be_tensor(last.value)):
        return None
    torch, imports = spot.need("torch")
    name, value = spot.fresh("stop"), spot.fresh("early")
    first = f"{name}, {value} = {test}, {spot.text(early.value)}"
    final = f"return {torch}.where({name}, {value}, {spot.text(last.value)})"
    return Option(
        "Compute both results, and choose at the end",
        f"{first}\n...\n{final}",
        "The rest is always computed; both results need shapes that broadcast.",
        (*imports, spot.replace_statements([decision], first), spot.replace_statements([last], final)),
    )


def _assert_async(spot: Spot, decision: ast.If, raised: ast.Raise, test: str) -> Option:
    torch, imports = spot.need("torch")
    if isinstance(decision.test, ast.UnaryOp) and isinstance(decision.test.op, ast.Not):
        right = condition(spot, decision.test.operand) or test
    else:
        right = f"{torch}.logical_not({test})"
    code = f"{torch}._assert_async({right}, {_message_of(spot, raised.exc)})"
    return Option(
        "Check it inside of the graph",
        code,
        _ASSERTED,
        (*imports, spot.replace_statements([decision], code)),
    )


def _constant_message(spot: Spot, decision: ast.Assert, test: str) -> Option:
    message = f", {_message_of(spot, decision.msg)}" if decision.msg is not None else ""
    code = f"assert {test}{message}"
    return Option(
        "Assert one boolean tensor with a constant text: that goes into the graph",
        code,
        "A failure is then a RuntimeError, and on a GPU it arrives later.",
        (*spot.need("torch")[1], spot.replace_statements([decision], code)),
    )


def _message_of(spot: Spot, node: ast.expr | None) -> str:
    """The constant text of an exception or of an assertion's message."""
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return spot.text(node)
    if isinstance(node, ast.JoinedStr):
        parts = [str(v.value) if isinstance(v, ast.Constant) else "…" for v in node.values]
        return repr("".join(parts))
    return repr(ast.unparse(node)) if node is not None else repr("the check failed")


def _while_loop(spot: Spot, decision: ast.While, test: str) -> Option:
    """The loop as an operator of the graph, of all the names that it changes."""
    do = "Put the loop into the graph"
    names = _carried(spot, decision)
    steps = [_step(spot, statement) for statement in decision.body]
    if names is None or decision.orelse or None in steps:
        return Option(do, WHILE_LOOP, WHILE_LOOP_CAVEAT)
    listed = ", ".join(names)
    if len(steps) == 1 and len(names) == 1:
        value = str(steps[0]).partition(" = ")[2]
        code = f"({listed},) = while_loop(lambda {listed}: {test}, lambda {listed}: ({value},), ({listed},))"
    else:
        going, step = spot.fresh("going_on"), spot.fresh("step")
        body = "\n    ".join(str(text) for text in steps)
        code = (
            f"def {going}({listed}):\n    return {test}\n\n"
            f"def {step}({listed}):\n    {body}\n    return ({listed}{',' if len(names) == 1 else ''})\n\n"
            f"{listed}{',' if len(names) == 1 else ''} = while_loop({going}, {step}, ({listed}{',' if len(names) == 1 else ''}))"
        )
    _, imports = spot.need("torch")
    above = spot.with_import("from torch._higher_order_ops import while_loop")
    return Option(do, code, WHILE_LOOP_CAVEAT, (*imports, above, spot.replace_statements([decision], code)))


def _carried(spot: Spot, decision: ast.While) -> list[str] | None:
    """The names that a loop changes, in order, if all have a value before it; None if it does more than that."""
    names = list(dict.fromkeys(name for statement in decision.body for name in sorted(bound_names(statement))))
    return names if names and all(_bound_before(spot, name, decision) for name in names) else None


def _step(spot: Spot, statement: ast.stmt) -> str | None:
    """One statement of the loop without a change in place, and without another name for the same tensor."""
    made = _assignments([statement])
    if made is None:
        return None
    ((name, value),) = made.items()
    if not _may_be_tensor(value):
        return None
    same = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript))
    return f"{name} = {spot.text(value)}{'.clone()' if same else ''}"


def _decided_outside(spot: Spot, decision: Decision) -> Option | None:
    return _decided_outside_of(spot, decision.test)


def _decided_outside_of(spot: Spot, test: ast.expr | None) -> Option | None:
    """The decision as an argument, if it depends only on arguments."""
    if test is None or not spot.functions:
        return None
    arguments = {arg.arg for arg in ast.walk(spot.functions[-1].args) if isinstance(arg, ast.arg)} - {"self"}
    if not set(loaded_names(test)) & arguments or spot.inner_names(test):
        return None
    call = called(spot)
    if isinstance(test, ast.Name):  # it is an argument already
        code = f"{test.id} = bool({test.id})\nresult = {call}"
    else:
        name = spot.fresh("flag")
        code = f"{name} = bool({spot.text(test)})\nresult = {call[:-1]}, {name})"
    return Option(
        "Decide in the caller and pass a Python bool in", code, "The function is compiled once for each value."
    )


def _replacing(spot: Spot, do: str, node: ast.expr, text: str, caveat: str) -> Option:
    return Option(do, spot.line_with(node, text), caveat, (*spot.need("torch")[1], spot.replace(node, text)))
