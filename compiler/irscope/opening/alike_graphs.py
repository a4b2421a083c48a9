"""Whether printed graphs are the same but for the names in them: the layers of a model are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_NAME = re.compile(r"[A-Za-z_][\w.]*")
_DTYPE = re.compile(r"(?:f|bf|i|u|b|c)\d+$")
_GIVEN = re.compile(r'(?m)^\s*(\w+)(?:: "[^"\n]*")? = |(\w+): "')
_CALL = re.compile(r"= ([A-Za-z_][\w.]*)\(")


def alike(graph: str) -> str:
    """A digest of a graph in which names are numbered by their order, so that layers that do the same have one;
    operations, types, sizes and constants count.  Empty for an empty text."""
    if not graph:
        return ""
    text = "\n".join(_statements(graph))
    given = {name for found in _GIVEN.findall(text) for name in found if name}
    names: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        name, dot, rest = found[0].partition(".")  # a method of a value: linear_3.chunk
        if name not in given and (dot or _DTYPE.match(name) or not any(char.isdigit() for char in name)):
            return found[0]
        return names.setdefault(name, f"v{len(names)}") + dot + rest

    return _digest(_NAME.sub(named, text))


def operations(graph: str) -> str:
    """A digest of the operations of a graph in their order, whatever their sizes; empty for an empty text."""
    return _digest(" ".join(_CALL.findall("\n".join(_statements(graph))))) if graph else ""


def _statements(graph: str) -> Iterable[str]:
    lines = (line.split("#", 1)[0].rstrip() for line in graph.splitlines())
    return (line for line in lines if line)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
