"""Errors that a change of a script makes others: a check inside of the graph fails with a RuntimeError."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator

from irscope.usercode.bindings import last_word

_CHECKED = "RuntimeError"
"""What `torch._check` and the assertions of a graph raise."""


def caught_otherwise(old: str, new: str) -> str:
    """Why an error that the new text does not raise any more takes another way: the old text catches it by its type, or
    catches what is raised in its place.  Empty if no error does."""
    try:
        before, after = ast.parse(old), ast.parse(new)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    lost = Counter(_raised(before)) - Counter(_raised(after))
    for handler in ast.walk(before):
        caught = handler.type if isinstance(handler, ast.ExceptHandler) else None
        for kind in caught.elts if isinstance(caught, ast.Tuple) else filter(None, [caught]):
            name = last_word(kind)
            for error in lost:
                if _catches(name, error) != _catches(name, _CHECKED):
                    return f"{error} may become {_CHECKED}, and line {kind.lineno} catches {name}."
    return ""


def _raised(tree: ast.AST) -> Iterator[str]:
    """The names of the errors that statements raise."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Assert):
            yield "AssertionError"
        elif isinstance(one, ast.Raise) and one.exc is not None:
            yield last_word(one.exc.func if isinstance(one.exc, ast.Call) else one.exc)


def _catches(name: str, error: str) -> bool:
    """Whether ``except name`` catches an error; what a class of the user's is derived from is not known."""
    kind, raised = (getattr(builtins, each, None) for each in (name, error))
    if isinstance(kind, type) and isinstance(raised, type):
        return issubclass(raised, kind)
    return name == error or (isinstance(kind, type) and not isinstance(raised, type))
