"""The lines of a printed graph, without a look at what its operations take.

Where the store knows the nodes of a graph, their inputs and targets (`irscope.ir.nodes`), the text adds only where each of
them is, how its value is printed and which line of the user's it came from.  That is read several times as fast as
the whole text is parsed, and a graph of 50,000 nodes is there while one still looks for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from irscope.ir.graph_statements import ORIGIN_HEAD, tells_no_origin

_HEAD = "    def forward("
_ARGUMENT = re.compile(r'(?P<name>\w+)(?:: "(?P<detail>[^"]*)")?\s*[,)]')
_STATEMENT = re.compile(r'        ([A-Za-z_]\w*)(?:: "([^"\\]*)")?(?: = |$|;|(?=  #))')
_RETURN = "        return"
_ORIGIN = re.compile(ORIGIN_HEAD + ".+?, code: ")


@dataclass(frozen=True)
class PrintedNodes:
    """Columns of what a text tells, in the order of the graph.

    Parameters
    ----------
    names
        As printed: an input of Dynamo's graph by what the signature calls it.
    details
        Dtype, shape, strides and device.
    lines
        0-based.
    origins
        Numbers of `places`, -1 for none.
    places
        Files of the user's, with 1-based lines.
    """

    names: list[str]
    details: list[str]
    lines: list[int]
    origins: list[int]
    places: list[tuple[str, int]]


def printed_nodes(text: str, data: Any) -> PrintedNodes | None:
    """Where the nodes of a graph's data are in its text.

    Returns None if text and data are not of the same nodes in the same order: then the text is to be parsed.
    """
    rows = text.split("\n")
    begin = next((number for number, row in enumerate(rows) if row.startswith(_HEAD)), None)
    if begin is None or any(row.startswith(_HEAD) for row in rows[begin + 1 :]):
        return None
    nodes = data["nodes"]
    wanted = {name: at for at, name in enumerate(nodes["name"])}
    inputs = {name: at for name, at in wanted.items() if nodes["op"][at] == "placeholder"}
    inputs.update({data["targets"][nodes["target"][at]]: at for at in inputs.values()})
    count = len(wanted)
    names, details, lines, origins = [""] * count, [""] * count, [-1] * count, [-1] * count
    places: dict[tuple[str, int], int] = {}
    number = begin
    while number < len(rows):
        part = rows[number].partition("(")[2] if number == begin else rows[number]
        for match in _ARGUMENT.finditer(part):
            name = match["name"]
            at = inputs.get(name)
            if at is not None:
                names[at], details[at], lines[at] = name, match["detail"] or "", number
        if rows[number].rstrip().endswith("):"):
            break
        number += 1
    origin = -1
    statement, comment = _STATEMENT.match, _ORIGIN.match
    for at_row in range(number + 1, len(rows)):
        row = rows[at_row]
        if row.startswith(_RETURN):
            at = wanted.get("output")
            if at is not None:
                names[at], lines[at] = "output", at_row
            break
        found = statement(row)
        if found is not None:
            name, detail = found.groups()
            at = wanted.get(name)
            if at is not None and lines[at] < 0:
                names[at], details[at], lines[at], origins[at] = name, detail or "", at_row, origin
        elif (above := comment(row)) is not None:
            origin = places.setdefault((above[1], int(above[2])), len(places))
        elif tells_no_origin(row):
            origin = -1
    if lines != sorted(lines) or -1 in lines:
        return None
    for at in inputs.values():
        origins[at] = -1
    return PrintedNodes(names, details, lines, origins, list(places))
