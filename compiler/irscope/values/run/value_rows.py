"""The values of the nodes of a graph stage, told and kept: of a graph here, or of one for a target."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from irscope.store.value_file import ValueWriter
from irscope.values.kernel.eager import EagerGraph
from irscope.values.run.interpreting import KeptGraph, NodeFailed, Values, draws
from irscope.values.run.running import CallMoment
from irscope.values.run.statistics import described
from irscope.values.run.subgraph_compile import Drawing


def node_values(
    moment: CallMoment, kept: KeptGraph, writer: ValueWriter, compiled: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The values of all nodes of a graph on the inputs of a call, and sentences on what could not be run.

    ``compiled``: what compiled code computed, by node, of which random numbers are taken.
    """
    nodes: list[dict[str, Any]] = []
    notes: list[str] = []

    def seen(node: Any, value: Any) -> None:
        nodes.append({"name": node.name, "value": described(value, writer)})

    given = {node.name: compiled[node.name] for node in kept.graph.nodes if node.name in compiled and draws(node)}
    try:
        Values(kept, given, Drawing(moment.compiled.config)).run(moment.inputs(), seen)
    except NodeFailed as failure:
        notes.append(f"{_NOT_BEYOND} {failure}")
    return nodes, [*notes, *_full(writer)]


def target_values(graph: EagerGraph, writer: ValueWriter) -> tuple[list[dict[str, Any]], list[str]]:
    """The same for the printed graph of a target, computed on the CPU from `known_values`."""
    nodes: list[dict[str, Any]] = []
    for name in graph.names:
        try:
            value = graph.value(name)
            if name in graph.made:  # from its shape alone: what follows from it would be wrong, too
                raise LookupError(f"{name}: {graph.made[name] or 'no value of this run is its input'}")
        except LookupError as error:
            return nodes, [f"{_NOT_BEYOND} {error.args[0]}", *_full(writer)]
        nodes.append({"name": name, "value": described(value, writer)})
    return nodes, _full(writer)


def known_values(moment: CallMoment, compiled: Mapping[str, Any]) -> dict[str, Any]:
    """What the graph of a target takes from the call of the one here: inputs, constants and random numbers, by node."""
    kept: KeptGraph = moment.compiled.graph
    given = {node.name: compiled[node.name] for node in kept.graph.nodes if node.name in compiled and draws(node)}
    known: dict[str, Any] = {}

    def seen(node: Any, value: Any) -> None:
        if node.op == "get_attr" or draws(node):
            known[node.name] = value

    if any(node.op == "get_attr" or draws(node) for node in kept.graph.nodes):
        with contextlib.suppress(NodeFailed):  # then those after it are not known, which the table tells
            Values(kept, given, Drawing(moment.compiled.config)).run(moment.inputs(), seen)
    return known | dict(zip(kept.placeholders, moment.inputs(), strict=False))


_NOT_BEYOND = "The graph could not be run beyond"


def _full(writer: ValueWriter) -> list[str]:
    return ["Not all elements were kept: the limit for the elements of a run's tensors was reached."] * writer.full
