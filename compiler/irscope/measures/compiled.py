"""What a run compiled, as a tree of modules: graphs, kernels, compile time, and a step's time in kernels if it was measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from irscope.measures.tree import Measure, PathPart, PathTree, tree_of
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile, Report
from irscope.provenance.kernel_groups import without_numbers

MEASURES = (
    Measure("kernels", "count"),
    Measure("library calls", "count"),
    Measure("graphs", "count"),
    Measure("compile time", "seconds"),
)
STEP = Measure("time in kernels", "seconds")
_PARTS = re.compile(r"[^.]+(?:\.\d+)*")
"""A module's name in a path, with the number that it has in a list: ``layers.0``."""


def compiled_tree(report: Report, step: PathTree | None = None) -> PathTree:
    """What was compiled.

    Args:
        step: The measured time of a step by module, if there is a profile of the run.
    """
    titles = {compile.id: compile.title for compile in report.compiles}
    kinds = {(titles.get(one.compile, ""), one.module): one.module_class for one in report.kernels if one.module_class}
    timed = list(_timed(step))
    kinds.update({(title, module): kind for title, module, kind, _ in timed if kind})
    values: dict[tuple[str, str], list[float]] = {}

    def add(title: str, module: str, column: int, value: float) -> None:
        row = values.setdefault((title, module), [0.0] * (len(MEASURES) + bool(step)))
        row[column] += value

    for compile in report.compiles:
        add(compile.title, "", 2, has_graph(compile))
        add(compile.title, "", 3, compile.seconds)
    for kernel in report.kernels:
        add(titles.get(kernel.compile, ""), kernel.module, *((0, 1) if kernel.is_generated else (1, kernel.calls)))
    for title, module, _, seconds in timed:
        add(title, module, len(MEASURES), seconds)
    measures = (*MEASURES, *([STEP] if step else []))
    places = {compile.title: (compile.file, compile.line) for compile in reversed(report.compiles)}
    classes = _Classes(kinds)
    rows = {
        (PathPart(title, "", *places.get(title, ("", 0))), *classes.parts(title, module)): row
        for (title, module), row in values.items()
    }
    return tree_of("this run", measures, rows)


class _Classes:
    """Classes of modules.  Of layers that repeat those that are not known are taken to be of the class of the others, if
    these are of one."""

    def __init__(self, known: Mapping[tuple[str, str], str]) -> None:
        self._known = known
        self._of_layers: dict[tuple[str, str], set[str]] = {}
        for (title, module), kind in known.items():
            self._of_layers.setdefault((title, without_numbers(module)), set()).add(kind)

    def parts(self, title: str, module: str) -> Iterator[PathPart]:
        """A module's path, each part with its class."""
        path = ""
        for part in module_parts(module):
            path = f"{path}.{part.name}" if path else part.name
            alike = self._of_layers.get((title, without_numbers(path)), set())
            yield part._replace(kind=self._known.get((title, path)) or (next(iter(alike)) if len(alike) == 1 else ""))


def module_parts(module: str) -> Iterator[PathPart]:
    """The parts of a module's path: ``model``, ``layers.0``, ``norm``."""
    return (PathPart(found[0]) for found in _PARTS.finditer(module))


def has_graph(compile: Compile) -> bool:
    """Whether a compile gave a graph."""
    return compile.graph_ops > 0 or any(stage_kind(stage.name).is_captured for stage in compile.stages)


def _timed(step: PathTree | None) -> Iterator[tuple[str, str, str, float]]:
    """What was compiled, the path of a module in it, its class, and its own seconds of a step."""
    names: list[tuple[str, ...]] = []
    for node in step.nodes if step is not None else ():
        names.append((*names[node.parent], node.name) if node.parent >= 0 else ())
        if names[-1]:
            title, *modules = names[-1]
            yield title, ".".join(modules), node.kind if modules else "", node.exclusive[0]
