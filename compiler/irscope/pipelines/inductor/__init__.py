"""The Inductor pipeline: its stages, passes, fusion decisions, memory plan and Triton stages."""

from __future__ import annotations

from irscope.pipelines.base import Pipeline
from irscope.pipelines.inductor.stages import STAGES

PIPELINE = Pipeline(
    name="inductor",
    title="torch.compile with Inductor",
    stages=STAGES,
    capture="irscope.pipelines.inductor.capture:InductorCapture",
)
