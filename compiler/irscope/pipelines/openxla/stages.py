"""The stages of OpenXLA and its findings."""

from __future__ import annotations

from irscope.pipelines.export.stages import DECOMPOSED_PROGRAM, FIRST
from irscope.protocol import Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind
from irscope.vocabulary.stages import Role, StageGroup, StageKind

XLA = StageGroup("OpenXLA")

JAXPR = StageKind("jaxpr", "Jaxpr", "plaintext", Role.TEXT, 5, group=XLA)
STABLEHLO = StageKind("stablehlo", "StableHLO", "mlir", Role.TEXT, 6, group=XLA)
HLO = StageKind(
    "hlo",
    "HLO before optimizations",
    "python",
    Role.GRAPH,
    7,
    group=XLA,
    names="hlo",
    versions_as="hlo-optimized",
    precedes_passes=True,
    is_compared=True,
)
HLO_TEXT = StageKind("hlo-text", "Text of HLO before optimizations", "plaintext", Role.FACTS, aside="hlo", group=XLA)
OPTIMIZED = StageKind(
    "hlo-optimized", "Optimized HLO", "python", Role.GRAPH, 8, group=XLA, names="hlo", is_lowered=True, is_compared=True
)
OPTIMIZED_TEXT = StageKind(
    "hlo-optimized-text", "Text of optimized HLO", "plaintext", Role.FACTS, aside="hlo-optimized", group=XLA
)
BUFFERS = StageKind("buffer-assignment", "Buffer assignment", "plaintext", Role.FACTS, aside="hlo-optimized", group=XLA)
KERNEL = StageKind("xla-kernel", "LLVM IR of a kernel", "llvm", Role.KERNEL, 9)
LLVM = StageKind("xla-llvm", "Optimized LLVM IR", "llvm", Role.LOWERED, 10)
ASSEMBLY = StageKind("xla-assembly", "Assembly", "asm", Role.LOWERED, 11, is_machine_code=True)

OF_XLA = (STABLEHLO, HLO, HLO_TEXT, OPTIMIZED, OPTIMIZED_TEXT, BUFFERS, KERNEL, LLVM, ASSEMBLY)
"""What XLA itself makes, whatever hands it the program."""
STAGES = (*FIRST, DECOMPOSED_PROGRAM, JAXPR, *OF_XLA)

STATIC_SIZE = FindingKind(
    id="static-size",
    label="Dynamic size made static",
    short=("static size", "static sizes"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
)
