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

    def put(self, node: int, name: str, detail: str, line: int, origin: int = -1) -> None:
        """Adds what the text says of a node."""
        self.names[node], self.details[node], self.lines[node], self.origins[node] = name, detail, line, origin


def printed_nodes(text: str, data: Any) -> PrintedNodes | None:
    """Where the nodes of a graph's data are in its text.

    Returns None if text and data are not of the same nodes in the same order: then the text is to be parsed.
    """
    rows = text.split("\n")
    begin = next((number for number, row in enumerate(rows) if row.startswith(_HEAD)), None)
    if begin is None or any(row.startswith(_HEAD) for row in rows[begin + 1 :]):
        return None
    nodes = data["nodes"]
    wanted = {name: number for number, name in enumerate(nodes["name"])}
    inputs = {name: number for name, number in wanted.items() if nodes["op"][number] == "placeholder"}
    inputs.update({data["targets"][nodes["target"][number]]: number for number in inputs.values()})
    count = len(wanted)
    printed = PrintedNodes([""] * count, [""] * count, [-1] * count, [-1] * count, [])
    head_end = _read_signature(rows, begin, inputs, printed)
    _read_statements(rows, head_end + 1, wanted, printed)
    if printed.lines != sorted(printed.lines) or -1 in printed.lines:
        return None
    for number in inputs.values():
        printed.origins[number] = -1
    return printed


def _read_signature(rows: list[str], begin: int, inputs: dict[str, int], printed: PrintedNodes) -> int:
    """Reads the inputs; returns the row that the signature ends in."""
    for number in range(begin, len(rows)):
        part = rows[number].partition("(")[2] if number == begin else rows[number]
        for match in _ARGUMENT.finditer(part):
            node = inputs.get(match["name"])
            if node is not None:
                printed.put(node, match["name"], match["detail"] or "", number)
        if rows[number].rstrip().endswith("):"):
            return number
    return len(rows)


def _read_statements(rows: list[str], begin: int, wanted: dict[str, int], printed: PrintedNodes) -> None:
    origin = -1
    places: dict[tuple[str, int], int] = {}
    for number in range(begin, len(rows)):
        row = rows[number]
        if row.startswith(_RETURN):
            if (output := wanted.get("output")) is not None:
                printed.put(output, "output", "", number)
            break
        if (statement := _STATEMENT.match(row)) is not None:
            name, detail = statement.groups()
            node = wanted.get(name)
            if node is not None and printed.lines[node] < 0:
                printed.put(node, name, detail or "", number, origin)
        elif (comment := _ORIGIN.match(row)) is not None:
            origin = places.setdefault((comment[1], int(comment[2])), len(places))
        elif tells_no_origin(row):
            origin = -1
    printed.places.extend(places)
