"""The texts of PyTorch/XLA: lazy IR and StableHLO, with the operations that their lines came from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping

Lines = list[tuple[int, str]]
"""1-based line of a text, and the name in the stage above that it came from."""

_SCOPE = re.compile(r", scope=(?P<scope>[^,]*)")
_LOCATION = re.compile(r", location=[^,]*")
_SCOPE_NUMBER = re.compile(r"(?<=~)(?P<place>[^/]*)\.\d+$")
_USED = re.compile(r' "(?P<scope>(?:[^"\\]|\\.)*)"\(#loc\d*\)|(?: loc\(#?\w*\))|(?: \[unknown\])')


def lazy_lines(text: str, node_of: Callable[[str], str]) -> tuple[str, Lines]:
    """Lazy IR without the places in PyTorch's own files, and the operation of each line.

    Args:
        node_of: The operation that a scope names.
    """
    rows, lines = [], []
    for number, row in enumerate(text.rstrip("\n").split("\n"), 1):
        told = _SCOPE.search(row)
        if told and (node := node_of(told["scope"])):
            lines.append((number, node))
        row = _LOCATION.sub("", row)
        rows.append(_SCOPE.sub(lambda match: f", scope={_plain(match['scope'])}", row))
    return "\n".join(rows) + "\n", lines


def stablehlo_lines(text: str, above: Lines, node_of: Callable[[str], str]) -> tuple[str, Lines, dict[str, list[str]]]:
    """StableHLO without locations, the lines of the lazy IR that each came from, and the lines of each scope.

    Args:
        above: The lines of the lazy IR with their operations.
    """
    lazy: Mapping[str, list[str]] = defaultdict(list)
    for number, node in above:
        lazy[node].append(str(number))
    rows: list[str] = []
    lines: Lines = []
    of_scope: dict[str, list[str]] = defaultdict(list)
    for row in text.rstrip("\n").split("\n"):
        if row.startswith(("#loc", " at #loc")):
            continue
        told = [match["scope"] for match in _USED.finditer(row) if match["scope"]]
        rows.append(_USED.sub("", row))
        number = len(rows)
        if told and "func.func" not in row and (node := node_of(told[-1])):
            lines += [(number, one) for one in lazy.get(node, ())]
            of_scope[told[-1]].append(str(number))
    return "\n".join(rows) + "\n", lines, dict(of_scope)


def _plain(scope: str) -> str:
    """A scope without the numbers that PyTorch/XLA gives to scopes: ``relu~model.py:7``."""
    return "/".join(_SCOPE_NUMBER.sub(lambda match: match["place"], part) for part in scope.split("/"))
