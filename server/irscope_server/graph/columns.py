"""A graph stage as columns, to be clustered, laid out and drawn by the client.

One list per fact instead of one object per node, and what repeats is an index into a table, ``-1`` being *nothing*: a
graph of 50,000 nodes is a few megabytes that are read in a moment.  docs/PROTOCOL.md has the columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from irscope.comparing.graphs import diff_graphs
from irscope.ir.graphs import Graph, GraphNode, operation_name, parse_graph, short_target
from irscope.ir.modules import Path, PlacedNodes, has_both_ways, homes, split_module
from irscope.ir.nodes import NodeFacts, Value
from irscope.provenance.graph_facts import MOST_ORIGINALS, Calls, original_calls

from irscope_server.graph.answers import GraphColumns, NodeColumns

KINDS = {"placeholder": 0, "get_attr": 1, "call": 2, "output": 3}
SAME, ADDED, REMOVED, CHANGED = range(4)
_TYPED = re.compile(r"^(?P<dtype>[a-z]+\d*[a-z0-9_]*)\[(?P<sizes>[^\]]*)\](?:\[[^\]]*\])?(?P<device>[a-z][\w:]*)?$")
_BITS = re.compile(r"\d+")
_NO_FACTS = NodeFacts(
    name="", line=0, op="", target="", value=Value(), inputs=(), users=(), flops=None, read=None, written=None,
    is_view=False, is_backward=False, stack=(), module=None, original_aten="", seq_nr=None, sources=(),
)  # fmt: skip
"""Of a node that the store knows nothing about."""


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

    def values_of(self, numbers: Iterable[int], nothing: Any) -> list[Any]:
        """The values with these numbers; `nothing` for -1."""
        entries = self.entries
        return [entries[number] if number >= 0 else nothing for number in numbers]


@dataclass(frozen=True)
class Tables:
    """What the numbers in the columns of a graph's nodes stand for."""

    ops: Table = field(default_factory=Table)
    originals: Table = field(default_factory=Table)
    details: Table = field(default_factory=Table)
    dtypes: Table = field(default_factory=Table)
    devices: Table = field(default_factory=Table)
    modules: Table = field(default_factory=Table)

    def graph(
        self,
        nodes: dict[str, list[Any]],
        edges: Sequence[tuple[int, int]],
        files: list[str],
        kinds: Sequence[str],
        untold: Sequence[bool],
    ) -> GraphColumns:
        """The graph of nodes whose columns are complete but for ``home``; kinds and untold are as in `PlacedNodes`."""
        paths = [path for path, _ in self.modules.values_of(nodes["module"], (None, ""))]
        dtypes, backward = self.dtypes.values_of(nodes["dtype"], ""), [flag == 1 for flag in nodes["backward"]]
        placed = PlacedNodes(nodes["name"], kinds, dtypes, paths, untold, backward, edges)
        nodes["home"] = _home_column(self.modules, placed)
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
    edges = tuple(_edges_of_both(old, new, to_after, number_of))
    return Compared(Graph(tuple(nodes)), tuple(states), edges)


def _edges_of_both(
    old: Graph, new: Graph, to_after: Mapping[str, str], number_of: Mapping[tuple[bool, str], int]
) -> Iterator[tuple[int, int]]:
    """The edges of the new graph, and those to the old one's nodes that are gone; ``True`` in a key: of the new one."""
    for node in new.nodes:
        for name in node.inputs:
            if (source := number_of.get((True, name))) is not None:
                yield source, number_of[True, node.name]
    for node in old.nodes:
        if node.name not in to_after:
            for name in node.inputs:
                source = number_of.get((True, to_after[name]) if name in to_after else (False, name))
                if source is not None:
                    yield source, number_of[False, node.name]


def columns(
    graph: Graph,
    edges: Sequence[tuple[int, int]],
    facts: Mapping[str, NodeFacts],
    uri_of: Callable[[str], str],
    states: Sequence[int] = (),
    calls_above: Calls | None = None,
) -> GraphColumns:
    """The columns of a graph's nodes with their tables.

    Parameters
    ----------
    calls_above
        What the nodes of the first graph call.
    """
    tables, files = Tables(), Table()
    nodes: dict[str, list[Any]] = {
        key: []
        for key in (
            "name", "kind", "op", "original", "detail", "dtype", "device", "bytes", "moved", "flops", "module",
            "home", "backward", "line", "file", "originLine",
        )
    }  # fmt: skip
    parsed: dict[str, tuple[str, str, int | None]] = {}
    module_numbers: dict[tuple[str, str] | None, int] = {None: -1}
    untold = []
    for node in graph.nodes:
        node_facts = facts.get(node.name, _NO_FACTS)
        if node.detail not in parsed:
            parsed[node.detail] = typed(node.detail)
        dtype, device, size = parsed[node.detail]
        if node_facts.value.bytes is not None and node_facts.value.kind in ("tensor", "list"):
            size = node_facts.value.bytes
        operation, module = operation_name(node), node_facts.module
        made_from = (node_facts.original_aten, *original_calls(node_facts.sources, calls_above or {}))
        if module is not None and module not in module_numbers:
            module_numbers[module] = tables.modules(split_module(*module))
        untold.append(node_facts.is_untold)
        nodes["name"].append(node.name)
        nodes["kind"].append(KINDS.get(node.op, 2))
        nodes["op"].append(tables.ops(operation))
        nodes["original"].append(tables.originals(originals_of(operation, made_from)))
        nodes["detail"].append(tables.details(node.detail))
        nodes["dtype"].append(tables.dtypes(dtype))
        nodes["device"].append(tables.devices(device))
        nodes["bytes"].append(size)
        nodes["moved"].append(_moved(node_facts))
        nodes["flops"].append(node_facts.flops)
        nodes["module"].append(module_numbers[module])
        nodes["backward"].append(int(node_facts.is_backward))
        nodes["line"].append(max(0, node.line - 1))
        nodes["file"].append(files(node.origin.file) if node.origin else -1)
        nodes["originLine"].append(max(0, node.origin.line - 1) if node.origin else -1)
    if states:
        nodes["state"] = list(states)
    kinds = [node.op for node in graph.nodes]
    return tables.graph(nodes, edges, [uri_of(file) for file in files.entries], kinds, untold)


def originals_of(operation: str, made_from: Iterable[str]) -> tuple[str, ...] | None:
    """What an operation was made from, each once and without itself; None if it is nothing else."""
    names = dict.fromkeys(short_target(each) for each in made_from)
    return tuple(name for name in names if name not in ("", operation))[:MOST_ORIGINALS] or None


def _home_column(modules: Table, nodes: PlacedNodes) -> list[int]:
    """The number of the module that each node is drawn in; the table gets those that no node has for its own."""
    numbers: dict[Path, int] = {}
    for number, (path, _) in enumerate(modules.entries):
        numbers.setdefault(path, number)
    column = []
    both = has_both_ways(nodes)
    for path in homes(nodes):
        if path is None or (path == () and not both):  # with both, an input of the backward alone is drawn there
            column.append(-1)
        else:
            if path not in numbers:
                numbers[path] = modules((path, ""))
            column.append(numbers[path])
    return column


def typed(detail: str) -> tuple[str, str, int | None]:
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


def _moved(facts: NodeFacts) -> int | None:
    return None if facts.read is None or facts.written is None else facts.read + facts.written
