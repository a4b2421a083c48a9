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
_MOST_ALTERNATIVES = 4
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
    """The same of what breaks the graph, which is about a tensor, whatever its name says: ``if ready``, ``not keep[i]``."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        operand = node.operand
        if isinstance(operand, _PLACE) or not is_tensor(source, operand):
            inner = source.code(operand) if isinstance(operand, _PLACE) else decided(source, operand)
            return f"{_torch(source)}.logical_not({inner})" if inner is not None else None
    # A node that a rule made names a condition that is a boolean tensor already.
    is_boolean = isinstance(node, ast.Call) and _word(source, node) in _BOOLEAN
    if isinstance(node, (*_PLACE, ast.BinOp, ast.Call)) and not is_boolean and source.parent(node) is not None:
        code = source.code(node) if isinstance(node, ast.BinOp) else condition_of(source, node)
        return f"{tight(code)} != 0" if code is not None and code == source.code(node) else code
    return condition_of(source, node)


def _torch(source: Source) -> str:
    return source.module_name("torch") or "torch"


def _word(source: Source, call: ast.Call) -> str:
    """The last word of the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else source.full_name(call.func).rpartition(".")[2]


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
        return _membership(source, node)
    if is_flag(node):
        return source.code(node)
    operands = [node.left, *node.comparators]
    if len(operands) == 2:
        return source.code(node, {operand: without_item(source, operand) for operand in operands})
    texts = [tight(without_item(source, operand)) for operand in operands]
    pairs = zip(texts, node.ops, texts[1:], strict=False)
    return " & ".join(f"({left} {SIGNS[type(operator)]} {right})" for left, operator, right in pairs)


def _membership(source: Source, node: ast.Compare) -> str | None:
    """``x.sum() in (1, 2)`` for a few numbers."""
    options = node.comparators[0]
    if len(node.ops) > 1 or not isinstance(options, (ast.List, ast.Tuple, ast.Set)):
        return None
    are_numbers = all(isinstance(e, ast.Constant) and isinstance(e.value, (int, float)) for e in options.elts)
    if not are_numbers or not 0 < len(options.elts) <= _MOST_ALTERNATIVES:
        return None
    sign, joint = ("==", " | ") if isinstance(node.ops[0], ast.In) else ("!=", " & ")
    value = tight(without_item(source, node.left))
    return joint.join(f"({value} {sign} {source.code(option)})" for option in options.elts)


SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_OPPOSITES = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def opposite(source: Source, test: ast.expr) -> str:
    """The opposite of a comparison of integers; empty for another test."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in SIGNS:
        return ""
    (start, end), (_, left), (right, _) = map(source.span, (test, test.left, test.comparators[0]))
    sign = SIGNS[type(test.ops[0])]
    return source.text[start:left] + source.text[left:right].replace(sign, _OPPOSITES[sign]) + source.text[right:end]


def _call(source: Source, node: ast.Call) -> str | None:
    name = source.full_name(node.func)
    word = _word(source, node)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if name == "bool" and len(arguments) == 1:
        return condition_of(source, arguments[0])
    if name in ("any", "all") and len(arguments) == 1 and isinstance(arguments[0], (ast.GeneratorExp, ast.ListComp)):
        return _of_each(source, name, arguments[0])
    if name == "torch.equal" and len(arguments) == 2:
        return f"({' == '.join(tight(source.code(argument)) for argument in arguments)}).all()"
    if name == "torch.allclose":
        return f"{source.code(node, {node.func: f'{_torch(source)}.isclose'})}.all()"
    if word == "item":
        return condition_of(source, node.func.value) if isinstance(node.func, ast.Attribute) else None
    return f"{source.code(node)} != 0" if word in _NUMERIC else source.code(node)


def _of_each(source: Source, word: str, elements: ast.GeneratorExp | ast.ListComp) -> str | None:
    """``any(t.isnan().any() for t in tensors)`` as one boolean tensor, also where there are no tensors."""
    element, torch = condition_of(source, elements.elt), _torch(source)
    if element is None or not is_tensor(source, elements.elt):
        return _of_elements(source, word, elements)
    counted = element if word == "any" else f"{torch}.logical_not({element})"
    summed = source.code(elements, {elements.elt: counted})[1:-1]
    return f"{torch}.as_tensor(sum({summed}) {'> 0' if word == 'any' else '== 0'})"


def _of_elements(source: Source, word: str, elements: ast.GeneratorExp | ast.ListComp) -> str | None:
    """``all(v > 0 for v in x)`` is ``(x > 0).all()``."""
    loop, *more = elements.generators
    test = elements.elt
    if more or loop.ifs or not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in SIGNS:
        return None
    if source.code(test.left) != source.code(loop.target) or not isinstance(test.comparators[0], ast.Constant):
        return None
    return f"({source.code(test, {test.left: source.code(loop.iter)})}).{word}()"


def without_item(source: Source, node: ast.expr) -> str:
    """The code of an operand without ``.item()`` and ``float(…)`` around a tensor."""
    tensor = tensor_of(source, node, "float")
    return source.code(node) if tensor is None else tight(source.code(tensor))


def tensor_of(source: Source, node: ast.expr, function: str) -> ast.expr | None:
    """The tensor whose number an expression is: ``x.item()``, or ``float(x)`` where ``float`` is the function."""
    match node:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return tensor
        case ast.Call(func=called, args=[value], keywords=[]) if source.full_name(called) == function:
            return None if isinstance(value, ast.Constant) else value
    return None


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
