"""A graph stage as DOT, to be laid out by Graphviz in the client.

Everything that the client's style sheet needs is in ``class`` attributes (the kind of op, its dtype); no colour is
written here, so the picture follows the editor's theme.  Node ids are ``n0``, ``n1``, … and become the ``id``
attributes of the SVG.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from irscope.graphs import Graph, GraphNode

from irscope_server.documents import uri_of_stage
from irscope_server.wire import GraphNodeItem, GraphResult, Place

_TYPED = re.compile(r"^(?P<dtype>[a-z]+\d*[a-z0-9_]*)(?P<shape>\[[^\]]*\])")
_CLASS = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_LABEL = 48


def graph_result(
    title: str, graph: Graph, run: str, stage: str, language: str, uri_of: Callable[[str], str]
) -> GraphResult:
    """The picture of a graph, with a table from its node ids to the places they stand for."""
    stage_uri = uri_of_stage(run, stage, language)
    nodes = tuple(
        GraphNodeItem(
            f"n{number}",
            node.name,
            node.target if node.op == "call" else node.op,
            node.detail,
            Place(uri_of(node.origin.file), max(0, node.origin.line - 1)) if node.origin else None,
            stage_uri,
            max(0, node.line - 1),
        )
        for number, node in enumerate(graph.nodes)
    )
    return GraphResult(title, dot_of(graph, title), nodes)


def dot_of(graph: Graph, title: str) -> str:
    """The DOT text of a graph."""
    import graphviz  # here, because most sessions never draw

    dot = graphviz.Digraph(
        graph_attr={"tooltip": graphviz.escape(title), "rankdir": "TB", "nodesep": "0.25", "ranksep": "0.35"},
        node_attr={
            "shape": "box",
            "style": "rounded",
            "fontsize": "11",
            "margin": "0.12,0.06",
        },
        edge_attr={"arrowsize": "0.6"},
    )
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        name = ids[node.name]
        dot.node(
            name,
            label=graphviz.escape(_label(node)).replace("\n", r"\n"),
            _attributes={"id": name, "class": _classes(node), "tooltip": graphviz.escape(_tooltip(node))},
        )
    for node in graph.nodes:
        for source in node.inputs:
            if source in ids:
                dot.edge(ids[source], ids[node.name], _attributes={"class": f"from-{ids[source]} to-{ids[node.name]}"})
    return str(dot.source)


def _label(node: GraphNode) -> str:
    """``addmm`` over ``f32[8, 32]``; inputs and outputs go by their name."""
    name = _op_name(node) if node.op == "call" else node.name
    typed = _TYPED.match(node.detail)
    shape = f"{typed['dtype']}{typed['shape']}" if typed else ""
    return "\n".join(_shortened(part) for part in (name, shape) if part)


def _op_name(node: GraphNode) -> str:
    """``torch.ops.aten.mm.default`` → ``aten.mm``."""
    target = node.target.removeprefix("torch.ops.").removesuffix(".default")
    return target or node.name


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def _classes(node: GraphNode) -> str:
    typed = _TYPED.match(node.detail)
    family = _op_name(node).split(".", 1)[0] if node.op == "call" else ""
    names = [node.op, f"dtype-{typed['dtype']}" if typed else "", f"family-{family}" if family else ""]
    return " ".join(_CLASS.sub("-", name) for name in names if name)


def _tooltip(node: GraphNode) -> str:
    lines = [f"{node.name} = {node.target}" if node.op == "call" else f"{node.name} ({node.op})", node.detail]
    if node.origin:
        lines.append(f"{os.path.basename(node.origin.file)}:{node.origin.line}  {node.code}".rstrip())
    return "\n".join(line for line in lines if line)
