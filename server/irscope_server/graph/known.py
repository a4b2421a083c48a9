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
from irscope_server.graph.columns import KINDS, Table, Tables, originals_of
from irscope_server.graph.lines import PrintedNodes, printed_nodes


def known_columns(
    text: str,
    data: Any,
    modules_above: Callable[[], Modules],
    uri_of: Callable[[str], str],
    calls_above: Callable[[], Calls] = dict,
) -> GraphColumns | None:
    """Columns of a graph stage.

    Args:
        data: As `irscope.ir.nodes` has it.
        modules_above: Modules of the nodes in the graphs before it; asked only where a node of this one has none of its
            own.
        calls_above: What the nodes of the first graph call.

    Returns None if the data is not that of the text's nodes.
    """
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), dict):
        return None
    printed = printed_nodes(text, data)
    if printed is None:
        return None
    nodes = data["nodes"]
    views, backward = set(data["views"]), set(data["backward"])
    calls = [op.startswith("call_") for op in nodes["op"]]
    tables = Tables()
    op_of = [short_target(target) for target in data["targets"]]
    kinds = zip(calls, nodes["op"], nodes["target"], nodes["name"], strict=True)
    op = [tables.ops((op_of[target] or name) if call else kind) for call, kind, target, name in kinds]
    original = _originals(data, calls, op_of, calls_above, tables.originals)
    types, printed_sizes = _types(printed, tables)
    sizes = [_bytes(data, entry) for entry in data["values"]]
    columns: dict[str, list[Any]] = {
        "name": printed.names,
        "kind": [KINDS.get(kind, 2) for kind in nodes["op"]],
        "op": op,
        "original": original,
        **types,
        "bytes": _sizes(data, sizes, printed_sizes),
        "moved": _moved(nodes, sizes, calls, views),
        "flops": nodes["flops"],
        "module": _modules(data, tables.modules, modules_above),
        "backward": [int(number in backward) for number in range(len(op))],
        "line": printed.lines,
        **_places(printed, tables.files),
    }
    edges = [(source, user) for user, inputs in enumerate(nodes["inputs"]) for source in inputs]
    columns["home"] = tables.homes(columns, nodes["op"], _untold(calls, nodes["stack"], backward), edges)
    return tables.graph(columns, edges, [uri_of(file) for file in tables.files.entries])


def _types(printed: PrintedNodes, tables: Tables) -> tuple[dict[str, list[int]], list[int | None]]:
    """The columns of printed types, dtypes and devices; and the bytes as far as they tell them."""
    rows = [tables.printed(detail) for detail in printed.details]
    numbers = {
        "detail": [detail for detail, _, _, _ in rows],
        "dtype": [dtype for _, dtype, _, _ in rows],
        "device": [device for _, _, device, _ in rows],
    }
    return numbers, [size for _, _, _, size in rows]


def _untold(calls: list[bool], stacks: list[int], backward: set[int]) -> list[bool]:
    """Like `NodeFacts.is_untold`."""
    return [call and (stacks[number] < 0 or number in backward) for number, call in enumerate(calls)]


def _places(printed: PrintedNodes, files: Table) -> dict[str, list[int]]:
    """The columns of the user's files and lines."""
    file_of = [files(file) for file, _ in printed.places]
    line_of = [max(0, line - 1) for _, line in printed.places]
    return {
        "file": [file_of[origin] if origin >= 0 else -1 for origin in printed.origins],
        "originLine": [line_of[origin] if origin >= 0 else -1 for origin in printed.origins],
    }


def _sizes(data: Any, sizes: list[int | None], printed: list[int | None]) -> list[int | None]:
    """Bytes of what each node gives: those of tensors as the data has them, else what the printed types tell."""
    values = data["values"]
    of_tensors = [size if value[0] in ("tensor", "list") else None for value, size in zip(values, sizes, strict=True)]
    return [
        told if value < 0 or (size := of_tensors[value]) is None else size
        for value, told in zip(data["nodes"]["value"], printed, strict=True)
    ]


def _originals(
    data: Any, calls: list[bool], op_of: list[str], calls_above: Callable[[], Calls], originals: Table
) -> list[int]:
    """What each node was made from; nodes have few different ones."""
    nodes, sources = data["nodes"], data["sources"]
    above = calls_above() if sources else {}
    found: list[tuple[str, ...]] = []  # of each source; those that it came from are before it
    for name, _, _, graph, parents in sources:
        call = above.get((graph, name))
        names = [call] if call is not None else [each for parent in parents for each in found[parent]]
        found.append(tuple(dict.fromkeys(names))[: MOST_ORIGINALS + 2])  # the node's own two may be among them
    known: dict[tuple[int, int, tuple[int, ...]], int] = {}
    column = []
    for is_call, target, aten, made_from in zip(calls, nodes["target"], nodes["aten"], nodes["from"], strict=True):
        key = (target if is_call else -1, aten, tuple(made_from))
        if key not in known:
            names = [data["targets"][aten] if aten >= 0 else "", *(each for at in made_from for each in found[at])]
            known[key] = originals(originals_of(op_of[target] if is_call else "", names))
        column.append(known[key])
    return column


def _bytes(data: Any, entry: Any) -> int | None:
    """The bytes of an entry of *values*, as `irscope.ir.nodes` counts."""
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
    """The module of each node; what a pass made has that of what it came from, if that has one."""
    numbers = [modules(split_module(*entry)) for entry in data["modules"]]
    own = [numbers[module] if module >= 0 else -1 for module in data["nodes"]["module"]]
    lacking = [number for number, module in enumerate(own) if module < 0 and data["nodes"]["from"][number]]
    if not lacking:
        return own
    above = modules_above()
    sources = data["sources"]
    of_source: dict[int, tuple[str, str] | None] = {}

    def module_of(source: int) -> tuple[str, str] | None:
        if source not in of_source:
            name, _, _, graph, parents = sources[source]
            of_source[source] = above.get((graph, name)) or next(filter(None, map(module_of, parents)), None)
        return of_source[source]

    for number in lacking:
        place = next(filter(None, map(module_of, data["nodes"]["from"][number])), None)
        if place is not None:
            own[number] = modules(split_module(*place))
    return own
