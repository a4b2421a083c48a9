"""The pipeline of OpenVINO: the converted model, its transformation passes, and the graph that the plugin runs."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR, UNSUPPORTED_OPERATOR
from irscope.pipelines.openvino.stages import STAGES

_TRIAL = """\
import numpy, openvino, torch
class Sine(torch.nn.Module):
    def forward(self, x):
        return x.sin() * 2 + 1
x = torch.ones(8)
model = openvino.convert_model(torch.export.export(Sine(), (x,)))
compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
torch.testing.assert_close(torch.from_numpy(compiled([x.numpy()])[0]), x.sin() * 2 + 1)
"""

PIPELINE = Pipeline(
    name="openvino",
    title="OpenVINO",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE, UNSUPPORTED_OPERATOR),
    capture="irscope.pipeline_captures.openvino.capture:OpenVinoCapture",
    needs=(Package("openvino", "openvino>=2026.4,<2026.5"),),
    megabytes=75,
    trial=_TRIAL,
)
