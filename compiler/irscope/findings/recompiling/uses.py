"""What a function does with a value that a guard watches, and where the user's code makes it grow."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.usercode.source import parents

_SAME_ITEMS = ("enumerate", "zip", "reversed", "sorted", "list", "tuple", "iter")
"""Builtins that give the items of what they get."""
_GROWING_CALLS = ("append", "appendleft", "extend", "insert", "add", "update", "setdefault")


def uses(file: str, function: ast.AST | None, source: str) -> set[str]:
    """What a function uses a name or an attribute chain for: ``decision``, ``arithmetic``, ``range``, ``loop``,
    ``other``."""
    above = parents(file)
    return (
        {_use(node, above) for node in ast.walk(function) if _is_read(node, source)} if function is not None else set()
    )


def growth(file: str, function: ast.AST | None, source: str) -> int | None:
    """The line on which the user's code makes a thing grow, in the function or else in its class or file: an ``append``
    to it or an ``+=``; None if there is none."""
    thing = source[4:-1] if source.startswith("len(") else source
    above = parents(file)
    scope = function
    while scope is not None:
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            if (line := next(_growing(scope, thing, source != thing), None)) is not None:
                return line
        scope = above.get(scope)
    return None


def _growing(scope: ast.AST, thing: str, is_length: bool) -> Iterator[int]:
    for node in ast.walk(scope):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and ast.unparse(node.target) == thing:
            yield node.lineno
        elif is_length and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _GROWING_CALLS and ast.unparse(node.func.value) == thing:
                yield node.lineno
        elif is_length and isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            if ast.unparse(node.value) == thing:
                yield node.lineno


def _is_read(node: ast.AST, source: str) -> bool:
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
        return False
    return ast.unparse(node) == source


def _use(node: ast.AST, above: dict[ast.AST, ast.AST]) -> str:
    child, parent = node, above.get(node)
    while parent is not None and not isinstance(parent, ast.stmt):
        if use := _use_in(parent, child, above):
            return use
        child, parent = parent, above.get(parent)
    if isinstance(parent, (ast.For, ast.AsyncFor)) and parent.iter is child:
        return "loop"
    return "decision" if parent is not None and _is_test(parent, child) else "other"


def _use_in(parent: ast.AST, child: ast.AST, above: dict[ast.AST, ast.AST]) -> str:
    """What an expression uses a part of it for; empty if its own use decides."""
    if isinstance(parent, ast.BinOp):
        if _is_in_range(parent, above):
            return "range"
        return "decision" if _decides(parent, above) else "arithmetic"
    if isinstance(parent, ast.comprehension) and parent.iter is child:
        return "loop"
    if isinstance(parent, ast.Call):
        name = parent.func.id if isinstance(parent.func, ast.Name) else ""
        return "" if name in _SAME_ITEMS else "range" if name == "range" else "other"
    return "decision" if _is_test(parent, child) else ""


def _is_in_range(node: ast.AST | None, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether an arithmetic expression is an argument of ``range``."""
    while isinstance(node, ast.BinOp):
        node = above.get(node)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _decides(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether a value becomes the condition of a branch."""
    child, parent = node, above.get(node)
    while parent is not None:
        if _is_test(parent, child):
            return True
        if isinstance(parent, (ast.stmt, ast.Call)):
            return False
        child, parent = parent, above.get(parent)
    return False


def _is_test(parent: ast.AST, child: ast.AST) -> bool:
    tests = isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)) and parent.test is child
    return tests or (isinstance(parent, ast.Match) and parent.subject is child)
