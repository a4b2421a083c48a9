"""The stages of the pipeline ``pruning``, and its kind of finding."""

from __future__ import annotations

from irscope.pipelines.inductor.stages import STAGES as INDUCTOR_STAGES
from irscope.protocol import Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind
from irscope.vocabulary.stages import Role, StageGroup, StageKind

SPARSITY = StageKind(
    "sparsity", "Zeros and masks of parameters", "plaintext", Role.FACTS, aside="dynamo-graph", group=StageGroup("Pruning")
)  # fmt: skip
STAGES = (*INDUCTOR_STAGES, SPARSITY)

MASK = FindingKind(
    id="pruning-mask",
    label="Mask of pruning",
    short=("mask", "masks"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
    filter_label="Masks of pruning",
)
