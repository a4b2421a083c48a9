"""The pipeline of ONNX: the exported model, and what ONNX Runtime makes of it."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR, UNSUPPORTED_OPERATOR
from irscope.pipelines.onnx.stages import STAGES

_TRIAL = """\
import onnxruntime, torch
class Sine(torch.nn.Module):
    def forward(self, x):
        return x.sin() * 2 + 1
x = torch.ones(8)
program = torch.onnx.export(Sine(), (x,), dynamo=True, verbose=False)
torch.testing.assert_close(program(x)[0], x.sin() * 2 + 1)
"""

PIPELINE = Pipeline(
    name="onnx",
    title="ONNX Runtime",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE, UNSUPPORTED_OPERATOR),
    capture="irscope.pipeline_captures.onnx.capture:OnnxCapture",
    needs=(Package("onnxscript", "onnxscript>=0.7,<0.8"), Package("onnxruntime", "onnxruntime>=1.31,<1.33")),
    megabytes=60,
    trial=_TRIAL,
)
