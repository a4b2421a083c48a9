"""The pipeline of PyTorch/XLA: lazy tensors, and what XLA makes of their graphs."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline
from irscope.pipelines.dynamo.stages import NOT_COMPILED
from irscope.pipelines.xla.stages import STAGES

_TRIAL = """\
import os
os.environ.setdefault("PJRT_DEVICE", "CPU")
import torch, torch_xla
x = torch.ones(8).to(torch_xla.device())
torch.testing.assert_close((x.sin() * 2).cpu(), torch.ones(8).sin() * 2)
"""

PIPELINE = Pipeline(
    name="xla",
    title="PyTorch/XLA",
    stages=STAGES,
    findings=(NOT_COMPILED,),
    capture="irscope.pipeline_captures.xla.capture:XlaCapture",
    needs=(Package("torch_xla", "torch_xla==2.9.0"),),
    torch="torch==2.9.0",
    megabytes=1000,
    trial=_TRIAL,
)
