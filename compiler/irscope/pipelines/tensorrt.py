"""Torch-TensorRT, which irscope only knows: what is missing, and what it would show."""

from __future__ import annotations

from irscope.pipelines.base import Package, Pipeline

PIPELINE = Pipeline(
    name="tensorrt",
    title="Torch-TensorRT",
    stages=(),
    needs=(Package("torch_tensorrt", "torch-tensorrt"),),
    unsupported=(
        "torch_tensorrt 2.13.0 cannot be imported without the libraries libnvinfer, libnvinfer_plugin and libnvonnxparser (Could not "
        "find libnvinfer.so.11), a PyTorch that was built for CUDA, and an NVIDIA GPU. Its partitioner needs none of these, but is a "
        "part of the same package. irscope does not capture it yet."
    ),
    shows="which operators TensorRT takes and which stay with PyTorch, the partitions and why they are cut, and the layers of each engine",
)
