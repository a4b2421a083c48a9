"""The stages of the pipeline ``dynamo``, and its kind of finding."""

from __future__ import annotations

from irscope.pipelines.dynamo_stages import FIRST, PHASES
from irscope.pipelines.inductor.stages import (
    BACKWARD_GRAPH,
    COMPILED_AUTOGRAD_GRAPH,
    FORWARD_GRAPH,
    INFERENCE_GRAPH,
    JOINT_GRAPH,
)
from irscope.protocol import Severity
from irscope.vocabulary.findings import DEEP_ONLY, FindingKind
from irscope.vocabulary.stages import Role, StageGroup, StageKind

BACKEND = StageGroup("Backend")

REPORT = StageKind(
    "backend-report", "What the backend did", "plaintext", Role.FACTS, aside="dynamo-graph", group=BACKEND
)
RETURNED_GRAPH = StageKind(
    "backend-graph", "Graph that the backend returned", "python", Role.GRAPH, 2, short="Returned graph",
    names="dynamo", group=BACKEND, is_compared=True,
)  # fmt: skip
RETURNED_TEXT = StageKind(
    "backend-text", "Text of what the backend returned", "plaintext", Role.TEXT, 5, short="Returned text",
    group=BACKEND, is_compared=True,
)  # fmt: skip

AOT_GRAPHS = (JOINT_GRAPH, INFERENCE_GRAPH, FORWARD_GRAPH, BACKWARD_GRAPH, COMPILED_AUTOGRAD_GRAPH)
"""The stages of backends that are built on AOTAutograd."""
STAGES = (*FIRST, REPORT, RETURNED_GRAPH, *AOT_GRAPHS, RETURNED_TEXT, PHASES)

NOT_COMPILED = FindingKind(
    id="graph-not-compiled",
    label="Graph not compiled",
    short=("graph not compiled", "graphs not compiled"),
    lanes=DEEP_ONLY,
    severity=Severity.WARNING,
    filter_label="Graphs that are not compiled",
)
