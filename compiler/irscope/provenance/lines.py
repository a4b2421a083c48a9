"""From a line of the source to what it became: nodes in each graph stage, scheduler nodes, kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from irscope.ir.graphs import GraphNode, inner_nodes, read_nodes
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Kernel, Origin, Report
from irscope.provenance import chain
from irscope.provenance.kernels import output_code_of
from irscope.provenance.trails import reached
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role


@dataclass(frozen=True)
class StageElement:
    """Something in a stage's text: a node, a scheduler node, the definition or a call of a kernel.

    Args:
        fate: Why it became nothing further down, in words; empty if it became something, or no reason is known.
    """

    name: str
    line: int
    end_line: int
    fate: str = ""


@dataclass(frozen=True)
class LineStep:
    """What one stage has of the line: its ID and its name; ``nodes`` where it is a graph."""

    stage: str
    name: str
    nodes: tuple[GraphNode, ...]
    places: tuple[StageElement, ...] = ()


@dataclass(frozen=True)
class CalledCompile:
    """A compile that a line calls, or whose backward it runs, with the kernels of that."""

    compile: str
    title: str
    is_backward: bool
    kernels: tuple[Kernel, ...]


@dataclass(frozen=True)
class LineTrail:
    """Everything that came from a line: its part of each stage, its kernels, and the compiles that it calls."""

    steps: tuple[LineStep, ...]
    kernels: tuple[Kernel, ...]
    called: tuple[CalledCompile, ...] = ()


def trail_of(store: Store, report: Report, file: str, line: int, most: int | None = None) -> LineTrail:
    """All that came from a line in one run, along the pipeline of each compile.

    Args:
        most: At most this many ``nodes`` of each stage; all if None.  ``places`` has all in any case.
    """
    names = {stage.id: stage.name for compile in report.compiles for stage in compile.stages}
    steps = []
    called: set[tuple[str, str]] = set()
    for stage, (elements, known) in reached(store, report, file, line).items():
        if role_of(names[stage]) is Role.CODE:
            called.update((stage, element.name.rpartition(":")[0] or element.name) for element, _ in elements)
        nodes: tuple[GraphNode, ...] = ()
        if stage_kind(names[stage]).is_graph:
            wanted = {element.name: element.line for element, _ in elements}
            nodes = read_nodes(store.stage_text(report.run, stage), wanted, known, most)
        places = tuple(StageElement(element.name, element.line, element.end_line, why) for element, why in elements)
        steps.append(LineStep(stage, names[stage], nodes, places))
    if not any(step.nodes for step in steps):
        steps = [*_inner_steps(store, report, Origin(file, line), most), *steps]
    launched = {step.stage for step in steps if role_of(names[step.stage]) is Role.KERNEL}
    origin = Origin(file, line)
    return LineTrail(tuple(steps), _kernels_of(report, origin, called, launched), tuple(_called_from(report, origin)))


def _inner_steps(store: Store, report: Report, line: Origin, most: int | None) -> Iterator[LineStep]:
    """What is of a line in the graphs that higher-order operators run (``torch.cond``, ``scan``)."""
    for compile in report.compiles:
        for stage in compile.stages:
            if not stage_kind(stage.name).is_graph or stage.passed:
                continue
            nodes: tuple[GraphNode, ...] = ()
            with contextlib.suppress(ValueError):  # not the text of a graph
                nodes = inner_nodes(store.stage_text(report.run, stage.id))
            mine = [node for node in nodes if node.origin == line]
            if mine:
                places = tuple(StageElement(node.name, node.line, node.line) for node in mine)
                yield LineStep(stage.id, stage.name, tuple(mine[:most]), places)


def _called_from(report: Report, line: Origin) -> Iterator[CalledCompile]:
    for compile in report.compiles:
        for is_backward, callers in enumerate((compile.callers, compile.backward_callers)):
            if line in callers:
                mine = [kernel for kernel in report.kernels if kernel.compile == compile.id]
                sides = tuple(kernel for kernel in mine if chain.is_of_backward(kernel.stage) is bool(is_backward))
                yield CalledCompile(compile.id, compile.title, bool(is_backward), sides)


def _kernels_of(report: Report, origin: Origin, called: set[tuple[str, str]], launched: set[str]) -> tuple[Kernel, ...]:
    """The kernels that are of a line, called there or launched from it."""
    codes = chain.codes_by_folder(stage for compile in report.compiles for stage in compile.stages)
    return tuple(
        kernel
        for kernel in report.kernels
        if origin in kernel.origins
        or any(origin.file == part.file and origin.line in part.lines for part in kernel.lines)
        or (output_code_of(codes, kernel), kernel.name) in called
        or kernel.stage in launched
    )
