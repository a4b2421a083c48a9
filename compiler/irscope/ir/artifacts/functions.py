"""The functions in the source text of an artifact."""

from __future__ import annotations

import ast

from irscope.ir.artifacts.contents import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef


def function_of(tree: ast.Module, source: Source) -> Function | None:
    """The function at a source's lines of its module; None if none is there."""
    inside = [
        node
        for node in ast.walk(tree)
        if isinstance(node, Function)
        and _first(node) >= source.first
        and node.lineno < max(source.end, source.first + 1)
    ]
    return min(inside, key=_first, default=None)


def _first(node: Function) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])
