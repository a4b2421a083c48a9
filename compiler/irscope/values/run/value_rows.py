"""The values of the nodes of a graph stage, told and kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.store.value_file import ValueWriter
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
        notes.append(f"The graph could not be run beyond {failure}")
    if writer.full:
        notes.append("Not all elements were kept: the limit for the elements of a run's tensors was reached.")
    return nodes, notes
