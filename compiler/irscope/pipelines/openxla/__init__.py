"""The pipeline of OpenXLA: torchax and JAX, down to the LLVM IR and the assembly of each kernel."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline
from irscope.pipelines.export.kinds import DRAFT_EXPORT_ISSUE, EXPORT_ERROR, UNSUPPORTED_OPERATOR
from irscope.pipelines.openxla.stages import STAGES, STATIC_SIZE

_TRIAL = """\
import torch
packet = torch._ops.OpOverloadPacket
found = packet.__getattr__
def tolerant(self, name):  # torchax names overloads that newer versions of PyTorch do not have
    try:
        return found(self, name)
    except AttributeError:
        if name.startswith("__"):
            raise
        return object()
packet.__getattr__ = tolerant
import torchax, torchax.decompositions, torchax.ops.jaten, torchax.ops.jtorch
packet.__getattr__ = found
import jax
from torchax.ops.ops_registry import all_aten_ops
compiled = jax.jit(all_aten_ops[torch.ops.aten.sin].func).lower(jax.ShapeDtypeStruct((8,), "float32")).compile()
result = compiled(jax.numpy.ones(8, "float32"))
torch.testing.assert_close(torch.utils.dlpack.from_dlpack(result), torch.ones(8).sin())
"""

PIPELINE = Pipeline(
    name="openxla",
    title="OpenXLA",
    stages=STAGES,
    findings=(EXPORT_ERROR, DRAFT_EXPORT_ISSUE, UNSUPPORTED_OPERATOR, STATIC_SIZE),
    capture="irscope.pipeline_captures.openxla.capture:OpenXlaCapture",
    needs=(Package("jax", "jax[cpu]>=0.10.2,<0.11"), Package("torchax", "torchax==0.0.13")),
    megabytes=135,
    trial=_TRIAL,
)
