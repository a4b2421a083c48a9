"""The columns of a graph whose nodes the store knows: made from its columns there, with no object for each node.

It gives what `graph_columns.columns` gives for the parsed text and the facts of its nodes, several times as fast;
benchmarks/graph_panel.mjs tells by how much, and a test that both give the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irscope.ir.graphs import short_target
from irscope.ir.modules import PlacedNodes, split_module
from irscope.provenance.graph_facts import MOST_ORIGINALS, Calls, Modules

from irscope_server.graph.answers import GraphColumns
from irscope_server.graph.columns import KINDS, Table, home_column, originals_of, typed
from irscope_server.graph.lines import printed_nodes


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
    targets, values = data["targets"], data["values"]
    views, backward = set(data["views"]), set(data["backward"])
    calls = [op.startswith("call_") for op in nodes["op"]]

    ops = Table()
    op_of = [short_target(target) for target in targets]
    op_at: dict[tuple[str, int], int] = {}
    op = []
    for call, kind, target, name in zip(calls, nodes["op"], nodes["target"], nodes["name"], strict=True):
        key = (kind, target if call else -1)
        if (at := op_at.get(key)) is None:
            at = ops((op_of[target] or name) if call else kind)
            if not call or op_of[target]:
                op_at[key] = at
        op.append(at)

    originals = Table()
    original = _originals(data, calls, op_of, calls_above, originals)
    details, dtypes, devices = Table(), Table(), Table()
    of_detail: dict[str, tuple[int, int, int, int | None]] = {}
    detail, dtype, device, size = [], [], [], []
    sizes = [_bytes(data, entry) for entry in values]
    for printed_type, value in zip(printed.details, nodes["value"], strict=True):
        found = of_detail.get(printed_type)
        if found is None:
            kind, where, length = typed(printed_type)
            found = of_detail[printed_type] = (details(printed_type), dtypes(kind), devices(where), length)
        detail.append(found[0])
        dtype.append(found[1])
        device.append(found[2])
        known = sizes[value] if value >= 0 and values[value][0] in ("tensor", "list") else None
        size.append(found[3] if known is None else known)

    moved = _moved(nodes, sizes, calls, views)
    modules = Table()
    module = [modules(split_module(*entry)) for entry in data["modules"]]
    own = [module[at] if at >= 0 else -1 for at in nodes["module"]]
    _borrow(own, data, modules, modules_above)
    stacks = nodes["stack"]
    edges = [(at, to) for to, inputs in enumerate(nodes["inputs"]) for at in inputs]
    entries, of_dtype = modules.entries, dtypes.entries
    placed = PlacedNodes(
        printed.names,
        nodes["op"],
        [of_dtype[at] if at >= 0 else "" for at in dtype],
        [entries[at][0] if at >= 0 else None for at in own],
        [call and (stacks[number] < 0 or number in backward) for number, call in enumerate(calls)],
        [number in backward for number in range(len(calls))],
        edges,
    )
    home = home_column(modules, placed)

    files = Table()
    file_of = [files(file) for file, _ in printed.places]
    line_of = [max(0, line - 1) for _, line in printed.places]
    return {
        "nodes": {
            "name": printed.names,
            "kind": [KINDS.get(kind, 2) for kind in nodes["op"]],
            "op": op,
            "original": original,
            "detail": detail,
            "dtype": dtype,
            "device": device,
            "bytes": size,
            "moved": moved,
            "flops": nodes["flops"],
            "module": own,
            "home": home,
            "backward": [int(number in backward) for number in range(len(op))] if backward else [0] * len(op),
            "line": printed.lines,
            "file": [file_of[at] if at >= 0 else -1 for at in printed.origins],
            "originLine": [line_of[at] if at >= 0 else -1 for at in printed.origins],
        },
        "edges": [number for edge in edges for number in edge],
        "ops": ops.entries,
        "originals": [list(each) for each in originals.entries],
        "details": details.entries,
        "dtypes": dtypes.entries,
        "devices": devices.entries,
        "modules": [{"path": list(path), "type": kind} for path, kind in modules.entries],
        "files": [uri_of(file) for file in files.entries],
    }


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


def _borrow(own: list[int], data: Any, modules: Table, modules_above: Callable[[], Modules]) -> None:
    """Gives what a pass made the module of what it came from, where that has one."""
    lacking = [number for number, at in enumerate(own) if at < 0 and data["nodes"]["from"][number]]
    if not lacking:
        return
    above = modules_above()
    sources = data["sources"]
    found: dict[int, tuple[str, str] | None] = {}

    def module_of(at: int) -> tuple[str, str] | None:
        if at not in found:
            name, _, _, graph, parents = sources[at]
            found[at] = above.get((graph, name)) or next(filter(None, map(module_of, parents)), None)
        return found[at]

    for number in lacking:
        place = next(filter(None, map(module_of, data["nodes"]["from"][number])), None)
        if place is not None:
            own[number] = modules(split_module(*place))
