"""The kinds of stages of OpenVINO."""

from __future__ import annotations

from irscope.pipelines.export.stages import DECOMPOSED_PROGRAM, FIRST
from irscope.vocabulary.stages import Part, Role, StageGroup, StageKind

OPENVINO = StageGroup("OpenVINO")
_NAMES = "openvino"


def _graph(name: str, title: str, rank: int) -> StageKind:
    return StageKind(
        name, title, "python", Role.GRAPH, rank, part=Part.INFERENCE, group=OPENVINO, names=_NAMES, is_compared=True
    )


MODEL = _graph("openvino-model", "OpenVINO model", 5)
TRANSFORMED = _graph("openvino-transformed", "Model after transformations", 6)
RUNTIME = _graph("openvino-runtime", "Runtime graph", 7)
STAGES = (*FIRST, DECOMPOSED_PROGRAM, MODEL, TRANSFORMED, RUNTIME)
