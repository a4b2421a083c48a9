"""``irscope/comparison``: what several pipelines made of one script, from the newest comparison that is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

from irscope.comparing.pipelines import Comparison, Figure, Left, PipelineFigures, Timing
from irscope.protocol import Report, from_json
from irscope.store.store import Store

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.panels.answers import answer, place_uri
from irscope_server.stages.tree import UriOf

_MOST_PIPELINES = 50
_MOST_LEFT = 200
"""Places in an answer, of each pipeline and kind."""


@dataclass(frozen=True)
class ComparisonParams:
    """A run; the comparison is the one that contains it, else the newest one of its script."""

    run: str


@dataclass(frozen=True)
class ComparedPlace:
    """Something that a pipeline did not take, or warned of, with the reason; its place has an empty URI if it has none."""

    what: str
    why: str
    place: Place


@dataclass(frozen=True)
class ComparedStage:
    """A stage of a pipeline's run, and the document that shows it."""

    compile: str
    title: str
    uri: str


@dataclass(frozen=True)
class ComparedPipeline:
    """What one pipeline made of the script."""

    pipeline: str
    title: str
    run: str
    """The run's ID; empty if the run could not begin."""
    problem: str
    """Why the script did not come to its end with it."""
    operators: Figure
    taken: Figure
    """The operators that are in the last stage."""
    fused: Figure
    """The operators that share a kernel, or an operation of the last stage, with another one."""
    kernels: Figure
    library_calls: Figure
    moved_bytes: Figure
    compile_seconds: Figure
    call: Timing
    eager: Timing
    difference: Figure
    """The largest absolute difference to eager."""
    relative_difference: Figure
    gone: tuple[ComparedPlace, ...]
    """Operators that are not in the last stage."""
    left: tuple[ComparedPlace, ...]
    """What runs as Python, and what was warned of."""
    stages: tuple[ComparedStage, ...]
    """On the way down, of the runs that are still in the store."""


@dataclass(frozen=True)
class ComparisonResult:
    """A comparison of pipelines; without one `reason` says what to do."""

    run: str
    script: str
    pipelines: tuple[ComparedPipeline, ...]
    reason: str


_NONE = (
    "No pipelines of this script were compared yet. Compare them with IRScope: Compare Pipelines… or irscope compare."
)

_UNREADABLE = "The stored comparison cannot be read. Compare the pipelines again."


async def comparison(context: ReadContext, params: ComparisonParams) -> Encoded:
    """Raises LookupError for an unknown run."""
    report = await context.archive.report(params.run)

    def find(store: Store) -> str | None:
        return params.run if store.comparison(params.run) is not None else store.newest_compared(report.script)

    compared = await context.archive.ask(find)

    def read(store: Store, report: Report) -> ComparisonResult:
        if compared is None:
            return ComparisonResult(params.run, report.script, (), _NONE)
        try:
            found = from_json(Comparison, store.comparison(compared))
        except (KeyError, ValueError):  # of another version, or from elsewhere
            return ComparisonResult(params.run, report.script, (), _UNREADABLE)
        pipelines = tuple(_pipeline(store, one, context.uri_of) for one in found.pipelines[:_MOST_PIPELINES])
        return ComparisonResult(params.run, found.script, pipelines, "")

    return await answer(context, ("comparison", params.run, compared), params.run, read)


def _pipeline(store: Store, one: PipelineFigures, uri_of: UriOf) -> ComparedPipeline:
    return ComparedPipeline(
        one.pipeline,
        one.title,
        one.run,
        one.problem,
        _figure(one.operators),
        _figure(one.taken),
        _figure(one.fused),
        _figure(one.kernels),
        _figure(one.library_calls),
        _figure(one.moved_bytes),
        _figure(one.compile_seconds),
        one.call,
        one.eager,
        _figure(one.difference),
        _figure(one.relative_difference),
        tuple(_place(left, uri_of) for left in one.gone[:_MOST_LEFT]),
        tuple(_place(left, uri_of) for left in one.left[:_MOST_LEFT]),
        _stages(store, one),
    )


def _stages(store: Store, one: PipelineFigures) -> tuple[ComparedStage, ...]:
    try:
        compiles = store.report(one.run).compiles
    except LookupError:  # it was pruned, or there was none
        return ()
    wanted = set(one.stages)
    return tuple(
        ComparedStage(compile.id, words.stage_title(stage), uri_of_stage(one.run, stage.id, stage.language))
        for compile in compiles
        for stage in compile.stages
        if stage.id in wanted
    )


def _figure(figure: Figure) -> Figure:
    if figure.value is not None and not math.isfinite(figure.value):  # JSON has no such number
        return Figure(None, "It is not a number." if math.isnan(figure.value) else "It is infinite.")
    return figure


def _place(left: Left, uri_of: UriOf) -> ComparedPlace:
    return ComparedPlace(left.what, left.why, Place(place_uri(uri_of, left.file), max(0, left.line - 1)))


REQUEST = PanelRequest("irscope/comparison", ComparisonParams, ComparisonResult, comparison)
