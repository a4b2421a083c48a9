"""Definitions that a changed function of a library needs beside it: an operator of the graph, and what the operator runs."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence

from irscope.fixing.source import Source, bound_names
from irscope.fixing.syntax import Function

_OPERATOR = re.compile(r"\.ops\.(\w+)\.(\w+)\(")
Statement = ast.FunctionDef | ast.Expr


def needed_by(function: Function, source: Source) -> list[Statement]:
    """What makes the operators that a function calls, and the functions that these call, in the order of the module.

    An operator is found by its name, as ``torch.library.custom_op`` is used as a decorator; what it registers belongs to it.
    """
    others = [node for node in source.tree.body if isinstance(node, Statement) and node is not function]
    operators = {"::".join(names) for names in _OPERATOR.findall(source.code(function))}
    decorators = {node: source.all(ast.Constant, getattr(node, "decorator_list", [])) for node in others}
    needed = [node for node in others if operators & {text.value for text in decorators[node]}]
    for node in needed:  # it grows
        called, name = {part.id for part in source.all(ast.Name, node)}, getattr(node, "name", "")
        for other in [other for other in others if other not in needed]:
            # ``operator.register_…``, as a decorator or a call
            texts = map(ast.unparse, [other.value] if isinstance(other, ast.Expr) else other.decorator_list)
            registers = bool(name) and any(text.startswith(f"{name}.register_") for text in texts)
            needed += [other] if registers or getattr(other, "name", "") in called else []
    return sorted(needed, key=source.span)


def imports_for(statements: Sequence[Statement], source: Source) -> list[str] | None:
    """The imports of a module that some of its statements need; None if they read anything else of it."""
    imports = {
        alias.asname or alias.name: f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        for node in source.tree.body if isinstance(node, ast.Import) for alias in node.names
    }  # fmt: skip
    own = {name for statement in statements for name in bound_names(statement)}
    read = {name.id for name in source.all(ast.Name, statements)} - own - set(dir(builtins))
    return [imports[name] for name in sorted(read)] if read <= imports.keys() else None


def text_of(statements: Sequence[Statement], source: Source) -> str:
    """The code of statements with the comments above them, two empty lines after each."""
    return "".join(f"{source.code_with_comments(statement)}\n\n\n" for statement in statements)
