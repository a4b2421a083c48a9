"""Glow, which irscope only knows: what is missing, and what it would show. `docs/pipelines.md` says where its phases can be seen today."""

from __future__ import annotations

from irscope.pipelines.base import Pipeline

PIPELINE = Pipeline(
    name="glow",
    title="Glow",
    stages=(),
    unsupported="Its project is archived, and no package of it can be installed.",
    shows="its high-level graph, the optimized graph, its low-level IR, and LLVM IR",
)
