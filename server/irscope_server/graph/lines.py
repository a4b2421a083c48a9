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

    Args:
        names: As printed: an input of Dynamo's graph by what the signature calls it.
        details: Dtype, shape, strides and device.
        lines: 0-based.
        origins: Numbers of `places`, -1 for none.
        places: Files of the user's, with 1-based lines.
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
    heads = [line for line, row in enumerate(rows) if row.startswith(_HEAD)]
    if len(heads) != 1:
        return None
    nodes = data["nodes"]
    numbers = {name: number for number, name in enumerate(nodes["name"])}
    inputs = {name: number for name, number in numbers.items() if nodes["op"][number] == "placeholder"}
    inputs.update({data["targets"][nodes["target"][number]]: number for number in inputs.values()})
    count = len(numbers)
    printed = PrintedNodes([""] * count, [""] * count, [-1] * count, [-1] * count, [])
    end = _read_signature(rows, heads[0], inputs, printed)
    _read_body(rows, end + 1, numbers, printed)
    if printed.lines != sorted(printed.lines) or -1 in printed.lines:
        return None
    for number in inputs.values():
        printed.origins[number] = -1
    return printed


def _read_signature(rows: list[str], head: int, inputs: dict[str, int], printed: PrintedNodes) -> int:
    """Takes in what the head of ``forward`` says about the inputs; returns its last line."""
    for line in range(head, len(rows)):
        for match in _ARGUMENT.finditer(rows[line].partition("(")[2] if line == head else rows[line]):
            number = inputs.get(match["name"])
            if number is not None:
                printed.names[number], printed.lines[number] = match["name"], line
                printed.details[number] = match["detail"] or ""
        if rows[line].rstrip().endswith("):"):
            return line
    return len(rows)


def _read_body(rows: list[str], first: int, numbers: dict[str, int], printed: PrintedNodes) -> None:
    """Takes in the statements of ``forward``, and the comments that say from which lines they are."""
    names, details, lines, origins = printed.names, printed.details, printed.lines, printed.origins
    places: dict[tuple[str, int], int] = {}
    origin = -1
    for line in range(first, len(rows)):
        row = rows[line]
        if row.startswith(_RETURN):
            number = numbers.get("output")
            if number is not None:
                names[number], lines[number] = "output", line
            break
        if (statement := _STATEMENT.match(row)) is not None:
            name, detail = statement.groups()
            number = numbers.get(name)
            if number is not None and lines[number] < 0:
                names[number], details[number], lines[number], origins[number] = name, detail or "", line, origin
        elif (comment := _ORIGIN.match(row)) is not None:
            origin = places.setdefault((comment[1], int(comment[2])), len(places))
        elif tells_no_origin(row):
            origin = -1
    printed.places.extend(places)
