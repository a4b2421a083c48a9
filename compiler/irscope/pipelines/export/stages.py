"""The kinds of stages of an exported program."""

from __future__ import annotations

from irscope.vocabulary.stages import Part, Role, StageGroup, StageKind

EXPORT = StageGroup("torch.export")

EXPORTED_PROGRAM = StageKind(
    "exported-program",
    "Exported program",
    "python",
    Role.GRAPH,
    1,
    part=Part.SHARED,
    group=EXPORT,
    names="export",
    is_captured=True,
    is_compared=True,
)
SIGNATURE = StageKind(
    "export-signature", "Inputs and outputs", "plaintext", Role.FACTS, aside="exported-program", group=EXPORT
)
CONSTRAINTS = StageKind(
    "export-constraints",
    "Guards and dynamic shapes",
    "plaintext",
    Role.FACTS,
    aside="exported-program",
    group=EXPORT,
)
DRAFT_REPORT = StageKind(
    "draft-export", "Report of draft export", "plaintext", Role.FACTS, aside="exported-program", group=EXPORT
)
DECOMPOSED_PROGRAM = StageKind(
    "decomposed-program",
    "Exported program after decompositions",
    "python",
    Role.GRAPH,
    4,
    short="After decompositions",
    part=Part.SHARED,
    group=EXPORT,
    names="core-aten",
    is_compared=True,
    takes_costs=True,
)

FIRST = (EXPORTED_PROGRAM, SIGNATURE, CONSTRAINTS, DRAFT_REPORT)
"""The first stages, which every pipeline after ``torch.export`` shares."""
STAGES = (*FIRST, DECOMPOSED_PROGRAM)
