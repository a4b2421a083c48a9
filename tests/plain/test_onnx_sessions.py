"""What is read from a profile of ONNX Runtime; the events are those of version 1.31, shortened."""

from __future__ import annotations

from typing import Any

from irscope.capture.operation_graphs import Tensor
from irscope.pipeline_captures.onnx.sessions import NodeRun, providers_text, runs_in, times_text


def event(name: str, duration: int, provider: str = "CPUExecutionProvider", shape: object = None) -> dict[str, Any]:
    facts = {"op_name": name.title(), "provider": provider, "output_type_shape": shape or []}
    return {"cat": "Node", "name": f"{name}_kernel_time", "dur": duration, "args": facts}


EVENTS = [
    {"cat": "Session", "name": "model_run", "dur": 900},
    event("conv", 127, shape=[{"float": [2, 16, 6, 6]}]),
    event("relu", 8),
    event("conv", 25),
    event("relu", 4),
    event("conv", 7),
    event("relu", 2),
]


def test_the_first_run_does_not_count() -> None:
    conv, relu = runs_in(EVENTS)
    assert conv == NodeRun("conv", "Conv", "CPUExecutionProvider", 16.0, Tensor("float32", (2, 16, 6, 6)))
    assert (relu.microseconds, relu.value) == (3.0, None)


def test_neighbours_on_one_provider_are_a_partition() -> None:
    cuda = "CUDAExecutionProvider"
    runs = runs_in([event("conv", 1, cuda), event("relu", 1, cuda), event("nonzero", 1), event("add", 1, cuda)])
    text = providers_text(runs, [cuda, "CPUExecutionProvider"])
    heads = [line for line in text.split("\n") if line.startswith("Partition")]
    assert heads == [
        "Partition 1: CUDAExecutionProvider, 2 nodes",
        "Partition 2: CPUExecutionProvider, 1 node",
        "Partition 3: CUDAExecutionProvider, 1 node",
    ]


def test_the_longest_comes_first_with_its_share() -> None:
    rows = times_text(runs_in(EVENTS)).splitlines()[2:]
    assert [row.split() for row in rows] == [
        ["16", "µs", "84", "%", "Conv", "conv"],
        ["3", "µs", "16", "%", "Relu", "relu"],
    ]
