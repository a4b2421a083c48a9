"""The stages of TorchScript and its findings."""

from __future__ import annotations

from irscope.protocol import Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind
from irscope.vocabulary.stages import Part, Role, StageKind

_NAMES = "torchscript"

GRAPH = StageKind("torchscript-graph", "Graph before inlining", "plaintext", Role.FACTS, aside="torchscript-inlined")
INLINED = StageKind(
    "torchscript-inlined", "Inlined graph", "python", Role.GRAPH, 3, names=_NAMES, is_captured=True, is_compared=True
)
FROZEN = StageKind("torchscript-frozen", "Frozen graph", "python", Role.GRAPH, 4, names=_NAMES)
PROFILED = StageKind("torchscript-profiled", "Profiled graph", "python", Role.GRAPH, 4, names=_NAMES)
OPTIMIZED = StageKind(
    "torchscript-optimized", "Optimized graph", "python", Role.GRAPH, 5, names=_NAMES, is_lowered=True
)
GRADIENT = StageKind(
    "torchscript-gradient", "Gradient graph", "python", Role.GRAPH, 3, names=_NAMES, part=Part.BACKWARD
)
IR = StageKind("torchscript-ir", "Optimized graph in TorchScript's IR", "plaintext", Role.FACTS, aside=OPTIMIZED.name)

LOOPS = StageKind("torchscript-loops", "Loops of a fused group (NNC)", "cpp", Role.TEXT, 6)
FUSER = StageKind("torchscript-fuser", "Tensor-expression fuser", "plaintext", Role.FACTS, aside=OPTIMIZED.name)

STAGES = (GRAPH, INLINED, GRADIENT, FROZEN, PROFILED, OPTIMIZED, IR, FUSER, LOOPS)

BAKED = FindingKind(
    id="baked-value",
    label="Value baked into a trace",
    short=("baked value", "baked values"),
    lanes=FAST_AND_DEEP,
    severity=Severity.WARNING,
)
UNSUPPORTED = FindingKind(
    id="unsupported-by-script",
    label="Not supported by TorchScript",
    short=("unsupported construct", "unsupported constructs"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
)

FINDINGS = (BAKED, UNSUPPORTED)
