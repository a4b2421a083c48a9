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
from irscope.ir.graphs import Graph, GraphNode, parse_graph
from irscope.ir.nodes import NodeFacts

from irscope_server.graph.answers import GraphColumns, NodeColumns

KINDS = {"placeholder": 0, "get_attr": 1, "call": 2, "output": 3}
SAME, ADDED, REMOVED, CHANGED = range(4)
_TYPED = re.compile(r"^(?P<dtype>[a-z]+\d*[a-z0-9_]*)\[(?P<sizes>[^\]]*)\](?:\[[^\]]*\])?(?P<device>[a-z][\w:]*)?$")
_BITS = re.compile(r"\d+")
_PLAIN_PATH = re.compile(r"[LG]\['([^'\"\]]+)'\]((?:\.[^.\[\]]+)*)")
_SEGMENT = re.compile(r"\[['\"]?([^'\"\]]*)['\"]?\]|([^.\[\]]+)")
UNTOLD = -2
"""In place of a module: a pass or autograd made the node, for an unknown module."""


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
                above = number_of.get((True, to_after[name]) if name in to_after else (False, name))
                if above is not None:
                    edges.append((above, number_of[False, node.name]))
    return Compared(Graph(tuple(nodes)), tuple(states), tuple(edges))


def edges_of(graph: Graph) -> list[tuple[int, int]]:
    """Pairs of numbers of nodes; an input that is not a node is left out."""
    numbers = {node.name: number for number, node in enumerate(graph.nodes)}
    return [
        (numbers[name], number) for number, node in enumerate(graph.nodes) for name in node.inputs if name in numbers
    ]


def columns(
    graph: Graph,
    edges: Iterable[tuple[int, int]],
    facts: Mapping[str, NodeFacts],
    uri_of: Callable[[str], str],
    states: Sequence[int] = (),
) -> GraphColumns:
    """The columns of a graph's nodes with their tables."""
    ops, details, dtypes, devices, modules, files = (Table() for _ in range(6))
    nodes: dict[str, list[Any]] = {
        key: []
        for key in (
            "name", "kind", "op", "detail", "dtype", "device", "bytes", "moved", "flops", "module",
            "backward", "line", "file", "originLine",
        )
    }  # fmt: skip
    parsed: dict[str, tuple[str, str, int | None]] = {}
    numbers: dict[tuple[str, str] | None, int] = {}
    for node in graph.nodes:
        known = facts.get(node.name)
        if node.detail not in parsed:
            parsed[node.detail] = typed(node.detail)
        dtype, device, size = parsed[node.detail]
        if known is not None and known.value.bytes is not None and known.value.kind in ("tensor", "list"):
            size = known.value.bytes
        nodes["name"].append(node.name)
        nodes["kind"].append(KINDS.get(node.op, 2))
        nodes["op"].append(ops(_op_name(node)))
        nodes["detail"].append(details(node.detail))
        nodes["dtype"].append(dtypes(dtype))
        nodes["device"].append(devices(device))
        nodes["bytes"].append(size)
        nodes["moved"].append(_moved(known))
        nodes["flops"].append(None if known is None else known.flops)
        place = None if known is None else known.module
        if place not in numbers:
            numbers[place] = modules(None if place is None else split_module(*place))
        module = numbers[place]
        nodes["module"].append(UNTOLD if module < 0 and _is_untold(known) else module)
        nodes["backward"].append(int(known is not None and known.is_backward))
        nodes["line"].append(max(0, node.line - 1))
        nodes["file"].append(files(node.origin.file) if node.origin else -1)
        nodes["originLine"].append(max(0, node.origin.line - 1) if node.origin else -1)
    return {
        "nodes": cast(NodeColumns, {**nodes, **({"state": list(states)} if states else {})}),
        "edges": [number for edge in edges for number in edge],
        "ops": ops.entries,
        "details": details.entries,
        "dtypes": dtypes.entries,
        "devices": devices.entries,
        "modules": [{"path": list(path), "type": kind} for path, kind in modules.entries],
        "files": [uri_of(file) for file in files.entries],
    }


def _op_name(node: GraphNode) -> str:
    """``torch.ops.aten.mm.default`` → ``aten.mm``; of what is not a call its kind."""
    if node.op != "call":
        return node.op
    return node.target.removeprefix("torch.ops.").removesuffix(".default") or node.name


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


def _moved(known: NodeFacts | None) -> int | None:
    return None if known is None or known.read is None or known.written is None else known.read + known.written


def _is_untold(known: NodeFacts | None) -> bool:
    """A node without a module that is not one of the user's own, which has the line it came from."""
    return known is not None and known.op.startswith("call_") and (not known.stack or known.is_backward)


def split_module(path: str, kind: str) -> tuple[tuple[str, ...], str]:
    """``G['model'].encoder.layer.0`` → (model, encoder, layer, 0), with the module's class."""
    if plain := _PLAIN_PATH.fullmatch(path):  # most are, and a large model has ten thousand
        return (plain[1], *(part for part in plain[2].split(".")[1:] if part != "_modules")), kind
    head, *rest = [match[1] or match[2] for match in _SEGMENT.finditer(path)] or [path]
    if rest and head in ("L", "G"):
        head, *rest = rest
    return (head, *(part for part in rest if part != "_modules")), kind
