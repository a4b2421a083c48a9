"""The part of docs/pipelines.md that says where the classic topics and Glow's phases can be seen today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from irscope.pipelines.registry import pipelines

PAGE = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")
TOPICS = PAGE[PAGE.index("## Where the classic topics") :].split("\n### ")[1:]
NAMES = {
    "AOTInductor": "aotinductor", "Inductor": "inductor", "ONNX Runtime": "onnx", "OpenVINO": "openvino",
    "OpenXLA": "openxla", "PyTorch/XLA": "xla", "TVM": "tvm", "Torch-TensorRT": "tensorrt", "TorchScript": "torchscript", "torch.export": "export",
}  # fmt: skip
"""How the page calls a pipeline → its name."""
AS_INDUCTOR = {"aotinductor", "torchao", "pruning", "dynamo"}
"""The page says at the beginning that they have what Inductor has, and `dynamo` what its backend has."""


def _rows(topic: str) -> dict[str, str]:
    """By pipeline what its row says; pipelines that have the same share a row."""
    rows = re.findall(r"^- \*\*(.+?):\*\* (.+)$", topic, re.MULTILINE)
    names = [(NAMES[name], text) for shared, text in rows for name in shared.split(", ")]
    assert len(dict(names)) == len(names), "a pipeline is there twice"
    return dict(names)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.split("\n")[0])
def test_each_topic_has_each_pipeline_and_names_stages_that_it_has(topic: str) -> None:
    rows = _rows(topic)
    built = {name for name, one in pipelines().items() if not one.unsupported}
    assert rows.keys() | AS_INDUCTOR == built
    for name, text in rows.items():
        titles = {title for one in pipelines()[name].stages for title in (one.title, one.short)}
        named = set(re.findall(r"\*([^*]+)\*", text))
        assert named <= titles, f"{name} has no such stage"
