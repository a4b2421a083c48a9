"""Which record of the trace is which stage, and the order of the stages along the pipeline."""

from __future__ import annotations

import re
from dataclasses import dataclass

from irscope.capture.trace import Record


@dataclass(frozen=True)
class StageKind:
    """A name of DESIGN.md with the language of its text."""

    name: str
    language: str


_PIPELINE = (
    StageKind("bytecode", "python-bytecode"),
    StageKind("symbolic-trace", "plaintext"),
    StageKind("dynamo-graph", "python"),
    StageKind("guards", "irscope-guards"),
    StageKind("symbols", "plaintext"),
    StageKind("modified-bytecode", "python-bytecode"),
    StageKind("pre-grad-graph", "python"),
    StageKind("joint-graph", "python"),
    StageKind("partition", "plaintext"),
    StageKind("inference-graph", "python"),
    StageKind("forward-graph", "python"),
    StageKind("backward-graph", "python"),
    StageKind("compiled-autograd-graph", "python"),
    StageKind("cache-key", "plaintext"),
    StageKind("post-grad-graph", "python"),
    StageKind("ir-pre-fusion", "python"),
    StageKind("fusion", "plaintext"),
    StageKind("ir-post-fusion", "python"),
    StageKind("memory-plan", "plaintext"),
    StageKind("output-code", "python"),
    StageKind("kernel", ""),
    StageKind("ttir-unoptimized", "mlir"),
    StageKind("passes", "plaintext"),
    StageKind("ttir", "mlir"),
    StageKind("ttgir", "mlir"),
    StageKind("llir", "llvm"),
    StageKind("ptx", "ptx"),
    StageKind("amdgcn", "asm"),
    StageKind("binary", "json"),
    StageKind("sass", "sass"),
    StageKind("assembly", "asm"),
    StageKind("phases", "plaintext"),
    StageKind("values", "plaintext"),
    StageKind("divergence", "plaintext"),
)
KINDS = {kind.name: kind for kind in _PIPELINE}
GRAPH_STAGES = frozenset(kind.name for kind in _PIPELINE if kind.name.endswith("-graph"))

_STAGE_OF_EVENT = {
    "dynamo_output_graph": "dynamo-graph",
    "dynamo_cpp_guards_str": "guards",
    "after_pre_grad_graph": "pre-grad-graph",
    "aot_joint_graph": "joint-graph",
    "aot_inference_graph": "inference-graph",
    "aot_forward_graph": "forward-graph",
    "aot_backward_graph": "backward-graph",
    "compiled_autograd_graph": "compiled-autograd-graph",
    "inductor_post_grad_graph": "post-grad-graph",
    "after_post_grad_graph": "post-grad-graph",  # its name in torch 2.9
    "inductor_output_code": "output-code",
}
_BACKWARD = 1000
_TANGENT = re.compile(r"(?<!\w)tangents_\d")  # compiled autograd has nodes called aot0_tangents_1


def stage_of(record: Record) -> StageKind | None:
    """The stage whose text a record carries."""
    return KINDS.get(_STAGE_OF_EVENT.get(record.event, ""))


def position(name: str, backward: bool) -> int:
    """Sorts the stages of a compile along the pipeline, all of the backward's lowering after the forward's."""
    order = next(i for i, kind in enumerate(_PIPELINE) if kind.name == name)
    return order + (_BACKWARD if backward else 0)


def is_backward(name: str, text: str) -> bool:
    """Whether a lowered stage belongs to the backward graph.

    Inductor names its output code after the graph (``# AOT ID: ['0_backward']``); a graph that takes tangents is a
    backward graph.
    """
    if name == "output-code":
        return "_backward']" in text[:200]
    if name == "cache-key":
        return "fx_kwargs[is_backward]: True\n" in text
    return name == "post-grad-graph" and _TANGENT.search(text) is not None


def clean(record: Record) -> str:
    """A stage's text without what the trace puts around it."""
    text = record.payload.strip("\n")
    head, mark, _ = text.rpartition("\n # graph id:")
    return (head.rstrip() if mark else text) + "\n"
