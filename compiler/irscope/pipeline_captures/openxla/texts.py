"""The texts above HLO, a jaxpr and StableHLO, with the nodes that their lines came from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping

Lines = list[tuple[int, str]]
"""1-based line of a text, and the name in the stage above that it came from."""

_COMMENT = re.compile(r"\s+# \[(?P<scope>[^\]]*)\]\s*$")
_EQUATION = re.compile(r"^\s*[\w:\[\],{} =><.()-]* = (?P<primitive>[\w-]+)")
_LOCATION = re.compile(r" loc\((?:#loc\d*|\"(?:[^\"\\]|\\.)*\"|unknown)\)")
_USED = re.compile(r"loc\((?P<name>#loc\d*)\)\s*(?:\{|$)")
_DEFINED = re.compile(r'^(?P<name>#loc\d*) = loc\("(?P<scope>(?:[^"\\]|\\.)*)"')
_FUNCTION = re.compile(r"func\.func (?:public |private )?@(?P<name>[\w.$-]+)")
_CALL = re.compile(r"\bcall @(?P<name>[\w.$-]+)")


def jaxpr_lines(text: str, node_of: Callable[[str], str]) -> tuple[str, Lines]:
    """A jaxpr without the comments that tell the scope of each equation, and of each line the node it came from."""
    rows: list[str] = []
    lines: Lines = []
    node = ""
    for row in text.rstrip("\n").split("\n"):
        told = _COMMENT.search(row)
        if told:
            node = node_of(told["scope"]) or node  # inside an equation the scopes of its own are empty
        row = _COMMENT.sub("", row).rstrip()
        if row.lstrip().startswith(("{ lambda", "in (")) and not row.startswith("    "):
            rows.append(row)
            continue
        rows.append(row)
        if node:
            lines.append((len(rows), node))
    return "\n".join(rows) + "\n", lines


def stablehlo_lines(text: str, above: Lines, node_of: Callable[[str], str]) -> tuple[str, Lines, dict[str, list[str]]]:
    """StableHLO without locations, the lines of the jaxpr that each line came from, and the lines of each ``op_name``.

    What a separate function computes came from all calls of it.

    Args:
        above: The lines of the jaxpr with their nodes.
    """
    defined = {match["name"]: match["scope"] for row in text.split("\n") if (match := _DEFINED.match(row))}
    jaxpr = defaultdict(list)
    for number, node in above:
        jaxpr[node].append(str(number))
    rows, scopes, functions, callers = _rows(text, defined)
    lines: Lines = []
    of_scope: dict[str, list[str]] = defaultdict(list)
    for number, scope in scopes.items():
        nodes = [node] if (node := node_of(scope)) else _callers(functions[number], callers, functions, scopes, node_of)
        lines += [(number, one) for node in nodes for one in jaxpr.get(node, ())]
        of_scope[scope].append(str(number))
    return "\n".join(rows) + "\n", lines, dict(of_scope)


def _rows(
    text: str, defined: Mapping[str, str]
) -> tuple[list[str], dict[int, str], dict[int, str], dict[str, list[int]]]:
    """The text without locations; the scope and the function of each line; the lines that call each function."""
    rows: list[str] = []
    scopes: dict[int, str] = {}
    functions: dict[int, str] = {}
    callers: dict[str, list[int]] = defaultdict(list)
    function = ""
    for row in text.rstrip("\n").split("\n"):
        if row.startswith("#loc"):
            continue
        used = _USED.search(row)
        rows.append(_LOCATION.sub("", row))
        number = len(rows)
        if begins := _FUNCTION.search(row):
            function = begins["name"]
        elif used and used["name"] in defined:
            scopes[number], functions[number] = defined[used["name"]], function
        if called := _CALL.search(row):
            callers[called["name"]].append(number)
    return rows, scopes, functions, callers


def _callers(
    function: str,
    callers: Mapping[str, list[int]],
    functions: Mapping[int, str],
    scopes: Mapping[int, str],
    node_of: Callable[[str], str],
) -> list[str]:
    """The nodes whose calls lead to a function."""
    found: dict[str, None] = {}
    todo, seen = [function], {function}
    while todo:
        for number in callers.get(todo.pop(), ()):
            if node := node_of(scopes.get(number, "")):
                found[node] = None
            elif (outer := functions.get(number, "")) and outer not in seen:
                seen.add(outer)
                todo.append(outer)
    return list(found)
