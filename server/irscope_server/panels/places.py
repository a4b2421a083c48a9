"""``irscope/step``: from a line of a stage to what it corresponds to in the stage before or behind."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from irscope.protocol import Report, StageRef
from irscope.provenance import SOURCE, Element, Provenance, chain
from irscope.store import Store

from irscope_server.documents import uri_of_stage
from irscope_server.messages import Encoded
from irscope_server.panels.answers import Reader, answer
from irscope_server.panels.subjects import line_as_ran
from irscope_server.tree import UriOf, stage_named
from irscope_server.wire import StepParams


@dataclass(frozen=True)
class StepResult:
    uri: str | None
    """Nothing at an end of the pipeline."""
    line: int
    stage: str | None
    """Nothing where the place is in the user's text."""
    exact: bool
    """Whether something there belongs to the line; else it is the stage's beginning."""
    reason: str


async def step(server: Reader, params: StepParams) -> Encoded:
    """Raises LookupError where there is no such run or stage, ValueError for a stage that is no part of the way."""

    path = server.path_of(params.uri) if params.uri else None
    lines = server.texts.lines(path) if path is not None else ()

    def read(store: Store, report: Report) -> StepResult:
        target: StageRef | None = stage_named(report, params.target)[1] if params.target else None
        if path is not None:
            if target is None:
                raise ValueError("From the user's text one steps to a stage that is named.")
            provenance = _provenance(store, report, chain.is_version(target))
            line = line_as_ran(store.sources(report.run).get(path, ""), lines, params.line)
            found = provenance.below(provenance.source(path, line + 1)).get(target.id)
            uri = uri_of_stage(report.run, target.id, target.language)
            return StepResult(uri, found[0].line - 1 if found else 0, target.id, bool(found), "")
        compile, stage = stage_named(report, params.stage)
        versions = chain.is_version(stage) or (target is not None and chain.is_version(target))
        provenance = _provenance(store, report, versions)
        if target is None:
            target = _neighbour(provenance.pipeline(compile.id), stage, params.by)
            if target is None and params.by < 0:
                return _to_source(provenance, stage, params.line, server.uri_of)
        if target is None:
            return StepResult(None, 0, None, False, "This is the last stage of this compile.")
        element = provenance.at(stage.id, params.line + 1)
        other = None if element is None else _counterpart(provenance, element, target.id)
        uri = uri_of_stage(report.run, target.id, target.language)
        return StepResult(uri, other.line - 1 if other else 0, target.id, other is not None, "")

    key = ("step", params.run, params.uri, params.stage, params.line, params.by, params.target)
    return await answer(server, key, params.run, read)


_last: weakref.WeakKeyDictionary[Store, tuple[Report, bool, Provenance]] = weakref.WeakKeyDictionary()


def _provenance(store: Store, report: Report, versions: bool) -> Provenance:
    """The newest one is kept: steps follow each other, and most of its time goes into reading the stages."""
    known = _last.get(store)
    if known is None or known[0] is not report or known[1] != versions:
        known = _last[store] = (report, versions, Provenance(store, report, versions))
    return known[2]


def _neighbour(pipeline: tuple[StageRef, ...], stage: StageRef, by: int) -> StageRef | None:
    """The stage before or behind; kernels and what is below them count as one, and the backward begins at what it shares."""
    for levels in chain.tracks(pipeline):
        for number, level in enumerate(levels):
            if any(one.id == stage.id for one in level):
                other = number + (1 if by > 0 else -1)
                if not 0 <= other < len(levels):
                    return None
                near = levels[other]
                return next((one for one in near if chain.kernel_of(one) == chain.kernel_of(stage)), near[0])
    raise ValueError("This stage is no part of the way from source to machine code.")


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
