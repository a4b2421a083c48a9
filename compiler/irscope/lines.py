"""From a line of the source to what it became: nodes in each graph stage, scheduler nodes, kernels."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.graphs import GRAPH_STAGES, GraphNode
from irscope.protocol import Kernel, Origin, Report
from irscope.provenance import Provenance
from irscope.provenance.kernels import output_code_of
from irscope.store import Store


@dataclass(frozen=True)
class Place:
    """Something in a stage's text: a node, a scheduler node, the definition or a call of a kernel."""

    name: str
    line: int
    end_line: int


@dataclass(frozen=True)
class LineStep:
    """What one stage has of the line; ``nodes`` where it is a graph."""

    stage: str
    nodes: tuple[GraphNode, ...]
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class LineTrail:
    steps: tuple[LineStep, ...]
    kernels: tuple[Kernel, ...]


def trail_of(store: Store, report: Report, file: str, line: int) -> LineTrail:
    """All that came from a line in one run, along the pipeline of each compile."""
    thread = Provenance(store, report)
    below = thread.below(thread.source(file, line))
    names = {stage.id: stage.name for compile in report.compiles for stage in compile.stages}
    steps = []
    reached: set[tuple[str, str]] = set()
    for stage, elements in below.items():
        if names[stage] == "output-code":
            reached.update((stage, element.name.rpartition(":")[0] or element.name) for element in elements)
        elif names[stage] == "bytecode" or names[stage] == "kernel" or "/kernel" in stage:
            continue  # the instructions of a line are plain, and of a kernel it is the whole text
        nodes: tuple[GraphNode, ...] = ()
        if names[stage] in GRAPH_STAGES:
            nodes = tuple(node for element in elements if (node := thread.graph_node(element)) is not None)
        steps.append(LineStep(stage, nodes, tuple(Place(one.name, one.line, one.end_line) for one in elements)))
    origin = Origin(file, line)
    kernels = tuple(
        kernel
        for kernel in report.kernels
        if origin in kernel.origins or (output_code_of(kernel), kernel.name) in reached
    )
    return LineTrail(tuple(steps), kernels)
