"""``irscope/summary``: what a run compiled, what that cost, how it went and what to do first."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.findings.registry import kind_of
from irscope.findings.standing import standing_of
from irscope.profiling.run_trees import RUN_TREES
from irscope.protocol import Finding, Report
from irscope.store.costs import cost_words
from irscope.store.store import Store
from irscope.vocabulary import units

from irscope_server.base.compiled import standing_sentence
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place
from irscope_server.panels.answers import answer
from irscope_server.panels.findings import place_of
from irscope_server.panels.trees import MeasureTree, tree_answer
from irscope_server.stages.tree import UriOf

_MOST_CAUSES = 5


@dataclass(frozen=True)
class SummaryParams:
    """A run."""

    run: str


@dataclass(frozen=True)
class CauseRow:
    """A finding that is to be dealt with."""

    title: str
    message: str
    place: Place
    cost: str
    """What it costs, in words; empty if that is not known."""


@dataclass(frozen=True)
class SummaryResult:
    """A run on one page."""

    run: str
    standing: str
    """How the run went and what is next, in a sentence or two."""
    facts: tuple[str, ...]
    """What it cost as a whole: the run, the compile time, the step."""
    causes: tuple[CauseRow, ...]
    """What to do first, and then."""
    more_causes: int
    compiled: MeasureTree
    """Modules with their kernels, library calls, graphs, compile time, and the time of a step where there is a profile."""


async def summary(context: ReadContext, params: SummaryParams) -> Encoded:
    """Raises LookupError for an unknown run."""
    profiled = await context.archive.ask(lambda store: store.profile(params.run) is not None)

    def read(store: Store, report: Report) -> SummaryResult:
        return _result(store, report, context.uri_of)

    return await answer(context, ("summary", params.run, profiled), params.run, read)


def _result(store: Store, report: Report, uri_of: UriOf) -> SummaryResult:
    standing = standing_of(report)
    facts = [f"ran for {units.duration(report.outcome.seconds)}"]
    if standing.compile_seconds > 0:
        facts.append(f"compiled for {units.duration(standing.compile_seconds)}")
    return SummaryResult(
        report.run,
        standing_sentence(report),
        tuple(facts),
        tuple(_cause(finding, uri_of) for finding in standing.causes[:_MOST_CAUSES]),
        max(0, len(standing.causes) - _MOST_CAUSES),
        tree_answer(RUN_TREES["modules"](store, report), uri_of),
    )


def _cause(finding: Finding, uri_of: UriOf) -> CauseRow:
    return CauseRow(
        kind_of(finding.kind).label,
        finding.message,
        place_of(finding, uri_of),
        ", ".join(cost_words(finding.cost)),
    )


REQUEST = PanelRequest("irscope/summary", SummaryParams, SummaryResult, summary)
