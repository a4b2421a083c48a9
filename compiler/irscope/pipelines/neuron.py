"""AWS Neuron, which irscope only knows: what is missing, and what it would show."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline

PIPELINE = Pipeline(
    name="neuron",
    title="AWS Neuron",
    stages=(),
    needs=(Package("torch_neuronx", "torch-neuronx"),),
    unsupported="It needs an AWS Neuron device and packages from its own registry, and irscope does not capture it.",
    shows="the HLO that it compiles, which operators fall back to the host, and the report of its compiler",
)
