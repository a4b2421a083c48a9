"""Intel Extension for PyTorch, which irscope only knows: what is missing, and what it would show."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline

PIPELINE = Pipeline(
    name="ipex",
    title="Intel Extension for PyTorch",
    stages=(),
    needs=(Package("intel_extension_for_pytorch", "intel-extension-for-pytorch"),),
    unsupported="Intel has retired it; its last version, 2.8, works with PyTorch 2.8 only, and irscope needs 2.9 or newer.",
    shows="the graph before and after its fusions, and which operators oneDNN computes",
)
