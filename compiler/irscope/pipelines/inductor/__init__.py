"""The Inductor pipeline: its stages, passes, fusion decisions, memory plan and Triton stages."""

from __future__ import annotations

from irscope.pipelines.base import Pipeline
from irscope.pipelines.inductor.stages import CACHE_KEY, STAGES

_TRIAL = """\
import os
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
import torch
x = torch.ones(64)
compiled = torch.compile(lambda x: x.sin() * 2 + 1)
torch.testing.assert_close(compiled(x), x.sin() * 2 + 1)
"""

PIPELINE = Pipeline(
    name="inductor",
    title="torch.compile with Inductor",
    stages=STAGES,
    capture="irscope.pipeline_captures.inductor.capture:InductorCapture",
    compares=(CACHE_KEY.name,),
    trial=_TRIAL,
    targets=("cuda", "hip", "cpu"),
)
