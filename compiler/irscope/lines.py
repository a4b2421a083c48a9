"""From a line of the source to what it became: nodes in each graph stage, and kernels."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.graphs import GRAPH_STAGES, GraphNode, parse_graph
from irscope.protocol import Kernel, Origin, Report
from irscope.store import Store


@dataclass(frozen=True)
class LineStep:
    """The nodes of one stage that came from the line."""

    stage: str
    nodes: tuple[GraphNode, ...]


@dataclass(frozen=True)
class LineTrail:
    steps: tuple[LineStep, ...]
    kernels: tuple[Kernel, ...]


def trail_of(store: Store, report: Report, file: str, line: int) -> LineTrail:
    """All that came from a line in one run, along the pipeline of each compile."""
    origin = Origin(file, line)
    steps = []
    for compile in report.compiles:
        for stage in compile.stages:
            if stage.name not in GRAPH_STAGES:
                continue
            try:
                graph = parse_graph(store.stage_text(report.run, stage.id))
            except ValueError:
                continue
            nodes = tuple(node for node in graph.nodes if node.origin == origin)
            if nodes:
                steps.append(LineStep(stage.id, nodes))
    return LineTrail(tuple(steps), tuple(kernel for kernel in report.kernels if origin in kernel.origins))
