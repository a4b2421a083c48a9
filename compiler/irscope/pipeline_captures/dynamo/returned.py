"""What a backend returned: in words, as a graph, as a text."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

_LONGEST = 4_000_000
"""Characters of a text."""
_TEXTS = ("graph", "code")
"""Attributes that have the text of a compiled program, as TorchScript and FX name them."""


def described(returned: Any) -> str:
    """What it is, with its place if it is a function."""
    code, home = getattr(returned, "__code__", None), getattr(returned, "__self__", None)
    if home is not None and not inspect.ismodule(home):
        # torch.fx writes the code of a graph at its first call.
        name = "forward" if returned.__name__ == "_lazy_forward" else returned.__name__
        return f"the method {name} of {_type_of(home)}"
    if code is not None:
        return f"the function {code.co_qualname if sys.version_info >= (3, 11) else code.co_name} ({_place(code)})"
    return f"an object of {_type_of(returned)}"


def backend_described(backend: Any) -> str:
    """The function of a backend, with its place; of an object its ``__call__``."""
    if isinstance(backend, functools.partial):
        return f"a functools.partial of {backend_described(backend.func)}"
    code = getattr(backend, "__code__", None)
    if code is None:
        called = getattr(type(backend).__call__, "__code__", None)
        return _type_of(backend) if called is None else f"an object of {_type_of(backend)} ({_place(called)})"
    return f"{backend.__module__}.{backend.__qualname__} ({_place(code)})"


def graph_in(returned: Any) -> Any:
    """The graph module that it is, or that it holds directly; None if there is none."""
    module: Any = sys.modules["torch.fx"].GraphModule
    return next((one for one in _near(returned) if isinstance(one, module)), None)


def text_in(returned: Any) -> str:
    """The text of a graph or of code that it has, or that what it holds directly has; empty if there is none."""
    for one in _near(returned):
        for name in _TEXTS:
            try:
                found = getattr(one, name, None)
                text = found if isinstance(found, str) else _printed(found)
            except Exception:  # noqa: BLE001  an object of the backend's own may raise anything
                continue
            if text.strip():
                return f"{text[:_LONGEST].rstrip()}\n"
    return ""


def _printed(found: Any) -> str:
    """The text of a graph object; empty for what has only the text that every Python object has."""
    if found is None or callable(found):
        return ""
    own = {"__str__", "__repr__"} & {name for cls in type(found).__mro__[:-1] for name in vars(cls)}
    if not own:
        return ""
    return str(found)


def _near(returned: Any) -> list[Any]:
    """It, the object whose method it is, and what a closure or a partial of it holds."""
    found = [returned, getattr(returned, "__self__", None)]
    if isinstance(returned, functools.partial):
        found += [returned.func, getattr(returned.func, "__self__", None), *returned.args]
    for cell in getattr(returned, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not set yet
            continue
        found += [value, getattr(value, "__self__", None)]
    return [one for one in found if one is not None and not inspect.ismodule(one) and not isinstance(one, type)]


def _type_of(value: Any) -> str:
    """Its class; of one that was made in a function, as that of each graph module is, the public one above it."""
    public = (one for one in type(value).__mro__ if "<locals>" not in one.__qualname__ and one.__name__[0] != "_")
    cls = next(public, type(value))
    return f"{cls.__module__}.{cls.__qualname__}"


def _place(code: Any) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"
