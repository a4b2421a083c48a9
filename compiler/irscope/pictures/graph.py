"""The graph of a stage as a picture needs it: each node with its words, its colour and the module around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irscope.ir.graphs import GraphNode, edges_of, operation_name, parse_graph
from irscope.ir.modules import Path, PlacedNodes, has_both_ways, homes, is_call, split_module
from irscope.ir.nodes import NO_FACTS
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile, StageRef
from irscope.provenance import chain
from irscope.provenance.graph_facts import facts_along
from irscope.store.store import Store
from irscope.vocabulary.graph_looks import Family, family_of, input_name, title_of
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role
from irscope.vocabulary.suggestions import did_you_mean


@dataclass(frozen=True)
class PictureNode:
    """A node.

    Args:
        title: The operation as people call it, or the name of an input.
        detail: Dtype, shape, strides and device as printed.
        home: The modules around it in the drawing, outermost first.
        place: The user's line, as ``model.py:12``; empty if it is unknown.
    """

    name: str
    title: str
    detail: str
    family: Family | None
    home: Path
    is_input: bool
    place: str


@dataclass(frozen=True)
class PictureGraph:
    """Nodes in graph order; ``edges`` are pairs of their numbers, ``types`` the classes of modules by path."""

    nodes: tuple[PictureNode, ...]
    edges: tuple[tuple[int, int], ...]
    types: dict[Path, str]


def read_graph(store: Store, run: str, compile: Compile, stage: StageRef) -> PictureGraph:
    """Raises ValueError if the text of the stage is not a printed graph."""
    graph = parse_graph(store.stage_text(run, stage.id))
    edges = edges_of(graph)
    facts = facts_along(store, run, compile, stage)
    known = [facts.get(node.name, NO_FACTS) for node in graph.nodes]
    modules = [split_module(*fact.module) if fact.module is not None else None for fact in known]
    placed = PlacedNodes(
        names=[node.name for node in graph.nodes],
        kinds=[node.op for node in graph.nodes],
        dtypes=[node.detail.partition("[")[0] for node in graph.nodes],
        modules=[module[0] if module else None for module in modules],
        untold=[fact.is_untold for fact in known],
        backward=[fact.is_backward for fact in known],
        edges=edges,
    )
    drawn_in = homes(placed)
    if has_both_ways(placed):
        drawn_in = _apart(placed, drawn_in)
    nodes = tuple(_pictured(node, home) for node, home in zip(graph.nodes, drawn_in, strict=True))
    types = dict(module for module in modules if module is not None)
    backward = {(_BACKWARD, *path): kind for path, kind in types.items()}
    return PictureGraph(nodes, tuple(edges), {**backward, **types})


def read_schedule(store: Store, run: str, compile: Compile, stage: StageRef) -> PictureGraph:
    """Inductor's schedule: its nodes before fusion, those that were fused in a frame; an edge for each buffer.

    Raises ValueError if nothing is known about its nodes.
    """
    stages = [one for one in chain.siblings(compile.stages, stage, Role.SCHEDULE) if stage_kind(one.name).is_fused]
    first = [one for one in chain.siblings(compile.stages, stage, Role.SCHEDULE) if one not in stages]
    after = (store.stage_data(run, stage.id) or {}).get("nodes", ()) if stage in stages else ()
    before = [node for one in first for node in (store.stage_data(run, one.id) or {}).get("nodes", ())]
    rows = before or list(after)
    if not rows:
        raise ValueError("only the text of its nodes was kept")
    home = {part: (str(node["name"]),) for node in after if len(node["parts"]) > 1 for part in node["parts"]}
    edges = _buffers_between(rows)
    nodes = tuple(_scheduled(node, home.get(node["name"], ())) for node in rows)
    return PictureGraph(nodes, tuple(edges), dict.fromkeys(home.values(), "fused"))


def _buffers_between(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], None]:
    """An edge for each buffer that one node writes and another reads, by the numbers of the nodes."""
    written = {buffer: number for number, node in enumerate(rows) for buffer, *_ in node["writes"]}
    return {
        (written[read], number): None
        for number, node in enumerate(rows)
        for read, *_ in node["reads"]
        if read in written
    }


def _scheduled(node: Mapping[str, Any], home: Path) -> PictureNode:
    name, operations = str(node["name"]), [str(origin) for origin in node["origins"]]
    last = operations[-1] if operations else name
    return PictureNode(name, last, f"{name} {node['kind']}", family_of("call_function", last, last), home, False, "")


def _pictured(node: GraphNode, home: Path | None) -> PictureNode:
    operation = operation_name(node)
    return PictureNode(
        node.name,
        title_of(operation) if is_call(node.op) else input_name(node.name),
        node.detail,
        family_of(node.op, node.name, operation),
        home or (),
        node.op == "placeholder",
        f"{node.origin.file}:{node.origin.line}" if node.origin else "",
    )


def near(graph: PictureGraph, name: str, steps: int) -> PictureGraph:
    """The part of a graph within so many edges of a node, along and against them.  Raises LookupError for no such node."""
    numbers = {node.name: number for number, node in enumerate(graph.nodes)}
    if name not in numbers:
        raise LookupError(f"This graph has no node {name}.{did_you_mean(name, list(numbers))}")
    beside: dict[int, set[int]] = {}
    for source, user in graph.edges:
        beside.setdefault(source, set()).add(user)
        beside.setdefault(user, set()).add(source)
    kept = reached = {numbers[name]}
    for _ in range(steps):
        reached = {other for number in reached for other in beside.get(number, ())} - kept
        kept = kept | reached
    order = {number: at for at, number in enumerate(sorted(kept))}
    edges = tuple((order[source], order[user]) for source, user in graph.edges if source in order and user in order)
    return PictureGraph(tuple(graph.nodes[number] for number in order), edges, graph.types)


_BACKWARD = "backward"


def _apart(placed: PlacedNodes, found: Sequence[Path | None]) -> list[Path | None]:
    """The homes with those of the backward in a module around them; an input is of it if nothing else uses it."""
    backward = list(placed.backward)
    users: dict[int, list[int]] = {}
    for source, user in placed.edges:
        if is_call(placed.kinds[user]):
            users.setdefault(source, []).append(user)
    for node, kind in enumerate(placed.kinds):
        if kind in ("placeholder", "get_attr"):
            mine = users.get(node, []) if found[node] is not None else []
            backward[node] = bool(mine) and all(placed.backward[user] for user in mine)
    return [(_BACKWARD, *(home or ())) if is_there else home for home, is_there in zip(found, backward, strict=True)]
