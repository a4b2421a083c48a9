"""The pipeline of AOTInductor: an exported program, Inductor's graphs and IR, C++ that calls kernels, and a package."""

from __future__ import annotations

from irscope.pipelines.aotinductor.stages import STAGES
from irscope.pipelines.base import Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR

# Inductor looks for a C++ compiler and tries it while it writes the C++; to compile that would take half a minute more.
_TRIAL = """\
import tempfile
import torch
import torch._inductor
class Sine(torch.nn.Module):
    def forward(self, x):
        return x.sin() * 2 + 1
exported = torch.export.export(Sine(), (torch.ones(8),))
with tempfile.TemporaryDirectory() as folder:
    torch._inductor.aoti_compile_and_package(
        exported, package_path=folder + "/sine.pt2", inductor_configs={"aot_inductor.package_cpp_only": True}
    )
"""

PIPELINE = Pipeline(
    name="aotinductor",
    title="AOTInductor",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE),
    capture="irscope.pipeline_captures.aotinductor.capture:AotInductorCapture",
    trial=_TRIAL,
)
