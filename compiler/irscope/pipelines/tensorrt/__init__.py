"""The pipeline of Torch-TensorRT: a dry run of its partitioner, which builds no engine."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR
from irscope.pipelines.tensorrt.stages import STAGES

_TRIAL = """\
import torch
if not torch.cuda.is_available():  # it asks for the GPU while it is imported
    torch.cuda.current_device, torch.cuda.get_device_capability = lambda: 0, lambda *_: (8, 0)
try:
    import torch_tensorrt
    from torch_tensorrt.dynamo import CompilationSettings, lowering, partitioning
    from torch_tensorrt.dynamo.conversion import DYNAMO_CONVERTERS
except Exception as error:
    raise SystemExit("torch_tensorrt cannot be imported: " + " ".join(f"{type(error).__name__}: {error}".split()))
class Sine(torch.nn.Module):
    def forward(self, x):
        return torch.special.i0e((x.sin() * 2 + 1).relu()).cos() * 3 - 1
settings = CompilationSettings(min_block_size=1)
program = lowering.pre_export_lowering(torch.export.export(Sine().eval(), (torch.ones(8),)), settings)
program = program.run_decompositions(lowering.get_decompositions())
module = lowering.post_lowering(program.module(), settings)
DYNAMO_CONVERTERS.set_compilation_settings(settings)
parts = [name for name, _ in partitioning.fast_partition(module, min_block_size=1)[0].named_children()]
if sum("_run_on_acc" in name for name in parts) != 2 or len(parts) < 3:
    raise SystemExit(f"its partitioner did not cut a program at an operator without a converter: {parts}")
"""

PIPELINE = Pipeline(
    name="tensorrt",
    title="Torch-TensorRT, a dry run",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE),
    capture="irscope.pipeline_captures.tensorrt.capture:TensorRtCapture",
    needs=(Package("torch_tensorrt", "torch-tensorrt>=2.11,<2.15"),),
    trial=_TRIAL,
)
