"""Expressions over tensors, for people who debug: ``mm_1.abs().max()``, ``(relu > 0).sum()``, ``addmm[0, :8]``.

Read with `ast` and evaluated piece by piece; names are those of nodes, ``value`` and ``torch``; methods and functions are
those of the lists below, none of which changes a tensor, reads a file or runs code.  Runs in the value process.
"""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

LONGEST = 1000
_METHODS = """
abs add all allclose amax amin angle any argmax argmin argsort bfloat16 bool ceil chunk clamp clip clone conj contiguous
corrcoef cos cosh count_nonzero cov cpu cummax cummin cumprod cumsum deg2rad det detach diag diagonal diff dim dist div
dot double eq erf exp expm1 flatten flip float floor fmod frac ge gather gt half histc imag index_select int
inner isclose isfinite isinf isnan isneginf isposinf item kthvalue le lerp log log10 log1p log2 logical_and logical_not
logical_or logical_xor logit logsumexp long lt masked_fill masked_select matmul max maximum mean median min minimum mm mode
moveaxis mul mv nan_to_num nanmean nanmedian nanquantile nansum narrow ndimension ne neg nelement nonzero norm numel outer
permute pow prod quantile real reciprocal remainder renorm reshape round rsqrt select sigmoid sign signbit sin size
softmax sort split sqrt square squeeze std stride sub sum swapaxes t take tan tanh tolist topk trace
transpose tril triu trunc unbind unflatten unique unique_consecutive unsqueeze var view where
"""
METHODS = frozenset(re.findall(r"\w+", _METHODS))
FUNCTIONS = (METHODS | {"cat", "stack", "histogram", "bincount", "cosine_similarity"}) - {
    "bfloat16", "bool", "contiguous", "cpu", "double", "float", "half", "int", "item", "long", "ndimension", "nelement",
    "permute", "size", "stride", "tolist", "view",
}  # fmt: skip
ATTRIBUTES = frozenset({"shape", "dtype", "device", "T", "mT", "real", "imag", "ndim", "itemsize", "nbytes"})
_DTYPES = (
    "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128 double float half long int"
)
DTYPES = frozenset(re.findall(r"\w+", _DTYPES))
_RESULT = 1 << 30
"""Elements of a result at most."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


class BadExpression(ValueError):
    """The expression is invalid or has no value; the message says which part."""


def names_in(text: str) -> set[str]:
    """The names that an expression uses, without ``torch``; empty if it is not an expression.  Needs no torch."""
    try:
        tree = ast.parse(text.strip(), mode="eval") if len(text) <= LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id != "torch"} if tree else set()


def evaluate(text: str, lookup: Callable[[str], Any]) -> Any:
    """The value of an expression: a tensor, a number, text, a list or a tuple.

    Args:
        lookup: From a name to its tensor; raises LookupError.

    Raises:
        BadExpression: It is not understood, or an operation refuses its arguments.
    """
    if len(text) > LONGEST:
        raise BadExpression(f"the expression is longer than {LONGEST} characters")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, lookup)
    except BadExpression:
        raise
    except SyntaxError as error:
        raise BadExpression(f"Invalid expression {text.strip()!r}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise BadExpression("the expression is nested too deeply, or its value is too large") from None
    except Exception as error:  # noqa: BLE001  whatever an operation says of its arguments
        raise BadExpression((str(error).splitlines() or [type(error).__name__])[0][:300]) from None


def _value(node: ast.expr, lookup: Callable[[str], Any]) -> Any:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (bool, int, float, str, type(None), type(...))):
            return node.value
    elif isinstance(node, ast.Name):
        return _named(node.id, lookup)
    elif isinstance(node, ast.Attribute):
        return _attribute(node, lookup)
    elif isinstance(node, ast.Call):
        return _bounded(_call(node, lookup))
    elif isinstance(node, ast.Subscript):
        return _value(node.value, lookup)[_index(node.slice, lookup)]
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _bounded(_binary(node, _value(node.left, lookup), _value(node.right, lookup)))
    elif isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, lookup))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        return _COMPARE[type(node.ops[0])](_value(node.left, lookup), _value(node.comparators[0], lookup))
    elif isinstance(node, (ast.List, ast.Tuple)):
        items = _values(node.elts, lookup)
        return items if isinstance(node, ast.List) else tuple(items)
    raise BadExpression(f"{ast.unparse(node)[:60]} is not supported here")


def _values(nodes: list[ast.expr], lookup: Callable[[str], Any]) -> list[Any]:
    return [_value(node, lookup) for node in nodes]


def _named(name: str, lookup: Callable[[str], Any]) -> Any:
    try:
        return lookup(name)
    except LookupError as error:
        raise BadExpression(str(error.args[0]) if error.args else f"unknown name: {name}") from None


def _binary(node: ast.BinOp, left: Any, right: Any) -> Any:
    if isinstance(left, (str, list, tuple)) or isinstance(right, (str, list, tuple)):
        raise BadExpression(f"{ast.unparse(node)[:60]}: arithmetic is for tensors and numbers")
    numbers = isinstance(left, int) and isinstance(right, int)
    if numbers and isinstance(node.op, ast.Pow) and abs(left) > 1 and abs(right) > 64:
        left = float(left)
    return _BINARY[type(node.op)](left, right)


def _attribute(node: ast.Attribute, lookup: Callable[[str], Any]) -> Any:
    torch: Any = sys.modules["torch"]
    if isinstance(node.value, ast.Name) and node.value.id == "torch":
        if node.attr in DTYPES:
            return getattr(torch, node.attr)
        if node.attr in ("inf", "nan", "pi", "e"):
            return getattr(torch, node.attr)
        raise BadExpression(f"torch.{node.attr} is not available here")
    value = _value(node.value, lookup)
    if node.attr in ATTRIBUTES and isinstance(value, torch.Tensor):
        return getattr(value, node.attr)
    if node.attr in ("values", "indices") and isinstance(value, tuple) and hasattr(value, node.attr):
        return getattr(value, node.attr)  # of what max(dim), sort, topk return
    raise BadExpression(f"{ast.unparse(node.value)[:40]} has no {node.attr!r} here")


def _call(node: ast.Call, lookup: Callable[[str], Any]) -> Any:
    torch: Any = sys.modules["torch"]
    args = _values(node.args, lookup)
    kwargs = {keyword.arg: _value(keyword.value, lookup) for keyword in node.keywords if keyword.arg}
    if len(kwargs) != len(node.keywords) or "out" in kwargs:
        raise BadExpression(f"{ast.unparse(node)[:60]} is not supported here")
    function = node.func
    if isinstance(function, ast.Attribute):
        if isinstance(function.value, ast.Name) and function.value.id == "torch":
            if function.attr not in FUNCTIONS:
                raise BadExpression(f"torch.{function.attr} cannot be called here")
            return getattr(torch, function.attr)(*args, **kwargs)
        value = _value(function.value, lookup)
        if function.attr not in METHODS or not isinstance(value, torch.Tensor):
            raise BadExpression(f"{function.attr!r} cannot be called here")
        return getattr(value, function.attr)(*args, **kwargs)
    if isinstance(function, ast.Name) and function.id in _PLAIN and not kwargs:
        return _PLAIN[function.id](*args)
    raise BadExpression(f"{ast.unparse(function)[:60]} cannot be called here")


_PLAIN: Mapping[str, Callable[..., Any]] = {"len": len, "abs": abs, "float": float, "int": int, "bool": bool}


def _index(node: ast.expr, lookup: Callable[[str], Any]) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_index(each, lookup) for each in node.elts)
    if isinstance(node, ast.Slice):
        return slice(*(None if part is None else _value(part, lookup) for part in (node.lower, node.upper, node.step)))
    return _value(node, lookup)


def _bounded(value: Any) -> Any:
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor) and value.numel() > _RESULT:
        raise BadExpression("the result is too large")
    return value
