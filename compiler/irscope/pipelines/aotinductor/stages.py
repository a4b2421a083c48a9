"""The kinds of stages of AOTInductor: those of an exported program, then Inductor's, with C++ in place of Python."""

from __future__ import annotations

from irscope.pipelines.export import stages as export
from irscope.pipelines.inductor import stages as inductor
from irscope.vocabulary.stages import Role, StageGroup, StageKind

AOT_INDUCTOR = StageGroup("AOTInductor")

WRAPPER = StageKind(
    "cpp-wrapper",
    "C++ wrapper",
    "cpp",
    Role.CODE,
    8,
    group=AOT_INDUCTOR,
    is_compared=True,
)
TUNING = StageKind(
    "tuning-code", "Code that tunes Triton kernels", "python", Role.TEXT, aside="cpp-wrapper", group=AOT_INDUCTOR
)
PACKAGE = StageKind(
    "package-contents", "Contents of the package", "plaintext", Role.FACTS, aside="cpp-wrapper", group=AOT_INDUCTOR
)

STAGES = (
    *export.FIRST,
    inductor.JOINT_GRAPH,  # the versions of the inference graph are filed under it
    inductor.INFERENCE_GRAPH,
    inductor.POST_GRAD_GRAPH,
    inductor.IR_PRE_FUSION,
    inductor.FUSION,
    inductor.IR_POST_FUSION,
    inductor.MEMORY_PLAN,
    TUNING,
    WRAPPER,
    PACKAGE,
    inductor.KERNEL,
    *inductor.BELOW_TRITON,
    inductor.ASSEMBLY,
)
