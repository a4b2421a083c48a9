"""The order of the stages of a compile from source to machine code, and which of them follows which."""

from __future__ import annotations

from irscope.protocol import Compile, StageRef

_RANKS = {
    "bytecode": 0,
    "dynamo-graph": 1,
    "compiled-autograd-graph": 1,
    "pre-grad-graph": 2,
    "joint-graph": 3,
    "inference-graph": 4,
    "forward-graph": 4,
    "backward-graph": 4,
    "post-grad-graph": 5,
    "ir-pre-fusion": 6,
    "ir-post-fusion": 7,
    "output-code": 8,
    "kernel": 9,
}
BELOW_KERNELS = ("assembly", "ttir-unoptimized", "ttir", "ttgir", "llir", "ptx", "amdgcn", "sass")


def rank(stage: StageRef) -> int | None:
    """How far down a stage is; nothing for one that is no part of the way: guards, timings, the memory plan."""
    if stage.name in BELOW_KERNELS and "/kernel" in stage.id:
        return 10 + BELOW_KERNELS.index(stage.name)
    return _RANKS.get(stage.name)


def is_backward(stage: StageRef) -> bool:
    """Whether it belongs to the lowering of the backward graph alone."""
    part = stage.id.split("/")[2] if stage.id.count("/") >= 2 else stage.id
    return stage.name == "backward-graph" or "-backward" in part


def is_shared(stage: StageRef) -> bool:
    """Whether it stands above the partition into forward and backward."""
    return (rank(stage) or 0) <= _RANKS["joint-graph"]


def is_version(stage: StageRef) -> bool:
    """Whether it is a graph as one pass left it, which later passes change again."""
    return bool(getattr(stage, "passed", ""))


def is_descendant(version: StageRef, graph: StageRef) -> bool:
    """Whether a version was made of a graph, or of one that was, by steps that keep the names of nodes: the tracing of
    AOTAutograd, which makes the joint graph, does not."""
    traced = _RANKS["joint-graph"]
    above, below = rank(graph) or 0, _RANKS.get(version.name, 0)
    if graph.name == "inference-graph":
        above = traced  # what changes it before it is lowered is called versions of a joint graph
    return above <= below and (above < traced) == (below < traced)


def is_traced(graph: StageRef) -> bool:
    """Whether AOTAutograd made it, or it came after that."""
    return (rank(graph) or 0) >= _RANKS["joint-graph"]


def is_below_kernel(stage: StageRef) -> bool:
    return (rank(stage) or 0) > _RANKS["kernel"]


def kernel_of(stage: StageRef) -> str:
    """Id of the kernel's stage that a stage belongs to: ``0/0/kernel/k`` of ``0/0/kernel/k/ttgir/12-pass``."""
    parts = stage.id.split("/")
    at = next((i for i, part in enumerate(parts) if part.startswith("kernel")), len(parts))
    return "/".join(parts[: at + 2])


def pipeline(compile: Compile, versions: bool = False, ends: bool = True) -> tuple[StageRef, ...]:
    """The stages of a compile on the way down, the forward's before the backward's.

    Parameters
    ----------
    versions
        With the versions of graphs after each pass.
    ends
        With the bytecode, and the texts of kernels and what is below them.
    """
    stages = [
        stage
        for stage in compile.stages
        if (at := rank(stage)) is not None
        and (versions or not is_version(stage))
        and (ends or _RANKS["dynamo-graph"] <= at <= _RANKS["output-code"])
    ]
    return tuple(sorted(stages, key=lambda stage: (is_backward(stage), rank(stage))))


Level = tuple[StageRef, ...]
"""Stages that stand side by side: the kernels of one output code."""


def tracks(stages: tuple[StageRef, ...]) -> tuple[tuple[Level, ...], ...]:
    """The ways down: one for the forward (or inference) graph, one for the backward; both begin at the source.

    Parameters
    ----------
    stages
        As `pipeline` gives them.
    """
    found = []
    for backward in (False, True):
        own = [stage for stage in stages if not is_shared(stage) and is_backward(stage) == backward]
        shared = [stage for stage in stages if is_shared(stage)]
        if own or not backward:
            found.append(tuple(_levels([*shared, *own])))
    return tuple(found)


def _levels(stages: list[StageRef]) -> list[Level]:
    """Versions of a graph are levels of their own, one below the other."""
    versioned = {stage.name for stage in stages if is_version(stage)}
    levels: dict[object, list[StageRef]] = {}
    for stage in stages:
        levels.setdefault(stage.id if stage.name in versioned else rank(stage), []).append(stage)
    return [tuple(level) for level in levels.values()]
