"""A value that a condition chooses, as one expression: `torch.where` for tensors, and for each tensor of a container."""

from __future__ import annotations

import ast

from irscope.fixing.source import Source, parse_expression, tight

_CONTAINERS = (ast.Tuple, ast.List, ast.Dict, ast.ListComp)


def chosen(torch: str, test: str, first: str, second: str) -> str:
    """The code of ``first if test else second``, where the test is a boolean tensor.

    Tuples, lists and dicts are chosen element by element if both sides have as many; so are list comprehensions over the
    same, or of one side over what the other side is.  Raises ValueError for what cannot be chosen.
    """
    if first == second:
        return first
    return _Choice(torch, test, first, second).code()


def repeats(value: str) -> bool:
    """Whether a chosen value asks its test several times."""
    return isinstance(parse_expression(value), _CONTAINERS)


class _Choice:
    """Both sides of a choice, as the two statements of a text."""

    def __init__(self, torch: str, test: str, first: str, second: str) -> None:
        self._torch, self._test, self._texts = torch, test, (first, second)
        self._source = Source(f"{first}\n{second}\n")
        self._sides = [node.value for node in self._source.tree.body if isinstance(node, ast.Expr)]

    def code(self) -> str:
        first, second = self._sides
        if isinstance(first, ast.ListComp) or isinstance(second, ast.ListComp):
            return self._comprehension(first, second)
        if isinstance(first, ast.Tuple) and isinstance(second, ast.Tuple):
            elements = self._elements(first.elts, second.elts)
            return f"({', '.join(elements)}{',' if len(elements) == 1 else ''})"
        if isinstance(first, ast.List) and isinstance(second, ast.List):
            return f"[{', '.join(self._elements(first.elts, second.elts))}]"
        if isinstance(first, ast.Dict) and isinstance(second, ast.Dict):
            return self._dict(first, second)
        if is_no_tensor(first) or is_no_tensor(second):
            raise ValueError("a side is not a tensor")
        return f"{self._torch}.where({self._test}, {self._texts[0]}, {self._texts[1]})"

    def _elements(self, first: list[ast.expr], second: list[ast.expr]) -> list[str]:
        if len(first) != len(second) or any(isinstance(element, ast.Starred) for element in (*first, *second)):
            raise ValueError("the sides have not as many elements")
        pairs = list(zip(first, second, strict=True))
        texts = [(self._source.code(one), self._source.code(other)) for one, other in pairs]
        for (one, other), (text, other_text) in zip(pairs, texts, strict=True):
            if text != other_text and _is_number(one) and _is_number(other):
                raise ValueError("the code that takes the container apart expects a number")
        return [chosen(self._torch, self._test, *pair) for pair in texts]

    def _dict(self, first: ast.Dict, second: ast.Dict) -> str:
        """Both with the same constant texts as keys, in the same order."""
        sides = [
            [key.value if isinstance(key, ast.Constant) else None for key in side.keys] for side in (first, second)
        ]
        if sides[0] != sides[1] or not all(isinstance(key, str) for key in sides[0]):
            raise ValueError("the sides have other keys")
        keys = [self._source.code(key) for key in first.keys if key is not None]
        values = self._elements(first.values, second.values)
        return "{" + ", ".join(f"{key}: {value}" for key, value in zip(keys, values, strict=True)) + "}"

    def _comprehension(self, first: ast.expr, second: ast.expr) -> str:
        """``[f(v) for v in a]`` and ``a``, or and ``[g(v) for v in a]``."""
        loops = [side.generators for side in (first, second) if isinstance(side, ast.ListComp)]
        loop, *more = loops[0]
        if loop.ifs or more or loop.is_async:
            raise ValueError("the loop is not a plain one")
        elements = [self._of_turn(side, loop) for side in (first, second)]
        return f"[{chosen(self._torch, self._test, *elements)} {self._loop(loop)}]"

    def _of_turn(self, side: ast.expr, loop: ast.comprehension) -> str:
        """What a side is in one turn of a loop."""
        if isinstance(side, ast.ListComp):
            other, *more = side.generators
            if other.ifs or more or other.is_async or self._loop(other) != self._loop(loop):
                raise ValueError("the sides have other loops")
            return self._source.code(side.elt)
        if not isinstance(loop.target, ast.Name) or self._source.code(side) != self._source.code(loop.iter):
            raise ValueError("a side is not what the loop is over")
        return loop.target.id

    def _loop(self, loop: ast.comprehension) -> str:
        return f"for {self._source.code(loop.target)} in {tight(self._source.code(loop.iter))}"


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def is_no_tensor(node: ast.expr) -> bool:
    """Whether an expression is certainly no tensor, and no number that torch.where takes."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (int, float, complex)) or isinstance(node.value, bool)
    return isinstance(node, (*_CONTAINERS, ast.Set, ast.JoinedStr, ast.Lambda, ast.GeneratorExp, ast.BoolOp))
