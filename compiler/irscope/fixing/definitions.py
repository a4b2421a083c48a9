"""Definitions that a changed function of a library needs beside it: an operator of the graph, and what the operator runs."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence

_OPERATOR = re.compile(r"\.ops\.(\w+)\.(\w+)\(")


Statement = ast.FunctionDef | ast.Expr


def needed_by(function: ast.FunctionDef | ast.AsyncFunctionDef, module: ast.Module) -> list[Statement]:
    """What makes the operators that a function calls, and the functions that these call, in the order of the module.

    An operator is found by its name, as ``torch.library.custom_op`` is used as a decorator; what it registers belongs to it.
    """
    known = [one for one in module.body if isinstance(one, (ast.FunctionDef, ast.Expr)) and one is not function]
    names = {"::".join(one) for one in _OPERATOR.findall(ast.unparse(function))}
    found = [one for one in known if any(_strings(each) & names for each in _decorators(one))]
    for one in found:  # it grows
        called = {each.id for each in ast.walk(one) if isinstance(each, ast.Name)}
        found += [
            each for each in known if each not in found and (_name(each) in called or _registers(each, _name(one)))
        ]
    return sorted(found, key=lambda one: one.lineno)


def _name(node: Statement) -> str:
    return node.name if isinstance(node, ast.FunctionDef) else ""


def _decorators(node: Statement) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, ast.FunctionDef) else []


def _registers(node: Statement, operator: str) -> bool:
    """Whether it is ``operator.register_…``, as a decorator or a call."""
    texts = map(ast.unparse, [node.value] if isinstance(node, ast.Expr) else node.decorator_list)
    return bool(operator) and any(text.startswith(f"{operator}.register_") for text in texts)


def _strings(node: ast.expr) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def imports_for(functions: Sequence[Statement], module: ast.Module) -> list[str] | None:
    """The imports of a module that some of its statements need; None if they read anything else of it."""
    made = {
        alias.asname or alias.name: f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        for one in module.body if isinstance(one, ast.Import) for alias in one.names
    }  # fmt: skip
    nodes = [one for function in functions for one in ast.walk(function)]
    own = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    own |= {one.arg for one in nodes if isinstance(one, ast.arg)}
    own |= {one.name for one in nodes if isinstance(one, ast.FunctionDef)}
    read = {one.id for one in nodes if isinstance(one, ast.Name)} - own - set(dir(builtins))
    return [made[name] for name in sorted(read)] if read <= made.keys() else None


def text_of(functions: Sequence[Statement], text: str) -> str:
    """The lines of statements with their decorators and the comments above them, two empty lines after each."""
    lines = text.split("\n")
    parts = []
    for one in functions:
        first = min((each.lineno for each in _decorators(one)), default=one.lineno)
        while lines[first - 2].startswith("#") and first > 1:
            first -= 1
        parts.append("\n".join(lines[first - 1 : one.end_lineno]))
    return "".join(f"{part}\n\n\n" for part in parts)
