"""The statements of a Python text by line: where a value that is made on a line belongs."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope_server.base.texts import from_bytes, split_lines
from irscope_server.base.trees import statements_of, tree_of


@dataclass(frozen=True)
class Statement:
    """A simple statement, or the head of a compound one; lines are 0-based, columns indices into the line."""

    line: int
    end_line: int
    end_column: int
    values: int
    """How many values it makes: 2 of ``return a, b`` and of ``a, b = f(x)``; 1 for most; 0 if it makes none."""


def statement_of_line(text: str) -> dict[int, Statement]:
    """The innermost statement that each line (0-based) belongs to; of several on one line the last."""
    return _statements(text)


@functools.lru_cache(maxsize=32)
def _statements(text: str) -> dict[int, Statement]:
    tree = tree_of(text)
    if tree is None:
        return {}
    lines = split_lines(text)
    found: dict[int, Statement] = {}
    for node in statements_of(tree):
        if (statement := _statement(node, lines)) is not None:
            for line in range(statement.line, statement.end_line + 1):
                found[line] = statement
    return found


def _statement(node: ast.stmt, lines: Sequence[str]) -> Statement | None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return None
    last: ast.AST = node
    if getattr(node, "body", None):  # the head alone
        last = max(_head(node), key=lambda part: (part.end_lineno or 0, part.end_col_offset or 0), default=node)
        if last is node:
            return None
    end = (getattr(last, "end_lineno", None) or node.lineno) - 1
    column = from_bytes(lines[end] if end < len(lines) else "", getattr(last, "end_col_offset", None) or 0)
    return Statement(node.lineno - 1, end, column, _values(node))


def _head(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a compound statement other than its body."""
    for name in ("test", "iter", "subject"):
        if isinstance(part := getattr(node, name, None), ast.expr):
            yield part
    for item in getattr(node, "items", ()):
        yield item.optional_vars or item.context_expr


def _values(node: ast.stmt) -> int:
    if isinstance(node, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)):
        return 0
    value = getattr(node, "value", None)
    if isinstance(node, ast.Assign) and any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
        target = next(target for target in node.targets if isinstance(target, (ast.Tuple, ast.List)))
        starred = any(isinstance(each, ast.Starred) for each in target.elts)
        return 0 if starred else len(target.elts)
    if isinstance(value, (ast.Tuple, ast.List)):
        return len(value.elts)
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.If, ast.While)):
        return 1
    return 0
