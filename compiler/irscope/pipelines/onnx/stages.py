"""The kinds of stages of ONNX and ONNX Runtime."""

from __future__ import annotations

from irscope.pipelines.export.stages import DECOMPOSED_PROGRAM, FIRST
from irscope.vocabulary.stages import Part, Role, StageGroup, StageKind

ONNX = StageGroup("ONNX")
RUNTIME = StageGroup("ONNX Runtime")
_NAMES = "onnx"


def _graph(name: str, title: str, rank: int, group: StageGroup) -> StageKind:
    return StageKind(
        name, title, "python", Role.GRAPH, rank, part=Part.INFERENCE, group=group, names=_NAMES, is_compared=True,
    )  # fmt: skip


MODEL = _graph("onnx-model", "ONNX model", 5, ONNX)
OPTIMIZED = _graph("onnx-optimized", "Optimized ONNX model", 6, ONNX)
LOADED = _graph("onnx-runtime-disabled", "Runtime graph, no optimizations", 7, RUNTIME)
BASIC = _graph("onnx-runtime-basic", "Runtime graph, basic optimizations", 8, RUNTIME)
EXTENDED = _graph("onnx-runtime-extended", "Runtime graph, extended optimizations", 9, RUNTIME)
ALL = _graph("onnx-runtime-all", "Runtime graph, all optimizations", 10, RUNTIME)
PROVIDERS = StageKind("onnx-providers", "Execution providers", "plaintext", Role.FACTS, aside=ALL.name, group=RUNTIME)
TIMES = StageKind("onnx-times", "Time of each node", "plaintext", Role.FACTS, aside=ALL.name, group=RUNTIME)

LEVELS = {
    "ORT_DISABLE_ALL": LOADED,
    "ORT_ENABLE_BASIC": BASIC,
    "ORT_ENABLE_EXTENDED": EXTENDED,
}
"""ONNX Runtime's optimization levels below the one that is used."""
RUNS_AT = "ORT_ENABLE_ALL"
STAGES = (*FIRST, DECOMPOSED_PROGRAM, MODEL, OPTIMIZED, LOADED, BASIC, EXTENDED, ALL, PROVIDERS, TIMES)
