"""The TorchScript pipeline: the traced or scripted graph, and every pass of the executor that runs it."""

from __future__ import annotations

from irscope.pipelines.base import Pipeline
from irscope.pipelines.torchscript.stages import FINDINGS, STAGES

_TRIAL = """\
import torch
x = torch.ones(8)
traced = torch.jit.trace(lambda x: x.sin() * 2 + 1, (x,))
for _ in range(3):
    torch.testing.assert_close(traced(x), x.sin() * 2 + 1)
torch.jit.last_executed_optimized_graph()
"""

PIPELINE = Pipeline(
    name="torchscript",
    title="TorchScript",
    stages=STAGES,
    findings=FINDINGS,
    capture="irscope.pipeline_captures.torchscript.capture:TorchScriptCapture",
    trial=_TRIAL,
)
