"""The pipeline of ``torch.export``: the exported program, its inputs, its guards, and why a program has none."""

from __future__ import annotations

from irscope.pipelines.base import Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR
from irscope.pipelines.export.stages import STAGES

_TRIAL = """\
import torch
class Sine(torch.nn.Module):
    def forward(self, x):
        return x.sin() * 2 + 1
x = torch.ones(8)
exported = torch.export.export(Sine(), (x,)).run_decompositions()
torch.testing.assert_close(exported.module()(x), x.sin() * 2 + 1)
"""

PIPELINE = Pipeline(
    name="export",
    title="torch.export",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE),
    capture="irscope.pipeline_captures.export.capture:ExportCapture",
    trial=_TRIAL,
)
