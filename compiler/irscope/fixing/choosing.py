"""A value that a condition chooses, as one expression: `torch.where` for tensors, and for each tensor of a container."""

from __future__ import annotations

import ast

from irscope.fixing.source import Source, parse_expression
from irscope.fixing.syntax import is_number

_DISPLAYS = (ast.Tuple, ast.List, ast.Dict)


def chosen(torch: str, test: str, first: str, second: str) -> str:
    """The code of ``first if test else second``, where the test is a boolean tensor.

    Tuples, lists and dicts are chosen element by element if both sides have as many; so are list comprehensions over the
    same, or of one side over what the other side is.  Raises ValueError for what cannot be chosen.
    """
    if first == second:
        return first
    source = Source(f"{first}\n{second}\n")
    sides = [node.value for node in source.tree.body if isinstance(node, ast.Expr)]
    whole = next((side for side in sides if isinstance(side, ast.ListComp)), sides[0])
    if isinstance(whole, ast.ListComp):
        elements = [(whole.elt, _of_turn(source, sides[0], whole), _of_turn(source, sides[1], whole))]
    elif isinstance(whole, _DISPLAYS) and type(sides[0]) is type(sides[1]):
        elements = [(one, source.code(one), source.code(other)) for one, other in _pairs(source, *sides)]
    elif any(map(is_no_tensor, sides)):
        raise ValueError("a side is not a tensor")
    else:
        return f"{torch}.where({test}, {first}, {second})"
    return source.code(whole, {element: chosen(torch, test, one, other) for element, one, other in elements})


def repeats(value: str) -> bool:
    """Whether a chosen value asks its test several times."""
    return isinstance(parse_expression(value), (*_DISPLAYS, ast.ListComp))


def _pairs(source: Source, first: ast.expr, second: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The elements of two containers; dicts have the same constant texts as keys, in the same order."""
    sides = [getattr(side, "elts", None) or getattr(side, "values", []) for side in (first, second)]
    keys = [[getattr(key, "value", None) for key in getattr(side, "keys", ())] for side in (first, second)]
    is_odd = any(isinstance(element, ast.Starred) for element in (*sides[0], *sides[1]))
    if len(sides[0]) != len(sides[1]) or keys[0] != keys[1] or is_odd or not all(isinstance(k, str) for k in keys[0]):
        raise ValueError("the sides have other elements")
    pairs = list(zip(*sides, strict=True))
    if any(is_number(one) and is_number(other) and source.code(one) != source.code(other) for one, other in pairs):
        raise ValueError("the code that takes the container apart expects a number")
    return pairs


def _of_turn(source: Source, side: ast.expr, whole: ast.ListComp) -> str:
    """What a side is in one turn of a list comprehension: ``[f(v) for v in a]`` and ``a``, or and ``[g(v) for v in a]``."""
    loop, *more = whole.generators
    if loop.ifs or more or loop.is_async:
        raise ValueError("the loop is not a plain one")
    if isinstance(side, ast.ListComp) and [*map(ast.dump, side.generators)] == [ast.dump(loop)]:
        return source.code(side.elt)
    if isinstance(loop.target, ast.Name) and source.code(side) == source.code(loop.iter):
        return loop.target.id
    raise ValueError("the sides have other loops")


def is_no_tensor(node: ast.expr) -> bool:
    """Whether an expression is certainly no tensor, and no number that torch.where takes."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (int, float, complex)) or isinstance(node.value, bool)
    others = (*_DISPLAYS, ast.ListComp, ast.Set, ast.JoinedStr, ast.Lambda, ast.GeneratorExp, ast.BoolOp)
    return isinstance(node, others)
