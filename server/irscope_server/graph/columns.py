"""A graph stage as columns, to be clustered, laid out and drawn by the client.

One list per fact instead of one object per node, and what repeats is an index into a table, ``-1`` being *nothing*: a
graph of 50,000 nodes is a few megabytes that are read in a moment.  docs/PROTOCOL.md has the columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from irscope.comparing.graphs import diff_graphs
from irscope.ir.graphs import Graph, GraphNode, operation_name, parse_graph, short_target
from irscope.ir.modules import Path, PlacedNodes, called_module, has_both_ways, homes, split_module
from irscope.ir.nodes import NO_FACTS, NodeFacts
from irscope.provenance.graph_facts import MOST_ORIGINALS, Calls, original_calls

from irscope_server.graph.answers import GraphColumns, NodeColumns

KINDS = {"placeholder": 0, "get_attr": 1, "call": 2, "output": 3}
SAME, ADDED, REMOVED, CHANGED = range(4)
_TYPED = re.compile(r"^(?P<dtype>[a-z]+\d*[a-z0-9_]*)\[(?P<sizes>[^\]]*)\](?:\[[^\]]*\])?(?P<device>[a-z][\w:]*)?$")
_BITS = re.compile(r"\d+")


class Table:
    """Values by number, in the order of their first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        """The number of a value, a new one at its first appearance; -1 for None and empty text."""
        if value is None or value == "":
            return -1
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def entries(self) -> list[Any]:
        """The values, by their number."""
        return list(self._numbers)


@dataclass(frozen=True)
class Compared:
    """A graph together with what an earlier version of it had; ``states`` are those of its nodes."""

    graph: Graph
    states: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]


def compared(before: str, after: str) -> Compared:
    """The nodes of two versions of a graph in one: those that are gone are after what they followed.

    Raises ValueError if a text is not a graph.
    """
    diff = diff_graphs(before, after)
    old, new = parse_graph(before), parse_graph(after)
    to_after, added = dict(diff.pairs), {node.name for node in diff.added}
    changed = {change.after.name for change in diff.changed}
    gone_behind: dict[str, list[GraphNode]] = {}
    last = ""
    for node in old.nodes:
        if node.name in to_after:
            last = to_after[node.name]
        else:
            gone_behind.setdefault(last, []).append(node)
    nodes: list[GraphNode] = []
    states: list[int] = []
    number_of: dict[tuple[bool, str], int] = {}

    def put_gone(behind: str) -> None:
        for node in gone_behind.pop(behind, ()):
            number_of[False, node.name] = len(nodes)
            nodes.append(node)
            states.append(REMOVED)

    put_gone("")
    for node in new.nodes:
        number_of[True, node.name] = len(nodes)
        nodes.append(node)
        states.append(ADDED if node.name in added else CHANGED if node.name in changed else SAME)
        put_gone(node.name)
    edges = [
        (source, number_of[True, node.name])
        for node in new.nodes
        for name in node.inputs
        if (source := number_of.get((True, name))) is not None
    ]
    for node in old.nodes:
        if node.name not in to_after:
            for name in node.inputs:
                above = number_of.get((name in to_after, to_after.get(name, name)))
                if above is not None:
                    edges.append((above, number_of[False, node.name]))
    return Compared(Graph(tuple(nodes)), tuple(states), tuple(edges))


class Tables:
    """What the numbers in a graph's columns stand for."""

    def __init__(self) -> None:
        self.ops, self.originals, self.details, self.dtypes, self.devices = (Table() for _ in range(5))
        self.modules, self.files = Table(), Table()
        self._printed: dict[str, tuple[int, int, int, int | None]] = {}

    def printed(self, detail: str) -> tuple[int, int, int, int | None]:
        """The numbers of a printed type, its dtype and its device, and the bytes as far as it tells them."""
        if detail not in self._printed:
            dtype, device, size = _typed(detail)
            self._printed[detail] = self.details(detail), self.dtypes(dtype), self.devices(device), size
        return self._printed[detail]

    def homes(
        self,
        nodes: Mapping[str, list[Any]],
        kinds: Sequence[str],
        untold: Sequence[bool],
        edges: Sequence[tuple[int, int]],
    ) -> list[int]:
        """The column *home*, from those of name, dtype, module and backward, and what `PlacedNodes` has."""
        dtypes, modules = self.dtypes.entries, self.modules.entries
        placed = PlacedNodes(
            nodes["name"],
            kinds,
            [dtypes[number] if number >= 0 else "" for number in nodes["dtype"]],
            [modules[number][0] if number >= 0 else None for number in nodes["module"]],
            untold,
            [number == 1 for number in nodes["backward"]],
            edges,
        )
        return home_column(self.modules, placed)

    def graph(self, nodes: Mapping[str, list[Any]], edges: Sequence[tuple[int, int]], files: list[str]) -> GraphColumns:
        """All columns, with these tables and the addresses of the files."""
        return {
            "nodes": cast(NodeColumns, nodes),
            "edges": [number for edge in edges for number in edge],
            "ops": self.ops.entries,
            "originals": [list(names) for names in self.originals.entries],
            "details": self.details.entries,
            "dtypes": self.dtypes.entries,
            "devices": self.devices.entries,
            "modules": [{"path": list(path), "type": kind} for path, kind in self.modules.entries],
            "files": files,
        }


def columns(
    graph: Graph,
    edges: Sequence[tuple[int, int]],
    facts: Mapping[str, NodeFacts],
    uri_of: Callable[[str], str],
    states: Sequence[int] = (),
    calls_above: Calls | None = None,
) -> GraphColumns:
    """The columns of a graph's nodes with their tables.

    Args:
        calls_above: What the nodes of the first graph call.
    """
    tables = Tables()
    nodes: dict[str, list[Any]] = {
        key: []
        for key in (
            "name", "kind", "op", "original", "detail", "dtype", "device", "bytes", "moved", "flops", "module",
            "home", "backward", "line", "file", "originLine",
        )
    }  # fmt: skip
    module_numbers: dict[tuple[str, str] | None, int] = {None: -1}
    for node in graph.nodes:
        fact = facts.get(node.name, NO_FACTS)
        detail, dtype, device, size = tables.printed(node.detail)
        if fact.value.bytes is not None and fact.value.kind in ("tensor", "list"):
            size = fact.value.bytes
        if fact.module is not None and fact.module not in module_numbers:
            module_numbers[fact.module] = tables.modules(split_module(*fact.module))
        made_from = (fact.original_aten, *original_calls(fact.sources, calls_above or {}))
        nodes["name"].append(node.name)
        nodes["kind"].append(KINDS.get(node.op, 2))
        nodes["op"].append(tables.ops(operation_name(node)))
        nodes["original"].append(tables.originals(originals_of(operation_name(node), made_from)))
        nodes["detail"].append(detail)
        nodes["dtype"].append(dtype)
        nodes["device"].append(device)
        nodes["bytes"].append(size)
        nodes["moved"].append(fact.moved)
        nodes["flops"].append(fact.flops)
        nodes["module"].append(module_numbers[fact.module])
        nodes["backward"].append(int(fact.is_backward))
        nodes["line"].append(max(0, node.line - 1))
        origin = (tables.files(node.origin.file), max(0, node.origin.line - 1)) if node.origin else (-1, -1)
        nodes["file"].append(origin[0])
        nodes["originLine"].append(origin[1])
    untold = [facts.get(node.name, NO_FACTS).is_untold for node in graph.nodes]
    nodes["home"] = tables.homes(nodes, [node.op for node in graph.nodes], untold, edges)
    if states:
        nodes["state"] = list(states)
    return tables.graph(nodes, edges, [uri_of(file) for file in tables.files.entries])


def originals_of(operation: str, made_from: Iterable[str]) -> tuple[str, ...] | None:
    """What an operation was made from, each once and without itself; None if it is nothing else."""
    names = dict.fromkeys(short_target(each) for each in made_from)
    return tuple(name for name in names if name not in ("", operation))[:MOST_ORIGINALS] or None


def home_column(modules: Table, nodes: PlacedNodes) -> list[int]:
    """The number of the module around each node in the drawing; the table gets those that no node has for its own."""
    numbers: dict[Path, int] = {}
    types: dict[Path, str] = {}
    for number, (path, kind) in enumerate(modules.entries):
        numbers.setdefault(path, number)
        types.setdefault(path, kind)
    column = []
    both = has_both_ways(nodes)
    for path in homes(nodes):
        if path is None or (path == () and not both):  # with both, an input of the backward alone is drawn there
            column.append(-1)
        else:
            if path not in numbers:
                numbers[path] = modules((path, types.get(called_module(path), "")))
            column.append(numbers[path])
    return column


def _typed(detail: str) -> tuple[str, str, int | None]:
    """Dtype, device and bytes as far as the printed type tells them."""
    match = _TYPED.match(detail)
    if match is None:
        return "", "", None
    dtype, device = match["dtype"], match["device"] or ""
    bits = 8 if dtype == "b8" else int(found[0]) if (found := _BITS.search(dtype)) else 0
    try:
        sizes = [int(size) for size in match["sizes"].split(",") if size.strip()]
    except ValueError:  # a symbolic size
        return dtype, device, None
    return dtype, device, math.prod(sizes) * bits // 8 if bits else None
