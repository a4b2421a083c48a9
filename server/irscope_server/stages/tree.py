"""Runs, compiles, stages and kernels as the items that a client shows in a tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from irscope.pipelines.registry import group_of, group_position, role_of, stage_kind
from irscope.protocol import Compile, Kernel, Report, RunSummary, StageRef
from irscope.provenance import chain
from irscope.vocabulary.stages import KERNEL_GROUP, Role, StageGroup

from irscope_server.base import words
from irscope_server.base.results import CompileItem, KernelItem, Place, RunItem, RunTree, StageItem, StageOfCompile
from irscope_server.base.stage_uris import uri_of_stage

UriOf = Callable[[str], str]
TextOf = Callable[[str], str]
"""Text of a stage by its id."""


def run_item(run: RunSummary, uri_of: UriOf) -> RunItem:
    """A run in short; the outcome is None and the seconds are 0 during the run."""
    outcome = run.outcome
    return RunItem(
        run.run,
        run.script,
        uri_of(run.script),
        run.lane,
        run.pipeline,
        run.started,
        outcome.kind.value if outcome else None,
        outcome.message if outcome else "",
        outcome.seconds if outcome else 0.0,
        run.compiles,
        run.findings,
        run.kernels,
        run.rank,
        run.world,
    )


def run_tree(run: RunSummary, report: Report, uri_of: UriOf, text_of: TextOf) -> RunTree:
    """One run with all that it holds, but no texts."""
    report = report.whole
    kernels = _kernels_by_compile(report)
    return RunTree(
        run_item(run, uri_of),
        report.torch,
        tuple(
            _compile_item(report, compile, kernels.get(compile.id, ()), uri_of, text_of) for compile in report.compiles
        ),
        report.capture_gaps,
        0 if not report.ranks else report.world or len(report.ranks),
    )


def _kernels_by_compile(report: Report) -> dict[str, list[Kernel]]:
    kernels: dict[str, list[Kernel]] = {}
    for kernel in report.kernels:
        kernels.setdefault(kernel.compile, []).append(kernel)
    return kernels


def _compile_item(
    report: Report, compile: Compile, kernels: Iterable[Kernel], uri_of: UriOf, text_of: TextOf
) -> CompileItem:
    headings = Headings(compile.stages)
    # A version per pass is too much for a tree; kernels are listed by what they are.
    stages = [one for one in compile.stages if role_of(one.name) is not Role.KERNEL and not one.passed]
    items = kernel_items(report, kernels, uri_of, text_of)
    return CompileItem(
        compile.id,
        _title(compile),
        uri_of(compile.file),
        max(0, compile.line - 1),
        compile.outcome.value,
        compile.restarts,
        compile.graph_ops,
        compile.seconds,
        headings.titles(stages, bool(items)),
        tuple(stage_item(report.run, stage, headings) for stage in headings.in_order(stages)),
        items,
    )


def _title(compile: Compile) -> str:
    """What a prediction is listed as has its target."""
    return f"{compile.title} · {compile.target}" if compile.target else compile.title


def stage_item(run: str, stage: StageRef, headings: Headings, made: bool = True) -> StageItem:
    """A stage in short; `made` is false for one that is made on demand."""
    kind = stage_kind(stage.name)
    return StageItem(
        run,
        stage.id,
        stage.name,
        kind.role,
        kind.part,
        headings.of(stage),
        words.stage_title(stage),
        stage.language,
        stage.bytes,
        uri_of_stage(run, stage.id, stage.language),
        kind.is_drawn,
        stage.nodes,
        made,
    )


def stages_of(report: Report) -> tuple[StageOfCompile, ...]:
    """Every stage of a run in pipeline order, compile by compile, with the compile that it belongs to; after each
    kernel the stages that are made on request."""
    from irscope.lowering import could_be_made  # takes time to import, and few need it

    offered = could_be_made(report)
    found = []
    for compile in report.with_predictions:
        headings = Headings(compile.stages)
        for stage, made in _with_offered(headings.in_order(compile.stages), offered):
            if not stage.passed:
                item = vars(stage_item(report.run, stage, headings, made))
                found.append(StageOfCompile(**item, compile=compile.id, function=_title(compile)))
    return tuple(found)


def _with_offered(
    stages: Iterable[StageRef], offered: Mapping[str, Iterable[StageRef]]
) -> Iterator[tuple[StageRef, bool]]:
    """Stages, and whether each is made already."""
    for stage in stages:
        yield stage, True
        yield from ((ref, False) for ref in offered.get(stage.id, ()))


def kernel_items(report: Report, kernels: Iterable[Kernel], uri_of: UriOf, text_of: TextOf) -> tuple[KernelItem, ...]:
    """Kernels with the document that holds them, or that calls them where they are a library's."""
    languages = {stage.id: stage.language for compile in report.compiles for stage in compile.stages}
    return tuple(
        KernelItem(
            report.run,
            kernel.stage,
            kernel.name,
            kernel.language,
            kernel.compile,
            KERNEL_GROUP.title,
            uri_of_stage(report.run, kernel.stage, languages.get(kernel.stage, "")),
            0 if kernel.is_generated else call_line(text_of(kernel.stage), kernel.name),
            tuple(Place(uri_of(origin.file), max(0, origin.line - 1)) for origin in kernel.origins),
        )
        for kernel in kernels
    )


def call_line(code: str, name: str) -> int:
    """The 0-based line of output code that calls a library kernel; 0 if it is not found.

    The name is looked for as it is called (``extern_kernels.mm(``), then by its last part.
    """
    for wanted in (name, name.rsplit(".", 1)[-1]):
        pattern = re.compile(rf"(?<![\w.]){re.escape(wanted)}\(" if wanted == name else rf"\.{re.escape(wanted)}\(")
        for number, line in enumerate(code.split("\n")):
            if pattern.search(line) and not line.lstrip().startswith(("#", "def ", "import ", "from ")):
                return number
    return 0


def stage_named(report: Report, stage: str) -> tuple[Compile, StageRef]:
    """A stage and its compile.  Raises LookupError."""
    for compile in report.with_predictions:
        for ref in compile.stages:
            if ref.id == stage:
                return compile, ref
    raise LookupError(f"Run {report.run} has no stage {stage}.")


class Headings:
    """The headings of one compile: ``Dynamo``, ``Inductor, forward``."""

    def __init__(self, stages: Iterable[StageRef]) -> None:
        backward = (group_of(stage.name) for stage in stages if chain.is_backward(stage))
        self._both_sides = frozenset(group for group in backward if group.has_sides)

    def of(self, stage: StageRef) -> str:
        """The heading of a stage."""
        group, backward = self._key(stage)
        side = "" if group not in self._both_sides else ", backward" if backward else ", forward"
        return group.title + side

    def in_order(self, stages: Iterable[StageRef]) -> list[StageRef]:
        """The stages heading by heading; those of one heading keep their order."""
        return sorted(stages, key=self._order)

    def titles(self, stages: Sequence[StageRef], has_kernels: bool) -> tuple[str, ...]:
        """All headings in order; kernels have one even if none of them has its own stage."""
        order = {self.of(stage): self._order(stage) for stage in stages}
        if has_kernels:
            order.setdefault(KERNEL_GROUP.title, (group_position(KERNEL_GROUP), False))
        return tuple(sorted(order, key=lambda title: order[title]))

    def _key(self, stage: StageRef) -> tuple[StageGroup, bool]:
        group = group_of(stage.name)
        return group, group.has_sides and chain.is_backward(stage)

    def _order(self, stage: StageRef) -> tuple[int, bool]:
        group, backward = self._key(stage)
        return group_position(group), backward
