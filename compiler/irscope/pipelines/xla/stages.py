"""The stages of PyTorch/XLA."""

from __future__ import annotations

from irscope.pipelines.openxla.stages import OF_XLA
from irscope.vocabulary.stages import Role, StageGroup, StageKind

LAZY = StageGroup("PyTorch/XLA")

LAZY_GRAPH = StageKind(
    "lazy-graph",
    "Lazy operations",
    "python",
    Role.GRAPH,
    3,
    group=LAZY,
    names="lazy",
    is_captured=True,
    is_compared=True,
)
LAZY_IR = StageKind("lazy-ir", "Lazy IR", "plaintext", Role.TEXT, 5, group=LAZY)

STAGES = (LAZY_GRAPH, LAZY_IR, *OF_XLA)
