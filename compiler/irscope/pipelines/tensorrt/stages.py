"""The kinds of stages of a dry run of Torch-TensorRT."""

from __future__ import annotations

from irscope.pipelines.export.stages import DECOMPOSED_PROGRAM, FIRST
from irscope.vocabulary.stages import Part, Role, StageGroup, StageKind

TENSORRT = StageGroup("Torch-TensorRT")
_NAMES = DECOMPOSED_PROGRAM.names
"""Lowering passes and the partitioner keep the names of the nodes that they do not replace."""


def _graph(name: str, title: str, rank: int) -> StageKind:
    return StageKind(
        name, title, "python", Role.GRAPH, rank, part=Part.INFERENCE, group=TENSORRT, names=_NAMES, is_compared=True
    )


LOWERED = _graph("tensorrt-lowered", "Program after lowering passes", 5)
PARTITIONED = _graph("tensorrt-partitioned", "Partitioned program", 6)
REPORT = StageKind(
    "tensorrt-report", "Report of the dry run", "plaintext", Role.FACTS, aside=PARTITIONED.name, group=TENSORRT
)
STAGES = (*FIRST, DECOMPOSED_PROGRAM, LOWERED, PARTITIONED, REPORT)
