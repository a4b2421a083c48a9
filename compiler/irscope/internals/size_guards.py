"""The guards on sizes that a compile adds: what is checked at each call because of how the code was written."""

from __future__ import annotations

import re
import sys
from typing import Any


def guards_on_sizes() -> list[str]:
    """The guards of the program that is being compiled, in the order in which they came, as PyTorch prints guards; none if its
    sizes are numbers.

    Raises AttributeError if torch is not as expected; checked on 2.13.
    """
    context: Any = sys.modules["torch._guards"].TracingContext.try_get()
    sizes = getattr(context and context.fake_mode, "shape_env", None)
    if sizes is None:
        return []
    names = {str(symbol): _name(sources[0]) for symbol, sources in sizes.var_to_sources.items() if sources}
    symbols = re.compile(r"\b[a-z]+\d+\b")
    return [
        f"+- LAMBDA_GUARD: {symbols.sub(lambda found: names.get(found[0], found[0]), str(guard.expr))}  # {_place(guard.sloc)}"
        for guard in sizes.guards
    ]


def _place(location: Any) -> str:
    """The line of PyTorch's that added a guard; a user's line that is told with it is where the size is used first."""
    return str(type(location)(location.framework_loc, None)).strip("()")


def _name(source: Any) -> str:
    return str(source.name() if callable(source.name) else source.name)
