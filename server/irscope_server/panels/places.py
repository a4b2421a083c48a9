"""``irscope/step``: from a line of a stage to what it corresponds to in the stage before or after."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from irscope.pipelines.registry import role_of
from irscope.protocol import Compile, OutcomeKind, Report, StageRef
from irscope.provenance import SOURCE, Element, Provenance, chain
from irscope.store.store import Store
from irscope.usercode.reading import name_among

from irscope_server.base.archive import Archive
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.panels.answers import answer
from irscope_server.panels.subjects import line_as_ran
from irscope_server.stages.tree import UriOf, stage_named


@dataclass(frozen=True)
class StepParams:
    """A step from a line of a stage (`stage`), or of the user's text as it is now (`uri`), to the next stage (`by` 1), the
    one before (`by` -1) or the stage `target`.  Before the first stage is the user's line."""

    run: str
    stage: str = ""
    uri: str = ""
    line: int = 0
    by: int = 1
    target: str = ""


@dataclass(frozen=True)
class StepResult:
    """The place that a step leads to; `reason` says in words why there is none."""

    uri: str | None
    """None at an end of the pipeline."""
    line: int
    stage: str | None
    """None if the place is in the user's text."""
    exact: bool
    """Whether something there belongs to the line; else it is the stage's beginning."""
    reason: str
    alike: bool = False
    """Whether it is a stage that is written like the one before it: the two can be compared line by line."""


async def step(context: ReadContext, params: StepParams) -> Encoded:
    """Raises LookupError for an unknown run or stage, ValueError for a stage that is not part of the way."""

    path = context.path_of(params.uri) if params.uri else None
    lines = context.texts.lines(path) if path is not None else ()

    def read(store: Store, report: Report) -> StepResult:
        target: StageRef | None = stage_named(report, params.target)[1] if params.target else None
        if path is not None:
            if target is None:
                raise ValueError("From the user's text one steps to a stage that is named.")
            compile, _ = stage_named(report, target.id)
            provenance = _provenance(context.archive, store, report, compile, chain.is_version(target))
            sources = store.sources(report.run)
            file = name_among(sources, path)
            line = line_as_ran(sources.get(file, ""), lines, params.line)
            return _from_source(provenance, report, provenance.source(file, line + 1), target)
        compile, stage = stage_named(report, params.stage)
        versions = chain.is_version(stage) or (target is not None and chain.is_version(target))
        provenance = _provenance(context.archive, store, report, compile, versions)
        if target is None:
            target = _neighbour(provenance.pipeline(compile.id), stage, params.by)
            if target is None and params.by < 0:
                return _to_source(provenance, stage, params.line, context.uri_of)
        if target is None:
            return StepResult(None, 0, None, False, "This is the last stage of this compile.")
        found = _to_stage(provenance, report, provenance.at(stage.id, params.line + 1), target)
        is_alike = stage.language == target.language and role_of(stage.name) is role_of(target.name)
        return dataclasses.replace(found, alike=is_alike)

    text = hash(tuple(lines))  # a line of the user's text is one of the text as it is now
    key = ("step", text, params.run, params.uri, params.stage, params.line, params.by, params.target)
    return await answer(context, key, params.run, read)


def _to_stage(provenance: Provenance, report: Report, element: Element | None, target: StageRef) -> StepResult:
    """The place in a stage that belongs to an element of another one, in the first stage like the wanted one that has it."""
    other = None
    for alike in _alike(provenance, report, target):
        if element is not None and (other := _counterpart(provenance, element, alike.id)) is not None:
            target = alike
            break
    uri = uri_of_stage(report.run, target.id, target.language)
    return StepResult(uri, other.line - 1 if other else 0, target.id, other is not None, "")


def _from_source(provenance: Provenance, report: Report, source: Element, target: StageRef) -> StepResult:
    """The place in a stage that came from a line of the user's, in the first stage like the wanted one that has it."""
    below = provenance.below(source)
    target = next((alike for alike in _alike(provenance, report, target) if alike.id in below), target)
    uri = uri_of_stage(report.run, target.id, target.language)
    line = below[target.id][0].line - 1 if target.id in below else 0
    return StepResult(uri, line, target.id, target.id in below, "")


def _provenance(archive: Archive, store: Store, report: Report, compile: Compile, versions: bool) -> Provenance:
    """The provenance of one compile alone.  The newest is kept: steps follow each other, and most of its time goes
    into reading stages."""
    key = (report.run, compile.id, versions)
    found: Provenance | None
    known, found = archive.remembered.get("provenance", ((), None))
    ended = report.outcome.kind is not OutcomeKind.CANCELLED  # which is also what a run that goes on looks like
    if found is None or known != key or not ended:
        found = Provenance(store, dataclasses.replace(report, compiles=(compile,)), versions)
        archive.remembered["provenance"] = key, found
    found.read_from(store)
    return found


def _neighbour(pipeline: tuple[StageRef, ...], stage: StageRef, by: int) -> StageRef | None:
    """The stage before or after.  Kernels and what is below them count as one; the backward begins at what it shares."""
    for levels in chain.tracks(pipeline):
        for number, level in enumerate(levels):
            if any(one.id == stage.id for one in level):
                other = number + (1 if by > 0 else -1)
                if not 0 <= other < len(levels):
                    return None
                near = levels[other]
                return next((one for one in near if chain.kernel_of(one) == chain.kernel_of(stage)), near[0])
    raise ValueError("This stage is not on the way from source to machine code.")


def _alike(provenance: Provenance, report: Report, target: StageRef) -> list[StageRef]:
    """A stage and those that are beside it: a place that leads to kernels need not lead to the first one."""
    compile, _ = stage_named(report, target.id)
    others = [
        one
        for level in chain.tracks(provenance.pipeline(compile.id))
        for near in level
        if any(each.id == target.id for each in near)
        for one in near
        if one.name == target.name and one.id != target.id and not one.passed
    ]
    return [target, *dict.fromkeys(others)]


def _to_source(provenance: Provenance, stage: StageRef, line: int, uri_of: UriOf) -> StepResult:
    element = provenance.at(stage.id, line + 1)
    origins = provenance.origins(element) if element is not None else ()
    if not origins:
        return StepResult(None, 0, None, False, "This is the first stage of this compile.")
    return StepResult(uri_of(origins[0].file), max(0, origins[0].line - 1), None, True, "")


def _counterpart(provenance: Provenance, element: Element, target: str) -> Element | None:
    """What an element became in a stage, or came from there, else what came from the same line of the user."""
    if element.stage == target:
        return element
    if found := provenance.below(element).get(target):
        return found[0]
    seen = {element}
    todo = [element]
    while todo:
        for parent in provenance.parents(todo.pop(0)):
            if parent.stage == target:
                return parent
            if parent not in seen and parent.stage != SOURCE:
                seen.add(parent)
                todo.append(parent)
    for origin in provenance.origins(element):
        if found := provenance.below(provenance.source(origin.file, origin.line)).get(target):
            return found[0]
    return None


REQUEST = PanelRequest("irscope/step", StepParams, StepResult, step)
