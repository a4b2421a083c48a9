"""The pipeline of AOTInductor: an exported program, Inductor's graphs and IR, C++ that calls kernels, and a package."""

from __future__ import annotations

from irscope.pipelines.aotinductor.stages import STAGES
from irscope.pipelines.base import Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR

_TRIAL = """\
import tempfile
import torch
import torch._inductor
class Sine(torch.nn.Module):
    def forward(self, x):
        return x.sin() * 2 + 1
x = torch.ones(8)
exported = torch.export.export(Sine(), (x,))
with tempfile.TemporaryDirectory() as folder:
    path = torch._inductor.aoti_compile_and_package(exported, package_path=folder + "/sine.pt2")
    torch.testing.assert_close(torch._inductor.aoti_load_package(path)(x), x.sin() * 2 + 1)
"""

PIPELINE = Pipeline(
    name="aotinductor",
    title="AOTInductor",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE),
    capture="irscope.pipelines.aotinductor.capture:AotInductorCapture",
    trial=_TRIAL,
)
