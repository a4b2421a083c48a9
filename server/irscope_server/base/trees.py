"""The syntax trees of Python texts."""

from __future__ import annotations

import ast
import functools
import warnings
from collections import deque
from collections.abc import Iterator

_MOST_CHARACTERS = 2_000_000
"""The most characters of a text that has a tree: it is made in the event loop, in some two seconds for so many."""


@functools.lru_cache(maxsize=4)  # several features ask for the same text after each change; a tree is large
def tree_of(text: str) -> ast.Module | None:
    """The tree of a text, which nobody may change; None if it has none, or is too long."""
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's text are not for our stderr
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def statements_of(tree: ast.AST) -> Iterator[ast.stmt]:
    """All statements, an outer one before those inside it.  Expressions, which have none, are not looked at."""
    todo: deque[ast.AST] = deque([tree])
    while todo:
        node = todo.popleft()
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(inner := getattr(node, name, None), list):
                todo += inner
