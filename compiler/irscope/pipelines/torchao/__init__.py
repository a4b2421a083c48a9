"""The pipeline ``torchao``: quantization after training, from the exported program to fused integer operators."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline
from irscope.pipelines.torchao.stages import NOT_QUANTIZED, STAGES

_TRIAL = """\
import os
os.environ.update(TORCHINDUCTOR_FORCE_DISABLE_CACHES="1", TORCHINDUCTOR_FREEZING="1")
import torch
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
net, x = torch.nn.Linear(8, 8).eval(), torch.randn(2, 8)
with torch.no_grad():
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    graph = prepare_pt2e(torch.export.export(net, (x,)).module(), quantizer)
    graph(x)
    graph = convert_pt2e(graph)
    found = torch.compile(graph)(x)
    torch.testing.assert_close(found, net(x), rtol=0.2, atol=0.2)
"""

PIPELINE = Pipeline(
    name="torchao",
    title="Quantization with torchao, then Inductor",
    stages=STAGES,
    findings=(NOT_QUANTIZED,),
    capture="irscope.pipeline_captures.torchao.capture:TorchaoCapture",
    needs=(Package("torchao", "torchao>=0.18,<0.19"),),
    megabytes=5,
    trial=_TRIAL,
)
