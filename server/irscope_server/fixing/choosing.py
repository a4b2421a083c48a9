"""A value that a condition chooses, as one expression: `torch.where` for tensors, and for each tensor of a container."""

from __future__ import annotations

import libcst as cst


class NotPossible(Exception):
    """What statements do cannot be written without a branch."""


def chosen(torch: str, test: str, first: str, second: str) -> str:
    """The code of ``first if test else second``, where the test is a boolean tensor.

    Tuples, lists and dicts are chosen element by element if both sides have as many; so are list comprehensions over the
    same, or of one side over what the other side is.  Raises NotPossible.
    """
    if first == second:
        return first
    one, other = cst.parse_expression(first), cst.parse_expression(second)
    if isinstance(one, cst.ListComp) or isinstance(other, cst.ListComp):
        return _comprehension(torch, test, one, other)
    if isinstance(one, (cst.Tuple, cst.List)) and type(one) is type(other):
        return _sequence(torch, test, one, other)
    if isinstance(one, cst.Dict) and isinstance(other, cst.Dict):
        return _dict(torch, test, one, other)
    if _is_no_tensor(one, first) or _is_no_tensor(other, second):
        raise NotPossible
    return f"{torch}.where({test}, {first}, {second})"


def repeats(value: str) -> bool:
    """Whether a chosen value asks its test several times."""
    return isinstance(cst.parse_expression(value), (cst.Tuple, cst.List, cst.Dict, cst.ListComp))


def _sequence(torch: str, test: str, one: cst.Tuple | cst.List, other: cst.BaseExpression) -> str:
    assert isinstance(other, (cst.Tuple, cst.List))
    starred = any(isinstance(each, cst.StarredElement) for each in (*one.elements, *other.elements))
    if starred or len(one.elements) != len(other.elements):
        raise NotPossible
    pairs = zip(one.elements, other.elements, strict=True)
    made = [_element(torch, test, first.value, second.value) for first, second in pairs]
    if isinstance(one, cst.List):
        return f"[{', '.join(made)}]"
    return f"({', '.join(made)},)" if len(made) == 1 else f"({', '.join(made)})"


def _dict(torch: str, test: str, one: cst.Dict, other: cst.Dict) -> str:
    """Both with the same constant texts as keys, in the same order."""
    sides = [[each for each in side.elements if isinstance(each, cst.DictElement)] for side in (one, other)]
    keys = [[_code(each.key) for each in side] for side in sides]
    whole = all(len(side) == len(given.elements) for side, given in zip(sides, (one, other), strict=True))
    if not whole or keys[0] != keys[1] or not all(isinstance(each.key, cst.SimpleString) for each in sides[0]):
        raise NotPossible
    pairs = zip(keys[0], *sides, strict=True)
    return "{" + ", ".join(f"{key}: {_element(torch, test, a.value, b.value)}" for key, a, b in pairs) + "}"


def _element(torch: str, test: str, one: cst.BaseExpression, other: cst.BaseExpression) -> str:
    first, second = _code(one), _code(other)
    numbers = (cst.Integer, cst.Float)
    if first != second and isinstance(one, numbers) and isinstance(other, numbers):
        raise NotPossible  # the code that takes the container apart expects a number
    return chosen(torch, test, first, second)


def _comprehension(torch: str, test: str, one: cst.BaseExpression, other: cst.BaseExpression) -> str:
    """``[f(v) for v in a]`` and ``a``, or and ``[g(v) for v in a]``."""
    loop = next(each for each in (one, other) if isinstance(each, cst.ListComp)).for_in
    if loop.ifs or loop.inner_for_in is not None or loop.asynchronous is not None:
        raise NotPossible
    elements = [_of_each(side, loop) for side in (one, other)]
    return f"[{chosen(torch, test, *elements)} {_code(loop).strip()}]"


def _of_each(side: cst.BaseExpression, loop: cst.CompFor) -> str:
    """What a side is for one turn of a loop."""
    if isinstance(side, cst.ListComp):
        if _code(side.for_in).strip() != _code(loop).strip():
            raise NotPossible
        return _code(side.elt)
    if not isinstance(loop.target, cst.Name) or _code(side) != _code(loop.iter):
        raise NotPossible
    return loop.target.value


def _is_no_tensor(node: cst.BaseExpression, text: str) -> bool:
    """Whether an expression is certainly no tensor, and no number that torch.where takes."""
    odd = (cst.Tuple, cst.List, cst.Dict, cst.Set, cst.SimpleString, cst.FormattedString, cst.Lambda)
    return isinstance(node, odd) or text in ("None", "True", "False")


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
