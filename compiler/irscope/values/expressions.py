"""Conditions, watches and log messages: expressions over a fixed set of names, read with `ast` and never executed.

There are comparisons, ``and``/``or``/``not``, arithmetic on numbers, ``in``, ``len()``, indices and the attributes of
`Facts`.  Everything else is refused with the part that is not understood.  A list compared with a number stands for
its length, so that ``users > 4`` means what it says; a `Block` stands for its elements: ``(tmp5 != tmp5).any()``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irscope.values.facts import REDUCED, BadExpression, Block, Elements, Facts, Lazy

LONGEST = 1000
"""Characters of an expression."""


class NoValueHere(BadExpression):
    """The name means something, but not at this place: there is no kernel, no node, no finding."""


class NotHere(LookupError):
    """What a `Lookup` raises for a name that has no meaning at its place, but has one elsewhere."""


Lookup = Callable[[str], Any]
"""From a name to its value; raises LookupError for a name that there is not."""

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARING: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, many: _plain(one) in (many if isinstance(many, str) else [_plain(each) for each in many]),
    ast.NotIn: lambda one, many: not _COMPARING[ast.In](one, many),
}


_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def evaluate(text: str, lookup: Lookup) -> Any:
    """The value of an expression: a number, text, True, False, None, a list or `Facts`.

    Raises:
        BadExpression: It is not understood, names something that is not there, or its parts do not fit together.
    """
    tree = _parse(text)
    try:
        return _value(tree.body, lookup)
    except RecursionError:
        raise BadExpression("the expression is nested too deeply") from None


def check(text: str) -> None:
    """Raises BadExpression for text that can be no expression, whatever its names mean."""
    _parse(text)


def _parse(text: str) -> ast.Expression:
    if len(text) > LONGEST:
        raise BadExpression(f"the expression is longer than {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BadExpression(f"{text.strip()!r} is not an expression: {said}") from None
    except (RecursionError, MemoryError):
        raise BadExpression("the expression is nested too deeply") from None
    return tree


def _value(node: ast.expr, lookup: Lookup) -> Any:
    """What an expression is worth.  Raises BadExpression, and NoValueHere for a name that has no value at this place."""
    for kind, evaluate in _EVALUATED.items():
        if isinstance(node, kind):
            return evaluate(node, lookup)
    raise _not_understood(node)


def _not_understood(node: ast.expr) -> BadExpression:
    return BadExpression(
        f"{_words(node)} is not supported; use comparisons, and, or, not, arithmetic on numbers, in, len() and indices"
    )


def _constant(node: ast.Constant, _: Lookup) -> Any:
    if isinstance(node.value, (str, int, float, type(None))):
        return node.value
    raise _not_understood(node)


def _name(node: ast.Name, lookup: Lookup) -> Any:
    try:
        return lookup(node.id)
    except LookupError as error:
        kind = NoValueHere if isinstance(error, NotHere) else BadExpression
        raise kind(str(error.args[0]) if error.args else f"unknown name: {node.id!r}") from None


def _bool_op(node: ast.BoolOp, lookup: Lookup) -> Any:
    value: Any = None
    for part in node.values:
        value = _value(part, lookup)
        if bool(value) is isinstance(node.op, ast.Or):
            return value
    return value


def _unary_op(node: ast.UnaryOp, lookup: Lookup) -> Any:
    value = _value(node.operand, lookup)
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(node.op, ast.USub):
        return -_number(value, node.operand)
    if isinstance(node.op, ast.UAdd):
        return _number(value, node.operand)
    raise _not_understood(node)


def _binary_op(node: ast.BinOp, lookup: Lookup) -> Any:
    if type(node.op) not in _ARITHMETIC:
        raise _not_understood(node)
    left, right = _value(node.left, lookup), _value(node.right, lookup)
    if (block := _one_by_one(_ARITHMETIC[type(node.op)], left, right)) is not None:
        return block
    left, right = _number(left, node.left), _number(right, node.right)
    try:
        return _ARITHMETIC[type(node.op)](left, right)
    except ArithmeticError as error:
        raise BadExpression(f"{_words(node)}: {error}") from None


def _list(node: ast.List | ast.Tuple | ast.Set, lookup: Lookup) -> list[Any]:
    return [_value(each, lookup) for each in node.elts]


def _one_by_one(operate: Callable[[Any, Any], Any], left: Any, right: Any) -> Elements | None:
    """The result of an operation of which one side is a block; None if neither is."""
    left, right = (each.elements if isinstance(each, Block) else each for each in (left, right))
    if isinstance(left, Elements):
        return left.with_(operate, right)
    return right.with_(operate, left, swapped=True) if isinstance(right, Elements) else None


def _call(node: ast.Call, lookup: Lookup) -> Any:
    if isinstance(node.func, ast.Attribute) and node.func.attr in REDUCED and not node.args and not node.keywords:
        block = _value(node.func.value, lookup)
        if isinstance(block, Block | Elements):
            return (block.elements if isinstance(block, Block) else block).reduced(node.func.attr)
    if not (isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1 and not node.keywords):
        raise BadExpression(f"{_words(node)}: the only function available is len()")
    value = _value(node.args[0], lookup)
    if isinstance(value, (str, Sequence)):
        return len(value)
    raise BadExpression(f"{_words(node.args[0])} has no length")


def _attribute(node: ast.Attribute, lookup: Lookup) -> Any:
    if isinstance(node.value, ast.Name) and node.value.id == "torch":
        return f"torch.{node.attr}"
    value = _value(node.value, lookup)
    if isinstance(value, Facts):
        return value.get(node.attr)
    raise BadExpression(f"{_words(node.value)} has no {node.attr!r}")


def _item(node: ast.Subscript, lookup: Lookup) -> Any:
    value, index = _value(node.value, lookup), None
    if not isinstance(node.slice, ast.Slice):
        index = _value(node.slice, lookup)
    if not isinstance(value, (str, Sequence)) or not isinstance(index, int) or isinstance(index, bool):
        raise BadExpression(f"{_words(node)}: only lists and texts have items, and their indices are whole numbers")
    try:
        return value[index]
    except IndexError:
        raise BadExpression(f"{_words(node)}: there are {len(value)}") from None


def _compare(node: ast.Compare, lookup: Lookup) -> bool | Elements:
    left = _value(node.left, lookup)
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = _value(part, lookup)
        one, other = left, right
        if len(node.ops) == 1 and type(op) in _ORDERS:
            if (block := _one_by_one(_COMPARING[type(op)], left, right)) is not None:
                return block
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(other, (str, Sequence)) or (isinstance(other, str) and not isinstance(_plain(one), str)):
                raise BadExpression(f"{_words(node)}: {_words(part)} has no entry of that kind")
        else:
            one, other = _measured(left, right), _measured(right, left)
        try:
            if not _COMPARING[type(op)](one, other):
                return False
        except TypeError:
            raise BadExpression(f"{_words(node)}: these values cannot be compared") from None
        left = right
    return True


def _measured(value: Any, against: Any) -> Any:
    """What a value counts as in a comparison."""
    if isinstance(value, Facts):
        return _plain(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if isinstance(against, (int, float)):
            return len(value)
        return [_plain(each) for each in value]
    return value


def _plain(value: Any) -> Any:
    """`Facts` count as their names where they have one."""
    if isinstance(value, Facts):
        return value.get("name") if "name" in value.names() else value.summary
    return value


def _number(value: Any, node: ast.expr) -> Any:
    if isinstance(value, (int, float)):
        return value
    raise BadExpression(f"{_words(node)} is not a number")


def _words(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- log messages and hit counts --------------------------------------------------------------------------------------


def interpolate(message: str, lookup: Lookup) -> str:
    """A log message with each ``{expression}`` replaced by its value, or by what is wrong with it."""
    parts: list[str] = []
    position = 0
    while (start := message.find("{", position)) >= 0:
        end = message.find("}", start)
        if end < 0:
            break
        parts.append(message[position:start])
        try:
            parts.append(shown(evaluate(message[start + 1 : end], lookup)))
        except BadExpression as error:
            parts.append(f"<{error}>")
        position = end + 1
    return "".join([*parts, message[position:]])


_SHOWN = 100
"""Items of a list in one line."""


def shown(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, str):
        return value
    if isinstance(value, Facts):
        return value.summary
    if isinstance(value, Elements):
        return shown(value.numbers)
    if isinstance(value, Lazy) and value.text:
        return value.text
    if isinstance(value, Sequence):
        first = [shown(each) for each in value[:_SHOWN]]
        return f"[{', '.join(first)}{', …' if len(value) > _SHOWN else ''}]"
    if value is None:
        return "unknown"
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python writes
        return "a very large number"


def hits_wanted(text: str) -> Callable[[int], bool]:
    """A hit condition: ``5`` (the fifth and all later ones), ``== 5``, ``> 5``, ``>= 5``, ``< 5``, ``<= 5``, ``% 5``.

    Raises BadExpression for anything else.
    """
    stripped = text.strip()
    sign = next((each for each in ("==", ">=", "<=", ">", "<", "%") if stripped.startswith(each)), "")
    digits = stripped[len(sign) :].strip()
    if not digits.isdecimal() or len(digits) > 9 or (sign == "%" and int(digits) == 0):
        raise BadExpression(f"{text!r} is not a hit count: write 5, == 5, > 5, >= 5, < 5, <= 5 or % 5")
    number = int(digits)
    tests: dict[str, Callable[[int], bool]] = {
        "": lambda hits: hits >= number,
        "==": lambda hits: hits == number,
        ">=": lambda hits: hits >= number,
        "<=": lambda hits: hits <= number,
        ">": lambda hits: hits > number,
        "<": lambda hits: hits < number,
        "%": lambda hits: hits % number == 0,
    }
    return tests[sign]


def completions(prefix: str, names: Iterable[str]) -> list[str]:
    """The names that begin as the last word of a text does, in order."""
    return sorted(name for name in names if name.startswith(prefix))


_EVALUATED: dict[type[ast.expr], Callable[[Any, Lookup], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BoolOp: _bool_op,
    ast.UnaryOp: _unary_op,
    ast.BinOp: _binary_op,
    ast.Compare: _compare,
    ast.List: _list,
    ast.Tuple: _list,
    ast.Set: _list,
    ast.Subscript: _item,
    ast.Call: _call,
}
