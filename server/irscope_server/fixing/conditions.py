"""A condition on the values of tensors, written so that its result is a tensor."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from irscope_server.fixing.source import Source

_BOOLEAN = frozenset({
    "any", "all", "isnan", "isinf", "isfinite", "eq", "ne", "lt", "gt", "le", "ge", "logical_not", "logical_and",
    "logical_or", "isclose", "bool",
})  # fmt: skip
"""Methods and functions of torch whose results are boolean."""
_NUMERIC = frozenset({
    "sum", "max", "min", "mean", "norm", "abs", "item", "numel", "std", "var", "amax", "amin", "count_nonzero", "prod",
})  # fmt: skip


def condition_of(source: Source, node: cst.BaseExpression) -> str | None:
    """The code of a condition as a boolean tensor; None for what cannot be one.

    What may be a plain Python flag stays one, as the second operand of ``&`` or ``|``: torch takes it there.
    """
    if isinstance(node, cst.BooleanOperation):
        return _joined(source, node)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = condition_of(source, node.expression)
        return f"~{tight(inner)}" if inner is not None and is_tensor(source, node.expression) else None
    if isinstance(node, cst.Comparison):
        return _comparison(source, node)
    if isinstance(node, cst.Call):
        return _call(source, node)
    if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)):
        return source.code(node)
    return None


def decided(source: Source, node: cst.BaseExpression) -> str | None:
    """The same of what breaks the graph: ``not keep[i]`` is then about a tensor, whatever its name says."""
    place = m.Name() | m.Attribute() | m.Subscript()
    torch = source.module_name("torch")
    if torch is not None and m.matches(node, m.UnaryOperation(operator=m.Not(), expression=place)):
        return f"{torch}.logical_not({source.code(cst.ensure_type(node, cst.UnaryOperation).expression)})"
    return condition_of(source, node)


def _joined(source: Source, node: cst.BooleanOperation) -> str | None:
    left, right = condition_of(source, node.left), condition_of(source, node.right)
    if left is None or right is None:
        return None
    sign = "&" if isinstance(node.operator, cst.And) else "|"
    if not is_tensor(source, node.left):
        left, right = right, left
    return f"{tight(left)} {sign} {tight(right)}"


def _comparison(source: Source, node: cst.Comparison) -> str | None:
    if any(isinstance(each.operator, (cst.In, cst.NotIn)) for each in node.comparisons):
        return None
    if is_flag(node):
        return source.code(node)
    operands = [node.left, *(each.comparator for each in node.comparisons)]
    texts = [without_item(source, one) for one in operands]
    signs = [source.code(each.operator).strip() for each in node.comparisons]
    pairs = [f"{texts[n]} {sign} {texts[n + 1]}" for n, sign in enumerate(signs)]
    return pairs[0] if len(pairs) == 1 else " & ".join(f"({pair})" for pair in pairs)


def _call(source: Source, node: cst.Call) -> str | None:
    name = source.full_name(node.func)
    word = name.rpartition(".")[2] or (node.func.attr.value if isinstance(node.func, cst.Attribute) else "")
    if name == "bool" and len(node.args) == 1:
        return condition_of(source, node.args[0].value)
    if (
        name in ("any", "all")
        and len(node.args) == 1
        and isinstance(node.args[0].value, (cst.GeneratorExp, cst.ListComp))
    ):
        return _of_each(source, name, node.args[0].value)
    if name == "torch.equal" and len(node.args) == 2:
        first, second = (source.code(arg.value) for arg in node.args)
        return f"({first} == {second}).all()"
    if name == "torch.allclose":
        arguments = ", ".join(source.code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in node.args)
        return f"torch.isclose({arguments}).all()"
    if word == "item":
        return condition_of(source, node.func.value) if isinstance(node.func, cst.Attribute) else None
    return f"{source.code(node)} != 0" if word in _NUMERIC else source.code(node)


def _of_each(source: Source, word: str, each: cst.GeneratorExp | cst.ListComp) -> str | None:
    """``any(t.isnan().any() for t in tensors)`` as one boolean tensor, also where there are no tensors."""
    torch, element = source.module_name("torch"), condition_of(source, each.elt)
    if torch is None or element is None or not is_tensor(source, each.elt):
        return None
    counted = element if word == "any" else f"{torch}.logical_not({element})"
    compared = "> 0" if word == "any" else "== 0"
    return f"{torch}.as_tensor(sum({counted} {source.code(each.for_in).strip()}) {compared})"


def without_item(source: Source, node: cst.BaseExpression) -> str:
    """The code of an operand without ``.item()``, ``float(…)`` and ``int(…)`` around a tensor."""
    if m.matches(node, m.Call(func=m.Attribute(attr=m.Name("item")), args=[])):
        assert isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
        return source.code(node.func.value)
    if m.matches(node, m.Call(func=m.Name("float"), args=[m.Arg()])) and is_tensor(source, node):
        assert isinstance(node, cst.Call)
        return source.code(node.args[0].value)
    return source.code(node)


def is_flag(node: cst.BaseExpression) -> bool:
    """Whether a condition is certainly a Python bool: ``mask is None``."""
    return isinstance(node, cst.Comparison) and any(
        isinstance(each.operator, (cst.Is, cst.IsNot)) for each in node.comparisons
    )


def is_tensor(source: Source, node: cst.CSTNode) -> bool:
    """Whether an expression calls something that gives a tensor, as far as its names say so."""
    found = m.findall(node, m.Call(func=m.Attribute() | m.Name()))
    for call in found:
        assert isinstance(call, cst.Call)
        word = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if word in _BOOLEAN | _NUMERIC or source.full_name(call.func).startswith("torch."):
            return True
    return False


def tight(text: str) -> str:
    """With parentheses if something could bind to a part of it."""
    node = cst.parse_expression(text)
    loose = (
        cst.BinaryOperation,
        cst.UnaryOperation,
        cst.BooleanOperation,
        cst.Comparison,
        cst.IfExp,
        cst.Lambda,
        cst.Tuple,
    )
    return f"({text})" if isinstance(node, loose) and not node.lpar else text
