"""Reads texts as trees of LibCST.  Any text may come: its parser, which is not Python's, has no limits of its own."""

from __future__ import annotations

import ast
import warnings
from collections import deque

import libcst as cst

MOST_CHARACTERS = 300_000
"""Of a text that is read as a tree, which takes some six seconds for usual code of this length."""
_MOST_NODES = 60_000
"""And lines: usual code of that length has some 40,000, but a table of numbers more."""
_DEEPEST = 100
"""How deep a text may be nested.  LibCST's parser ends the process where its stack is full: after some 200 brackets on the
smallest stack of a thread (1 MB).  A long sum is a deep tree, too, and takes time that grows with the square of its length."""


def parse_module(text: str) -> cst.Module:
    """The tree of a text.  Raises ValueError for one that is not Python, too long or nested too deeply."""
    _check(text)
    try:
        return cst.parse_module(text)
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise ValueError(f"the text is not valid Python: {type(error).__name__}") from None


def parse_expression(text: str) -> cst.BaseExpression:
    """The tree of an expression.  Raises ValueError as `parse_module`."""
    _check(f"({text}\n)")
    try:
        return cst.parse_expression(text)
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise ValueError(f"the text is not an expression: {type(error).__name__}") from None


def _check(text: str) -> None:
    """Python's own parser has limits; what it reads is measured before LibCST reads it."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError("the text is too long")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's text are not for our stderr
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the text is not valid Python: {type(error).__name__}") from None
    todo = deque[tuple[ast.AST, int]]([(tree, 1)])
    left = _MOST_NODES - text.count("\n")
    while todo:
        node, depth = todo.pop()
        left -= 1
        if left < 0:
            raise ValueError("the text is too long")
        if depth > _DEEPEST:
            raise ValueError("the text is nested too deeply")
        # `a and b and c` is one node in Python's tree, and nested in LibCST's.
        below = depth + (len(node.values) if isinstance(node, ast.BoolOp) else 1)
        todo.extend((child, below) for child in ast.iter_child_nodes(node))
