"""The pipeline of ``torch.export``: the exported program, its inputs, its guards, and why a program has none."""

from __future__ import annotations

from irscope.pipelines.base import Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR
from irscope.pipelines.export.stages import STAGES

PIPELINE = Pipeline(
    name="export",
    title="torch.export",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE),
    capture="irscope.pipelines.export.capture:ExportCapture",
)
