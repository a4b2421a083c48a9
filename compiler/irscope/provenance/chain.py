"""The order of the stages of a compile from source to machine code, and which of them follows which."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile, StageRef
from irscope.vocabulary.stages import KERNELS, Part, Role

_ENDS = (Role.SOURCE, Role.KERNEL, Role.LOWERED)


def rank(stage: StageRef) -> int | None:
    """How far down a stage is; None for one that is aside: guards, timings, the memory plan."""
    kind = stage_kind(stage.name)
    if kind.role is Role.LOWERED and f"/{KERNELS}" not in stage.id:
        return None
    return kind.rank


def is_backward(stage: StageRef) -> bool:
    """Whether it belongs to the lowering of the backward graph alone."""
    parts = stage.id.split("/")
    at = 3 if stage.target else 2  # below the compile, and of a prediction below its target
    part = parts[at] if len(parts) > at else stage.id
    return stage_kind(stage.name).part is Part.BACKWARD or "-backward" in part


def is_of_backward(stage: str) -> bool:
    """Whether a kernel's stage, by its ID, or the output code that calls it belongs to a backward."""
    return "-backward" in stage.rpartition("/")[0] or stage.rpartition("/")[2].startswith("output-code-backward")


def is_shared(stage: StageRef) -> bool:
    """Whether it is above the partition into forward and backward, or aside."""
    return rank(stage) is None or stage_kind(stage.name).part in (Part.SHARED, Part.ACCUMULATED)


def is_version(stage: StageRef) -> bool:
    """Whether it is a graph as one pass left it, which later passes change again."""
    return bool(getattr(stage, "passed", ""))


def is_descendant(version: StageRef, graph: StageRef) -> bool:
    """Whether a version was made of a graph, or of one that was, by steps that keep the names of nodes: the tracing of
    AOTAutograd, which makes the joint graph, does not."""
    kind, made = stage_kind(graph.name), stage_kind(version.name)
    above = stage_kind(kind.versions_as) if kind.versions_as else kind
    return (above.rank or 0) <= (made.rank or 0) and kind.names == made.names


def is_below_kernel(stage: StageRef) -> bool:
    """Whether a stage is one that a kernel was lowered to."""
    return stage_kind(stage.name).role is Role.LOWERED and rank(stage) is not None


def kernel_of(stage: StageRef) -> str:
    """Id of the kernel's stage that a stage belongs to: ``0/0/kernel/k`` of ``0/0/kernel/k/ttgir/12-pass``."""
    parts = stage.id.split("/")
    at = next((i for i, part in enumerate(parts) if part.startswith(KERNELS)), len(parts))
    return "/".join(parts[: at + 2])


def pipeline(compile: Compile, versions: bool = False, ends: bool = True) -> tuple[StageRef, ...]:
    """The stages of a compile on the way down, the forward's before the backward's.

    Args:
        versions: With the versions of graphs after each pass.
        ends: With the bytecode, and the texts of kernels and what is below them.
    """
    stages = [
        stage
        for stage in compile.stages
        if rank(stage) is not None
        and (versions or not is_version(stage))
        and (ends or stage_kind(stage.name).role not in _ENDS)
    ]
    return tuple(sorted(stages, key=lambda stage: (is_backward(stage), rank(stage))))


def suffix_of(stage: StageRef) -> str:
    """What tells a stage from others of its kind in a compile: ``-backward-2``; empty for the first."""
    return stage.id.rpartition("/")[2].removeprefix(stage.name)


def siblings(stages: Iterable[StageRef], stage: StageRef, role: Role) -> list[StageRef]:
    """The stages of a role that are about the same graph as another stage, on the way down."""
    base, suffix = stage.id.rpartition("/")[0], suffix_of(stage)
    found = [one for one in stages if stage_kind(one.name).role is role and one.id == f"{base}/{one.name}{suffix}"]
    return sorted(found, key=lambda one: rank(one) or 0)


def codes_by_folder(stages: Iterable[StageRef]) -> dict[str, StageRef]:
    """The programs that call kernels, each by what the IDs of its kernels' stages begin with (`folder_of`)."""
    return {
        f"{one.id.rpartition('/')[0]}/{KERNELS}{suffix_of(one)}": one
        for one in stages
        if stage_kind(one.name).role is Role.CODE
    }


def folder_of(kernel: str) -> str:
    """``0/0/kernel-backward`` of the stage ``0/0/kernel-backward/NAME``."""
    return kernel.rpartition("/")[0]


Level = tuple[StageRef, ...]
"""Stages that are side by side: the kernels of one output code."""


def tracks(stages: tuple[StageRef, ...]) -> tuple[tuple[Level, ...], ...]:
    """The ways down: one for the forward (or inference) graph, one for the backward; both begin at the source.

    Args:
        stages: As `pipeline` gives them.
    """
    found = []
    for backward in (False, True):
        own = [stage for stage in stages if not is_shared(stage) and is_backward(stage) == backward]
        shared = [stage for stage in stages if is_shared(stage)]
        if own or not backward:
            found.append(tuple(_levels([*shared, *own])))
    return tuple(found)


def _levels(stages: list[StageRef]) -> list[Level]:
    """Versions of a graph are their own levels, one below the other."""
    versioned = {stage.name for stage in stages if is_version(stage)}
    levels: dict[object, list[StageRef]] = {}
    for stage in stages:
        levels.setdefault(stage.id if stage.name in versioned else rank(stage), []).append(stage)
    return [tuple(level) for level in levels.values()]
