"""The stages of the pipeline ``torchao``, and its kind of finding."""

from __future__ import annotations

from irscope.pipelines.inductor.stages import STAGES as INDUCTOR_STAGES
from irscope.protocol import Severity
from irscope.vocabulary.findings import DEEP_ONLY, FindingKind
from irscope.vocabulary.stages import Part, Role, StageGroup, StageKind

QUANTIZATION = StageGroup("Quantization")


def _graph(name: str, title: str, short: str, rank: int, is_captured: bool = False) -> StageKind:
    return StageKind(
        name, title, "python", Role.GRAPH, rank, short=short, part=Part.SHARED, group=QUANTIZATION, names="pt2e",
        is_captured=is_captured, is_compared=True,
    )  # fmt: skip


EXPORTED = _graph("pt2e-exported", "Program before quantization", "Exported", -3, is_captured=True)
OBSERVED = _graph("pt2e-observed", "Program with observers", "With observers", -2)
CONVERTED = _graph("pt2e-converted", "Program with quantize and dequantize", "With Q/DQ", -1)
REPORT = StageKind(
    "quantization", "What is quantized", "plaintext", Role.FACTS, aside="dynamo-graph", group=QUANTIZATION
)
FUSED = StageKind(
    "integer-operators", "Fused integer operators", "plaintext", Role.FACTS, aside="output-code", group=QUANTIZATION
)
STAGES = (EXPORTED, OBSERVED, CONVERTED, REPORT, *INDUCTOR_STAGES, FUSED)

NOT_QUANTIZED = FindingKind(
    id="not-quantized",
    label="Not quantized",
    short=("operation not quantized", "operations not quantized"),
    lanes=DEEP_ONLY,
    severity=Severity.INFORMATION,
    filter_label="Operations that are not quantized",
)
