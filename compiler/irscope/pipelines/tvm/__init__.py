"""The pipeline of TVM: Relax and its passes, TIR, LLVM IR and assembly."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR, UNSUPPORTED_OPERATOR
from irscope.pipelines.tvm.stages import STAGES

_TRIAL = """\
import torch
import tvm
from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter, from_exported_program
class Sine(torch.nn.Module):
    def forward(self, x):
        return x.sin() * 2 + 1
x = torch.ones(8)
module = from_exported_program(torch.export.export(Sine(), (x,)))
executable = tvm.compile(module, target=tvm.target.Target("llvm"))
[result] = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.from_dlpack(x))
torch.testing.assert_close(torch.from_dlpack(result), x.sin() * 2 + 1)
"""

PIPELINE = Pipeline(
    name="tvm",
    title="TVM",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE, UNSUPPORTED_OPERATOR),
    capture="irscope.pipeline_captures.tvm.capture:TvmCapture",
    needs=(Package("tvm", "apache-tvm>=0.27.0.post1,<0.28"),),
    megabytes=115,
    trial=_TRIAL,
)
