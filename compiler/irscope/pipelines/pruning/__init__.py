"""The pipeline ``pruning``: which parameters have zeros, and which masks are still computed, on the way through Inductor."""

from __future__ import annotations

from irscope.pipelines.base import Pipeline
from irscope.pipelines.pruning.stages import MASK, STAGES

_TRIAL = """\
import os
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
import torch
from torch.nn.utils import prune
layer, x = torch.nn.Linear(8, 8), torch.ones(2, 8)
prune.l1_unstructured(layer, "weight", amount=0.5)
with torch.no_grad():
    torch.testing.assert_close(torch.compile(layer)(x), layer(x))
"""

PIPELINE = Pipeline(
    name="pruning",
    title="Pruned models with Inductor",
    stages=STAGES,
    findings=(MASK,),
    capture="irscope.pipeline_captures.pruning.capture:PruningCapture",
    trial=_TRIAL,
)
