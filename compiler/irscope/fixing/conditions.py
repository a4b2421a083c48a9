"""A condition on the values of tensors, written so that its result is a tensor."""

from __future__ import annotations

import ast

from irscope.fixing.source import Source, tight

_BOOLEAN = frozenset({
    "any", "all", "isnan", "isinf", "isfinite", "eq", "ne", "lt", "gt", "le", "ge", "logical_not", "logical_and",
    "logical_or", "isclose", "bool",
})  # fmt: skip
"""Methods and functions of torch whose results are boolean."""
_NUMERIC = frozenset({
    "sum", "max", "min", "mean", "norm", "abs", "item", "numel", "std", "var", "amax", "amin", "count_nonzero", "prod",
})  # fmt: skip
_PLACE = (ast.Name, ast.Attribute, ast.Subscript)


def condition_of(source: Source, node: ast.expr) -> str | None:
    """The code of a condition as a boolean tensor; None for what cannot be one.

    What may be a plain Python flag stays one, as the second operand of ``&`` or ``|``: torch takes it there.
    """
    if isinstance(node, ast.BoolOp):
        return _joined(source, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition_of(source, node.operand)
        return f"~{tight(inner)}" if inner is not None and is_tensor(source, node.operand) else None
    if isinstance(node, ast.Compare):
        return _comparison(source, node)
    if isinstance(node, ast.Call):
        return _call(source, node)
    return source.code(node) if isinstance(node, _PLACE) else None


def decided(source: Source, node: ast.expr) -> str | None:
    """The same of what breaks the graph: ``not keep[i]`` is then about a tensor, whatever its name says."""
    torch = source.module_name("torch")
    if (
        torch is not None
        and isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.Not)
        and isinstance(node.operand, _PLACE)
    ):
        return f"{torch}.logical_not({source.code(node.operand)})"
    return condition_of(source, node)


def _joined(source: Source, node: ast.BoolOp) -> str | None:
    sign = "&" if isinstance(node.op, ast.And) else "|"
    joined, has_tensor = condition_of(source, node.values[0]), is_tensor(source, node.values[0])
    for value in node.values[1:]:
        operand = condition_of(source, value)
        if joined is None or operand is None:
            return None
        left, right = (joined, operand) if has_tensor else (operand, joined)
        joined = f"{tight(left)} {sign} {tight(right)}"
        has_tensor = has_tensor or is_tensor(source, value)
    return joined


def _comparison(source: Source, node: ast.Compare) -> str | None:
    if any(isinstance(operator, (ast.In, ast.NotIn)) for operator in node.ops):
        return None
    if is_flag(node):
        return source.code(node)
    operands = [node.left, *node.comparators]
    if len(operands) == 2:
        return source.code(node, {operand: without_item(source, operand) for operand in operands})
    texts = [tight(without_item(source, operand)) for operand in operands]
    pairs = zip(texts, node.ops, texts[1:], strict=False)
    return " & ".join(f"({left} {_SIGNS[type(operator)]} {right})" for left, operator, right in pairs)


_SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def _call(source: Source, node: ast.Call) -> str | None:
    name = source.full_name(node.func)
    word = node.func.attr if isinstance(node.func, ast.Attribute) else name.rpartition(".")[2]
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if name == "bool" and len(arguments) == 1:
        return condition_of(source, arguments[0])
    if name in ("any", "all") and len(arguments) == 1 and isinstance(arguments[0], (ast.GeneratorExp, ast.ListComp)):
        return _of_each(source, name, arguments[0])
    if name == "torch.equal" and len(arguments) == 2:
        return f"({' == '.join(tight(source.code(argument)) for argument in arguments)}).all()"
    if name == "torch.allclose":
        return f"{source.code(node, {node.func: 'torch.isclose'})}.all()"
    if word == "item":
        return condition_of(source, node.func.value) if isinstance(node.func, ast.Attribute) else None
    return f"{source.code(node)} != 0" if word in _NUMERIC else source.code(node)


def _of_each(source: Source, word: str, elements: ast.GeneratorExp | ast.ListComp) -> str | None:
    """``any(t.isnan().any() for t in tensors)`` as one boolean tensor, also where there are no tensors."""
    torch, element = source.module_name("torch"), condition_of(source, elements.elt)
    if torch is None or element is None or not is_tensor(source, elements.elt):
        return None
    counted = element if word == "any" else f"{torch}.logical_not({element})"
    summed = source.code(elements, {elements.elt: counted})[1:-1]
    return f"{torch}.as_tensor(sum({summed}) {'> 0' if word == 'any' else '== 0'})"


def without_item(source: Source, node: ast.expr) -> str:
    """The code of an operand without ``.item()`` and ``float(…)`` around a tensor."""
    if isinstance(node, ast.Call) and not node.keywords:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            return tight(source.code(node.func.value))
        if source.full_name(node.func) == "float" and len(node.args) == 1 and is_tensor(source, node):
            return tight(source.code(node.args[0]))
    return source.code(node)


def is_flag(node: ast.expr) -> bool:
    """Whether a condition is certainly a Python bool: ``mask is None``."""
    return isinstance(node, ast.Compare) and any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops)


def is_tensor(source: Source, node: ast.AST) -> bool:
    """Whether an expression calls something that gives a tensor, as far as its names say so."""
    return any(
        (isinstance(call.func, ast.Attribute) and call.func.attr in _BOOLEAN | _NUMERIC)
        or source.full_name(call.func).startswith("torch.")
        for call in source.all(ast.Call, node)
    )
