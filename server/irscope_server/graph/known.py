"""The columns of a graph whose nodes the store knows: made from its columns there, with no object for each node.

It gives what `graph_columns.columns` gives for the parsed text and the facts of its nodes, several times as fast;
benchmarks/graph_panel.mjs tells by how much, and a test that both give the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irscope.ir.graphs import short_target
from irscope.ir.modules import split_module
from irscope.provenance.graph_facts import MOST_ORIGINALS, Calls, Modules

from irscope_server.graph.answers import GraphColumns
from irscope_server.graph.columns import KINDS, Table, Tables, originals_of, typed
from irscope_server.graph.lines import PrintedNodes, printed_nodes


def known_columns(
    text: str,
    data: Any,
    modules_above: Callable[[], Modules],
    uri_of: Callable[[str], str],
    calls_above: Callable[[], Calls] = dict,
) -> GraphColumns | None:
    """Columns of a graph stage.

    Parameters
    ----------
    data
        As `irscope.ir.nodes` has it.
    modules_above
        Modules of the nodes in the graphs before it; asked only where a node of this one has none of its own.
    calls_above
        What the nodes of the first graph call.

    Returns None if the data is not that of the text's nodes.
    """
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), dict):
        return None
    printed = printed_nodes(text, data)
    if printed is None:
        return None
    nodes = data["nodes"]
    calls = [op.startswith("call_") for op in nodes["op"]]
    operations = [short_target(target) for target in data["targets"]]
    sizes = [_bytes(data, entry) for entry in data["values"]]
    stacks, backward = nodes["stack"], set(data["backward"])
    tables, files = Tables(), Table()
    return tables.graph(
        {
            **_printed_columns(printed, data, sizes, tables, files),
            "kind": [KINDS.get(kind, 2) for kind in nodes["op"]],
            "op": _ops(nodes, calls, operations, tables.ops),
            "original": _originals(data, calls, operations, calls_above, tables.originals),
            "moved": _moved(nodes, sizes, calls, set(data["views"])),
            "flops": nodes["flops"],
            "module": _modules(data, tables.modules, modules_above),
            "backward": [int(number in backward) for number in range(len(calls))],
        },
        [(source, number) for number, inputs in enumerate(nodes["inputs"]) for source in inputs],
        [uri_of(file) for file in files.entries],
        nodes["op"],
        [call and (stacks[number] < 0 or number in backward) for number, call in enumerate(calls)],
    )


def _ops(nodes: Any, calls: list[bool], operations: list[str], ops: Table) -> list[int]:
    """The operation of each node; nodes have few different ones."""
    numbers: dict[tuple[str, int], int] = {}
    column = []
    for is_call, kind, target, name in zip(calls, nodes["op"], nodes["target"], nodes["name"], strict=True):
        key = (kind, target if is_call else -1)
        number = numbers.get(key)
        if number is None:
            number = ops((operations[target] or name) if is_call else kind)
            if not is_call or operations[target]:
                numbers[key] = number
        column.append(number)
    return column


def _printed_columns(
    printed: PrintedNodes, data: Any, sizes: list[int | None], tables: Tables, files: Table
) -> dict[str, list[Any]]:
    """What the text says of each node, with the bytes of its value, which the store knows better."""
    values = data["values"]
    parsed: dict[str, tuple[int, int, int, int | None]] = {}
    places = [(files(file), max(0, line - 1)) for file, line in printed.places]
    rows = []
    for detail, value, origin in zip(printed.details, data["nodes"]["value"], printed.origins, strict=True):
        if detail not in parsed:
            dtype, device, size = typed(detail)
            parsed[detail] = (tables.details(detail), tables.dtypes(dtype), tables.devices(device), size)
        *numbers, size = parsed[detail]
        if value >= 0 and values[value][0] in ("tensor", "list") and sizes[value] is not None:
            size = sizes[value]
        rows.append((*numbers, size, *(places[origin] if origin >= 0 else (-1, -1))))
    keys = ("detail", "dtype", "device", "bytes", "file", "originLine")
    columns = {key: [row[place] for row in rows] for place, key in enumerate(keys)}
    return {"name": printed.names, "line": printed.lines, **columns}


def _originals(
    data: Any, calls: list[bool], operations: list[str], calls_above: Callable[[], Calls], originals: Table
) -> list[int]:
    """What each node was made from; nodes have few different ones."""
    nodes, sources = data["nodes"], data["sources"]
    above = calls_above() if sources else {}
    names_of: list[tuple[str, ...]] = []  # of each source; those that it came from are before it
    for name, _, _, graph, parents in sources:
        call = above.get((graph, name))
        names = [call] if call is not None else [name for parent in parents for name in names_of[parent]]
        names_of.append(tuple(dict.fromkeys(names))[: MOST_ORIGINALS + 2])  # the node's own two may be among them
    numbers: dict[tuple[int, int, tuple[int, ...]], int] = {}
    column = []
    for is_call, target, aten, made_from in zip(calls, nodes["target"], nodes["aten"], nodes["from"], strict=True):
        key = (target if is_call else -1, aten, tuple(made_from))
        if key not in numbers:
            names = [data["targets"][aten] if aten >= 0 else "", *(n for source in made_from for n in names_of[source])]
            numbers[key] = originals(originals_of(operations[target] if is_call else "", names))
        column.append(numbers[key])
    return column


def _bytes(data: Any, entry: Any) -> int | None:
    """Of an entry of *values*, as `irscope.ir.nodes` counts."""
    if entry[0] == "tensor":
        return None if entry[5] is None else int(entry[5])
    if entry[0] == "list":
        parts = [data["values"][at] for at in entry[1] if at >= 0]
        sizes = [_bytes(data, part) for part in parts if part[0] == "tensor"]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    return 0


def _moved(nodes: Any, sizes: list[int | None], calls: list[bool], views: set[int]) -> list[int | None]:
    """Bytes that each node reads and writes."""
    moved: list[int | None] = []
    value_of = nodes["value"]
    for number, (call, inputs) in enumerate(zip(calls, nodes["inputs"], strict=True)):
        value = value_of[number]
        all_moved: int | None = 0
        if call and number not in views:
            all_moved = sizes[value] if value >= 0 else None
            for at in inputs:
                if all_moved is None:
                    break
                if value_of[at] >= 0:
                    read = sizes[value_of[at]]
                    all_moved = None if read is None else all_moved + read
        moved.append(all_moved)
    return moved


def _modules(data: Any, modules: Table, modules_above: Callable[[], Modules]) -> list[int]:
    """The module of each node; what a pass made has that of what it came from, where that has one."""
    nodes, sources = data["nodes"], data["sources"]
    numbers = [modules(split_module(*entry)) for entry in data["modules"]]
    column = [numbers[module] if module >= 0 else -1 for module in nodes["module"]]
    lacking = [number for number, module in enumerate(column) if module < 0 and nodes["from"][number]]
    if not lacking:
        return column
    above = modules_above()
    places: dict[int, tuple[str, str] | None] = {}

    def module_of(source: int) -> tuple[str, str] | None:
        if source not in places:
            name, _, _, graph, parents = sources[source]
            places[source] = above.get((graph, name)) or next(filter(None, map(module_of, parents)), None)
        return places[source]

    for number in lacking:
        place = next(filter(None, map(module_of, nodes["from"][number])), None)
        if place is not None:
            column[number] = modules(split_module(*place))
    return column
