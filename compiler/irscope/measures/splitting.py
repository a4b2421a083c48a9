"""Divides what a kernel takes among the lines and modules that it computes, by a model: nothing measures inside a kernel.

A fused kernel's time is divided by what each node would take by itself: the greater of its bytes over the bandwidth and its
operations over the peak.  A library call or a template (matrix product, convolution, attention) belongs to its main
operation, less the time in which what is fused into it moves further bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from irscope.ir.nodes import Frame, NodeFacts
from irscope.ir.roofline import Peaks, dtype_of
from irscope.measures.tree import Path, PathPart
from irscope.protocol import Origin
from irscope.provenance.kernel_paths import Modules, frames_of, modules_of
from irscope.vocabulary.function_names import plain_name
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Part:
    """The nodes of a kernel that have one path.

    Args:
        seconds: By the model; without a device's peaks numbers in proportion to them.
        is_main: Whether it is the main operation of a template or a library call, which has what the others leave.
    """

    modules: Path
    frames: Path
    seconds: float
    is_main: bool = False


def parts_of(
    nodes: Sequence[NodeFacts], program: str, callers: Sequence[Origin], peaks: Peaks | None
) -> tuple[Part, ...]:
    """The parts of a kernel; one if nothing is known about its nodes.

    Args:
        program: The name of what was compiled, which is around all modules, or is itself the outermost one.
        callers: The lines that call its compiled code: the first is the outermost frame.
    """
    called = [frame_part(Frame(line.file, line.line, "")) for line in callers[:1]]
    if not nodes:
        return (Part((PathPart(program),), tuple(called), 1.0),)
    told = [node for node in nodes if node.stack or node.modules] or list(nodes)
    main = max((node for node in told if node.flops), key=lambda node: node.flops or 0, default=None)
    if main is None:
        seconds = [_seconds(node, peaks) for node in told]
        seconds = seconds if any(seconds) else [1.0] * len(told)
    else:
        seconds = [_extra_seconds(node, nodes, peaks) for node in told]
    return _by_path(told, seconds, main, program, called)


def _by_path(
    told: Sequence[NodeFacts],
    seconds: Sequence[float],
    main: NodeFacts | None,
    program: str,
    called: Sequence[PathPart],
) -> tuple[Part, ...]:
    """One part for each path of the nodes."""
    found: dict[tuple[Path, Path], Part] = {}
    for node, mine in zip(told, seconds, strict=True):
        if mine or node is main:
            path = (PathPart(program), *module_parts(modules_of(node))), (*called, *map(frame_part, frames_of(node)))
            known = found.get(path, Part(*path, 0.0))
            found[path] = Part(*path, known.seconds + mine, known.is_main or node is main)
    return tuple(found.values())


def shares_of(parts: Sequence[Part], seconds: float) -> list[float]:
    """The share of each part in a kernel that was measured to take this long; they add up to 1."""
    whole = sum(part.seconds for part in parts)
    if not any(part.is_main for part in parts):
        return [part.seconds / whole for part in parts]
    others = sum(part.seconds for part in parts if not part.is_main)
    whole = max(seconds, others)
    if not whole:
        return [float(part.is_main) for part in parts]
    return [(whole - others if part.is_main else part.seconds) / whole for part in parts]


def module_parts(modules: Modules) -> Path:
    """Modules in what was compiled as a path; each has its name from the one around it."""
    parts: list[PathPart] = []
    around = ""
    for path, kind in modules:
        if path:  # else it was compiled itself
            parts.append(PathPart(path.removeprefix(f"{around}.") if around else path, kind))
            around = path
    return tuple(parts)


def frame_part(frame: Frame) -> PathPart:
    """A call frame as a part of a path."""
    name = frame.file.replace("\\", "/").rpartition("/")[2]
    return PathPart(f"{name}:{frame.line}", plain_name(frame.function), frame.file, frame.line)


def _seconds(node: NodeFacts, peaks: Peaks | None) -> float:
    """The least that a node takes by itself."""
    if peaks is None:
        return float(max(0, node.moved or 0))
    least = peaks.least_seconds(node.moved, node.flops, dtype_of(node))
    return max(0.0, *(seconds for seconds in least if seconds is not None))


def _extra_seconds(node: NodeFacts, kernel: Sequence[NodeFacts], peaks: Peaks | None) -> float:
    """The time for the bytes that a node adds to a template: what it reads from outside the kernel."""
    if peaks is None or node.flops or not node.read:
        return 0.0
    inside = sum(other.value.bytes or 0 for other in kernel if other.name in node.inputs)
    return max(0, node.read - inside) / peaks.bandwidth
