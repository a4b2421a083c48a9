"""Python conditions on tensors, written as one tensor."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice.common import around
from irscope.fixing.advice.model import Advice
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names

Decision = ast.If | ast.While | ast.IfExp | ast.Assert
_COMPARISONS = (ast.Lt, ast.Gt, ast.LtE, ast.GtE, ast.Eq, ast.NotEq)
_BOOLEAN = {"any", "all", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not", "isclose", "bool"}
_OF_TENSORS = _BOOLEAN | {
    "sum",
    "mean",
    "max",
    "min",
    "norm",
    "item",
    "amax",
    "amin",
    "std",
    "var",
    "prod",
    "count_nonzero",
}
_MOST_ALTERNATIVES = 4
_RELATION = re.compile(r"(?P<name>Eq|Ne)\((?P<left>[^,]+), (?P<right>[^,]+)\)")
_SIGNS = {"Eq": "==", "Ne": "!="}


def decision_at(spot: Spot) -> Decision | None:
    """The ``if``, ``while``, ``assert`` or conditional expression whose condition the break is in."""
    kinds = (ast.If, ast.While, ast.IfExp, ast.Assert)
    if isinstance(spot.node, kinds):
        return spot.node
    child: ast.AST | None = spot.node
    for node in spot.ancestors:
        if isinstance(node, kinds):
            return node if node.test is child else None
        part = isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.BinOp, ast.NamedExpr))
        if not part and not _is_call(node, "bool", "float", "all", "any") and not _is_item(node):
            if not (isinstance(node, ast.Attribute) and _is_item(spot.parent(node))):
                return None
        child = node
    return None


def condition(spot: Spot, node: ast.expr) -> str | None:
    """A condition as an expression that gives one boolean tensor; None if it cannot be written so."""
    torch, _ = spot.need("torch")
    if _is_numpy(spot, node):
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(spot, node.operand)
        return f"{torch}.logical_not({inner})" if inner else None
    if isinstance(node, ast.BoolOp):
        if not all(looks_like_tensor(spot, value) for value in node.values):
            return None
        return _joined(torch, isinstance(node.op, ast.And), [condition(spot, value) for value in node.values])
    if isinstance(node, ast.Compare):
        return _comparison(spot, torch, node)
    if isinstance(node, ast.Call):
        return _call(spot, torch, node)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp)):
        return f"({spot.tight(node)} != 0)"
    return None


def _comparison(spot: Spot, torch: str, node: ast.Compare) -> str | None:
    sides, tests = [node.left, *node.comparators], list[str | None]()
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        if isinstance(operator, (ast.In, ast.NotIn)):
            tests.append(_membership(spot, torch, left, operator, right))
        elif isinstance(operator, _COMPARISONS):
            sign = ast.unparse(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))[2:-2]
            tests.append(f"{without_item(spot, left)} {sign} {without_item(spot, right)}")
        else:
            return None
    return tests[0] if len(tests) == 1 else _joined(torch, True, tests)


def _membership(spot: Spot, torch: str, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> str | None:
    if not isinstance(right, (ast.List, ast.Tuple, ast.Set)) or not 0 < len(right.elts) <= _MOST_ALTERNATIVES:
        return None
    if not all(isinstance(item, ast.Constant) and isinstance(item.value, (int, float)) for item in right.elts):
        return None
    sign = "==" if isinstance(operator, ast.In) else "!="
    tests: list[str | None] = [f"{without_item(spot, left)} {sign} {spot.text(item)}" for item in right.elts]
    return tests[0] if len(tests) == 1 else _joined(torch, isinstance(operator, ast.NotIn), tests)


def _call(spot: Spot, torch: str, node: ast.Call) -> str | None:
    name = spot.qualified(node.func)
    if name == "bool" and len(node.args) == 1:
        return condition(spot, node.args[0])
    if name in ("torch.equal", "torch.allclose"):
        return all_equal(spot, node)
    if name in ("all", "any") and len(node.args) == 1:
        return _all_of(spot, name, node.args[0])
    if _is_item(node) and isinstance(node.func, ast.Attribute):
        return condition(spot, node.func.value)
    word = node.func.attr if isinstance(node.func, ast.Attribute) else name.rpartition(".")[2]
    return spot.text(node) if word in _BOOLEAN else f"({spot.text(node)} != 0)"


def all_equal(spot: Spot, node: ast.Call) -> str | None:
    """``torch.equal`` or ``torch.allclose`` as a tensor."""
    torch, _ = spot.need("torch")
    arguments = [spot.text(arg) for arg in node.args] + [spot.text(keyword.value) for keyword in node.keywords]
    if len(node.args) < 2 or not arguments:
        return None
    if spot.qualified(node.func) == "torch.equal":
        return f"({spot.tight(node.args[0])} == {spot.tight(node.args[1])}).all()"
    keywords = [f"{k.arg}={spot.text(k.value)}" for k in node.keywords if k.arg]
    return f"{torch}.isclose({', '.join([*(spot.text(arg) for arg in node.args), *keywords])}).all()"


def _all_of(spot: Spot, name: str, values: ast.expr) -> str | None:
    """``all(v > 0 for v in x)`` is ``(x > 0).all()``."""
    if not isinstance(values, (ast.GeneratorExp, ast.ListComp)) or len(values.generators) != 1:
        return None
    loop, test = values.generators[0], values.elt
    if loop.ifs or not isinstance(loop.target, ast.Name) or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    item, right = test.left, test.comparators[0]
    plain = isinstance(item, ast.Name) and item.id == loop.target.id and loop.target.id not in loaded_names(right)
    if not plain or not isinstance(test.ops[0], _COMPARISONS) or not isinstance(right, ast.Constant):
        return None
    text = ast.unparse(ast.Compare(loop.iter, test.ops, [right]))
    return f"({text}).{name}()"


def _joined(torch: str, conjunction: bool, tests: list[str | None]) -> str | None:
    joined: str | None = None
    for test in tests:
        if test is None:
            return None
        function = "logical_and" if conjunction else "logical_or"
        joined = test if joined is None else f"{torch}.{function}({joined}, {test})"
    return joined


def looks_like_tensor(spot: Spot, node: ast.expr) -> bool:
    """Whether an expression is a tensor by what is called in it, or in the assignment of its name."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            word = inner.func.attr if isinstance(inner.func, ast.Attribute) else ""
            if word in _OF_TENSORS or spot.qualified(inner.func) in ("torch.equal", "torch.allclose"):
                return True
    if isinstance(node, ast.Name) and spot.functions:
        values = [
            n.value for n in ast.walk(spot.functions[0]) if isinstance(n, ast.Assign) and node.id in bound_names(n)
        ]
        return bool(values) and all(not isinstance(v, ast.Name) and looks_like_tensor(spot, v) for v in values)
    return False


def without_item(spot: Spot, node: ast.expr) -> str:
    """An expression's source without the ``.item()`` or ``float(…)`` around a tensor."""
    if isinstance(node, ast.Call) and _is_item(node) and isinstance(node.func, ast.Attribute):
        return spot.text(node.func.value)
    if isinstance(node, ast.Call) and _is_call(node, "float") and len(node.args) == 1:
        return spot.text(node.args[0])
    return spot.text(node)


def _is_numpy(spot: Spot, node: ast.expr) -> bool:
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return any(ast.unparse(f).endswith(".numpy") or spot.qualified(f).startswith("numpy.") for f in calls)


def _is_item(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


def _is_call(node: ast.AST | None, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


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
