"""Inductor's kinds of stages, and those of AOTAutograd above it and of Triton and C++ below it."""

from __future__ import annotations

from irscope.pipelines.dynamo_stages import DYNAMO, FIRST, PHASES
from irscope.vocabulary.stages import OTHER_GROUP, Part, Role, StageGroup, StageKind

AOT_AUTOGRAD = StageGroup("AOTAutograd")
INDUCTOR = StageGroup("Inductor", has_sides=True)

_JOINT_PHASES = ("aot_trace_joint_graph", "_recursive_joint_graph_passes")

PRE_GRAD_GRAPH = StageKind(
    "pre-grad-graph",
    "Pre-grad graph",
    "python",
    Role.GRAPH,
    2,
    part=Part.SHARED,
    names="dynamo",
    phases=("_recursive_pre_grad_passes",),
    is_compared=True,
    group=DYNAMO,
)
JOINT_GRAPH = StageKind(
    "joint-graph",
    "Joint graph (forward and backward)",
    "python",
    Role.GRAPH,
    3,
    short="Joint graph",
    part=Part.SHARED,
    names="aot",
    precedes_passes=True,
    phases=_JOINT_PHASES,
    is_compared=True,
    group=AOT_AUTOGRAD,
)
PARTITION = StageKind(
    "partition",
    "Partition into forward and backward",
    "plaintext",
    Role.PARTITION,
    aside="joint-graph",
    group=AOT_AUTOGRAD,
)
INFERENCE_GRAPH = StageKind(
    "inference-graph",
    "Inference graph",
    "python",
    Role.GRAPH,
    4,
    part=Part.INFERENCE,
    names="aot",
    versions_as="joint-graph",
    phases=(*_JOINT_PHASES, "aot_collect_metadata"),
    is_compared=True,
    takes_costs=True,
    group=AOT_AUTOGRAD,
)
FORWARD_GRAPH = StageKind(
    "forward-graph",
    "Forward graph",
    "python",
    Role.GRAPH,
    4,
    part=Part.FORWARD,
    names="aot",
    is_compared=True,
    takes_costs=True,
    group=AOT_AUTOGRAD,
)
BACKWARD_GRAPH = StageKind(
    "backward-graph",
    "Backward graph",
    "python",
    Role.GRAPH,
    4,
    part=Part.BACKWARD,
    names="aot",
    is_compared=True,
    group=AOT_AUTOGRAD,
)
COMPILED_AUTOGRAD_GRAPH = StageKind(
    "compiled-autograd-graph",
    "Graph of compiled autograd",
    "python",
    Role.GRAPH,
    1,
    short="Compiled autograd",
    part=Part.ACCUMULATED,
    names="dynamo",
    group=DYNAMO,
)
CACHE_KEY = StageKind(
    "cache-key", "Key in the FX graph cache", "plaintext", Role.FACTS, aside="post-grad-graph", group=INDUCTOR
)
AOT_CACHE_KEY = StageKind(
    "aot-cache-key",
    "Key in the AOTAutograd cache",
    "plaintext",
    Role.FACTS,
    aside="dynamo-graph",
    group=AOT_AUTOGRAD,
)
POST_GRAD_GRAPH = StageKind(
    "post-grad-graph",
    "Post-grad graph",
    "python",
    Role.GRAPH,
    5,
    names="aot",
    phases=("_recursive_post_grad_passes",),
    is_lowered=True,
    is_compared=True,
    group=INDUCTOR,
)
AUTOTUNING = StageKind("autotuning", "Autotuning", "plaintext", Role.TUNING, aside="ir-pre-fusion", group=INDUCTOR)
IR_PRE_FUSION = StageKind(
    "ir-pre-fusion",
    "Inductor IR before fusion",
    "python",
    Role.SCHEDULE,
    6,
    short="IR before fusion",
    phases=("GraphLowering.run",),
    group=INDUCTOR,
)
FUSION = StageKind("fusion", "Fusion decisions", "plaintext", Role.FUSION, aside="ir-post-fusion", group=INDUCTOR)
IR_POST_FUSION = StageKind(
    "ir-post-fusion",
    "Inductor IR after fusion",
    "python",
    Role.SCHEDULE,
    7,
    short="IR after fusion",
    phases=("Scheduler.__init__",),
    is_fused=True,
    group=INDUCTOR,
)
CUDA_GRAPHS = StageKind(
    "cuda-graphs", "CUDA graphs (prediction)", "plaintext", Role.FACTS, aside="output-code", group=INDUCTOR
)
MEMORY_PLAN = StageKind("memory-plan", "Memory plan", "plaintext", Role.MEMORY, aside="output-code", group=INDUCTOR)
MEMORY_FIT = StageKind(
    "memory-fit", "Memory on the target (prediction)", "plaintext", Role.FACTS, aside="output-code", group=INDUCTOR
)
OUTPUT_CODE = StageKind(
    "output-code",
    "Output code",
    "python",
    Role.CODE,
    8,
    phases=("Scheduler.codegen", "PythonWrapperCodegen.generate"),
    is_compared=True,
    group=INDUCTOR,
)
# Loading the output code is mostly waiting for its kernels to be compiled.
KERNEL = StageKind("kernel", "Kernel", "", Role.KERNEL, 9, phases=("PyCodeCache.load_by_key_path",))
TTIR_UNOPTIMIZED = StageKind(
    "ttir-unoptimized", "Triton IR before its passes", "mlir", Role.LOWERED, 11, short="Triton IR before passes"
)
PASSES = StageKind("passes", "Passes of the Triton compiler", "plaintext", Role.PASSES)
TTIR = StageKind("ttir", "Triton IR", "mlir", Role.LOWERED, 12)
TTGIR = StageKind("ttgir", "Triton GPU IR", "mlir", Role.LOWERED, 13)
LLIR = StageKind("llir", "LLVM IR", "llvm", Role.LOWERED, 14)
PTX = StageKind("ptx", "PTX", "ptx", Role.LOWERED, 15, is_machine_code=True)
AMDGCN = StageKind("amdgcn", "AMDGCN assembly", "asm", Role.LOWERED, 16, is_machine_code=True)
BINARY = StageKind("binary", "Binary", "json", Role.BINARY)
SASS = StageKind("sass", "SASS", "sass", Role.LOWERED, 17, is_machine_code=True)
ASSEMBLY = StageKind("assembly", "Assembly", "asm", Role.LOWERED, 10, is_machine_code=True)
VALUES = StageKind("values", "Values", "plaintext", Role.VALUES, group=OTHER_GROUP)
DIVERGENCE = StageKind("divergence", "Divergence", "plaintext", Role.DIVERGENCE, group=OTHER_GROUP)

BELOW_TRITON = (TTIR_UNOPTIMIZED, PASSES, TTIR, TTGIR, LLIR, PTX, AMDGCN, BINARY, SASS)
"""What is below a Triton kernel."""

STAGES = (
    *FIRST,
    PRE_GRAD_GRAPH,
    JOINT_GRAPH,
    PARTITION,
    INFERENCE_GRAPH,
    FORWARD_GRAPH,
    BACKWARD_GRAPH,
    COMPILED_AUTOGRAD_GRAPH,
    AOT_CACHE_KEY,
    CACHE_KEY,
    POST_GRAD_GRAPH,
    AUTOTUNING,
    IR_PRE_FUSION,
    FUSION,
    IR_POST_FUSION,
    CUDA_GRAPHS,
    MEMORY_PLAN,
    MEMORY_FIT,
    OUTPUT_CODE,
    KERNEL,
    *BELOW_TRITON,
    ASSEMBLY,
    PHASES,
    VALUES,
    DIVERGENCE,
)
