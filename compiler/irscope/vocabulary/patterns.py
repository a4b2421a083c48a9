"""Regular expressions that are compiled when they are first used.

Python takes a tenth of a millisecond for each, and a run's process and the command line import some hundred of them
before the script begins.  Most belong to what few runs have: a notebook, a Triton kernel, a graph break.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as pattern
else:

    def pattern(text, flags=0):
        """A stand-in for ``re.compile(text, flags)``: its methods and attributes, for what calls them on the object."""
        return _Pattern(text, flags)


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._given), name)  # `re` keeps what it has compiled
        setattr(self, name, found)  # the next use finds it at once
        return found


__all__ = ["pattern"]
