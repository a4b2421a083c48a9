"""Definitions that a changed function of a library needs beside it: an operator of the graph, and what the operator runs."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence

_OPERATOR = re.compile(r"\.ops\.(\w+)\.(\w+)\(")


def needed_by(function: ast.FunctionDef | ast.AsyncFunctionDef, module: ast.Module) -> list[ast.FunctionDef]:
    """The functions of a module that make the operators which a function calls, and those that these call, in their order.

    An operator is found by its name, as ``torch.library.custom_op`` and ``register_fake`` are used as decorators.
    """
    known = [one for one in module.body if isinstance(one, ast.FunctionDef)]
    names = {"::".join(one) for one in _OPERATOR.findall(ast.unparse(function))}
    found = [one for one in known if any(_strings(each) & names for each in one.decorator_list)]
    for one in found:  # it grows
        called = {each.id for each in ast.walk(one) if isinstance(each, ast.Name)}
        told = {f"{one.name}.register_fake"}
        more = [each for each in known if each.name in called or told & set(map(ast.unparse, each.decorator_list))]
        found += [each for each in more if each not in found and each is not function]
    return sorted(found, key=lambda one: one.lineno)


def _strings(node: ast.expr) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def imports_for(functions: Sequence[ast.FunctionDef], module: ast.Module) -> list[str] | None:
    """The imports of a module that some of its functions need; None if they read anything else of it."""
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


def text_of(functions: Sequence[ast.FunctionDef], text: str) -> str:
    """The lines of functions with their decorators, two empty lines after each."""
    lines = text.split("\n")
    parts = []
    for one in functions:
        first = min((each.lineno for each in one.decorator_list), default=one.lineno)
        parts.append("\n".join(lines[first - 1 : one.end_lineno]))
    return "".join(f"{part}\n\n\n" for part in parts)
