"""What PyTorch's trace tells about Inductor: its stages, what is going on, and the part of a step to which a stage
belongs."""

from __future__ import annotations

import re

from irscope.capture.progress import DYNAMO_PHASES
from irscope.capture.stages import DYNAMO_EVENTS
from irscope.pipelines.inductor import stages
from irscope.vocabulary.stages import StageKind

EVENTS = {
    **DYNAMO_EVENTS,
    "after_pre_grad_graph": stages.PRE_GRAD_GRAPH,
    "aot_joint_graph": stages.JOINT_GRAPH,
    "aot_inference_graph": stages.INFERENCE_GRAPH,
    "aot_forward_graph": stages.FORWARD_GRAPH,
    "aot_backward_graph": stages.BACKWARD_GRAPH,
    "compiled_autograd_graph": stages.COMPILED_AUTOGRAD_GRAPH,
    "inductor_post_grad_graph": stages.POST_GRAD_GRAPH,
    "after_post_grad_graph": stages.POST_GRAD_GRAPH,  # its name in torch 2.9
    "inductor_output_code": stages.OUTPUT_CODE,
}
"""By event the stage whose text its record carries."""
PHASES = {
    **DYNAMO_PHASES,
    "aot_joint_graph": "partitioning frame {}",
    "inductor_post_grad_graph": "{graph}: generating code",
    "after_post_grad_graph": "{graph}: generating code",  # its name in torch 2.9
    "inductor_output_code": "{graph}: compiling kernels",
}
"""By event what is going on from then on."""
KERNEL_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
CACHE_HIT = "fx_graph_cache_hit"
AOT_CACHE_EVENTS = ("aotautograd_cache_hit", "aotautograd_cache_miss")
_TANGENT = re.compile(r"(?<!\w)tangents_\d")  # compiled autograd has nodes called aot0_tangents_1


def is_backward(kind: StageKind, text: str) -> bool:
    """Whether a lowered stage belongs to the backward graph.

    Inductor names its output code after the graph (``# AOT ID: ['0_backward']``); a graph that takes tangents is a
    backward graph.
    """
    if kind is stages.OUTPUT_CODE:
        return "_backward']" in text[:200]
    if kind is stages.CACHE_KEY:
        return "fx_kwargs[is_backward]: True\n" in text
    return kind is stages.POST_GRAD_GRAPH and _TANGENT.search(text) is not None
