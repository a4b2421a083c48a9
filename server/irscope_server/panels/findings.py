"""``irscope/findings``: what a run found, grouped by cause, with what each cost; what costs most comes first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Literal, cast

from irscope.driver.fixing.candidates import Tried
from irscope.driver.hints import Standing, TriedHint, tried_hints
from irscope.findings.kinds import rank_divergence
from irscope.findings.registry import kind_of
from irscope.protocol import Finding, Lane, Report, Severity
from irscope.store.store import Store
from irscope.vocabulary.units import ranks_named

from irscope_server.base import words
from irscope_server.base.compiled import standing_sentence
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place
from irscope_server.base.texts import split_lines
from irscope_server.panels.answers import answer, place_uri
from irscope_server.panels.ranks import all_ranks
from irscope_server.stages.tree import UriOf

HiddenBy = Literal["", "ignored", "baseline", "off"]
Hidden = Mapping[tuple[object, ...], str]
"""HiddenBy a finding is not shown in the source (a `HiddenBy`), by its cause."""

Wishes = Callable[[Report, Lane, Mapping[str, list[str]]], Hidden]
"""What the user's settings and comments hide of a report; gets the texts as they ran, by path."""

Severities = Callable[[str], Mapping[str, str]]
"""The severities that the user wants for the findings of a script, by code or kind."""

TriedOf = Callable[[Finding], Tried | None]
"""What was tried for a finding; None if nothing was."""

_ORDER = [Severity.ERROR, Severity.WARNING, Severity.INFORMATION, Severity.HINT]


@dataclass(frozen=True)
class FindingsParams:
    """The id of the run whose findings are asked for."""

    run: str


@dataclass(frozen=True)
class FindingPlace:
    """One place of a finding, with what it cost there."""

    uri: str
    line: int
    code: str
    """The line as it ran; empty if it is not known."""
    message: str
    count: int
    compiles: tuple[str, ...]
    seconds: float
    graphs: int
    fixes: int
    hidden: HiddenBy
    """Why it is not shown in the source; empty for what is shown."""
    ranks: str
    """``all ranks``, ``rank 1`` or ``ranks 0, 3-7``; empty for a run of one process."""


@dataclass(frozen=True)
class FindingHint:
    """A hint, with what is said of its trial; empty if no hint of the finding was tried."""

    text: str
    said: str
    helps: bool | None
    """None if that is not known."""


@dataclass(frozen=True)
class FindingGroup:
    """All findings of one cause, with their cost in seconds together."""

    kind: str
    code: str
    title: str
    severity: Severity
    message: str
    """The message of its first place."""
    explanation: str
    hints: tuple[FindingHint, ...]
    """What helps first."""
    link: str | None
    count: int
    seconds: float
    costs_every_call: bool
    """It costs no compile time, but from then on calls run as plain Python.  By cost it comes first."""
    graphs: int
    fixes: int
    places: tuple[FindingPlace, ...]


@dataclass(frozen=True)
class FindingsResult:
    """The findings of a run, by cause."""

    run: str
    pipeline: str
    """The name of the pipeline that the run's programs went through."""
    lane: str
    groups: tuple[FindingGroup, ...]
    seconds: float
    """The seconds of all compiles together."""
    standing: str
    """How the run went and what is next, in a sentence or two."""


async def findings(
    context: ReadContext,
    params: FindingsParams,
    wishes: Wishes,
    severities: Severities,
    tried_of: TriedOf = lambda finding: None,
) -> Encoded:
    """What a run found.

    Args:
        wishes: Says why findings are not shown in the source.
        severities: Gives those that the user wants for a script, by code or kind.
        tried_of: Gives what was tried for a finding of the run.

    Raises LookupError for an unknown run.
    """
    texts = await context.archive.ask_aside(
        lambda store: {file: split_lines(text) for file, text in store.sources(params.run).items()}
    )
    lane = await context.archive.ask(lambda store: store.lane_of(params.run))
    report = await context.archive.report(params.run)
    hidden = wishes(report, lane, texts)
    wanted = severities(report.script)
    tried = {finding.cause: tried_of(finding) for finding in report.findings}
    key = (
        "findings",
        params.run,
        tuple(sorted(map(repr, hidden.items()))),
        tuple(sorted(wanted.items())),
        tuple(tried.items()),
    )

    def read(_: Store, report: Report) -> FindingsResult:
        return _result(report, lane, texts, hidden, wanted, context.uri_of, lambda finding: tried[finding.cause])

    return await answer(context, key, params.run, read)


def _result(
    report: Report,
    lane: Lane,
    texts: Mapping[str, list[str]],
    hidden: Hidden,
    wanted: Mapping[str, str],
    uri_of: UriOf,
    tried_of: TriedOf,
) -> FindingsResult:
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.findings:
        groups.setdefault((finding.kind, finding.code), []).append(finding)
    named = functools.partial(_ranks, everyone=all_ranks(report.ranks), members=report.members)
    found = [_group(mine, texts, hidden, wanted, uri_of, named, tried_of) for mine in groups.values()]
    found.sort(key=lambda group: (not group.costs_every_call, -group.seconds, -group.count))
    return FindingsResult(
        report.run,
        report.pipeline,
        lane.value,
        tuple(found),
        round(sum(compile.seconds for compile in report.compiles), 6),
        standing_sentence(report),
    )


def _group(
    mine: list[Finding],
    texts: Mapping[str, list[str]],
    hidden: Hidden,
    wanted: Mapping[str, str],
    uri_of: UriOf,
    ranks_of: Callable[[Finding], str],
    tried_of: TriedOf,
) -> FindingGroup:
    # What follows from another one comes after it, whatever it cost.
    ordered = sorted(mine, key=lambda one: (one.follows is not None, -one.cost.step_seconds, -one.cost.seconds))
    first = ordered[0]
    severity = min((finding.severity for finding in mine), key=_ORDER.index)
    chosen = wanted.get(first.code, wanted.get(first.kind, severity))
    kind = kind_of(first.kind)
    return FindingGroup(
        first.kind,
        first.code,
        kind.label,
        severity if chosen == "off" else Severity(chosen),
        first.message,
        first.explanation,
        tuple(_hints(tried_hints(first, tried_of(first)))),
        first.link if words.is_web_link(first.link) else None,
        sum(finding.count for finding in mine),
        round(sum(finding.cost.seconds for finding in mine), 6),
        kind.costs_every_call,
        sum(finding.cost.graphs for finding in mine),
        sum(len(finding.fixes) for finding in mine),
        tuple(_place(finding, texts, hidden, uri_of, ranks_of) for finding in ordered),
    )


def _hints(hints: list[TriedHint]) -> Iterator[FindingHint]:
    was_tried = any(hint.standing is not Standing.NOT_TRIED for hint in hints)
    known = {Standing.HELPS: True, Standing.PARTLY: True, Standing.NO_HELP: False}
    for hint in hints:
        yield FindingHint(hint.text, hint.said if was_tried or hint.why else "", known.get(hint.standing))


def _place(
    finding: Finding, texts: Mapping[str, list[str]], hidden: Hidden, uri_of: UriOf, ranks_of: Callable[[Finding], str]
) -> FindingPlace:
    line = finding.range.start.line
    lines = texts.get(finding.file, [])
    return FindingPlace(
        place_uri(uri_of, finding.file),
        max(0, line - 1),
        lines[line - 1].strip() if 0 < line <= len(lines) else "",
        finding.message,
        finding.count,
        finding.compiles,
        finding.cost.seconds,
        finding.cost.graphs,
        len(finding.fixes),
        cast(HiddenBy, hidden.get(finding.cause, "")),
        ranks_of(finding),
    )


def _ranks(finding: Finding, everyone: Set[int], members: tuple[str, str]) -> str:
    if not finding.ranks:
        return ""
    if everyone <= set(finding.ranks) and finding.kind != rank_divergence.KIND.id:
        return f"all {members[1]}"
    return ranks_named(finding.ranks, *members)


def place_of(finding: Finding, uri_of: UriOf) -> Place:
    """The place of a finding as the client counts: the line 0-based."""
    return Place(place_uri(uri_of, finding.file), max(0, finding.range.start.line - 1))


REQUEST = PanelRequest("irscope/findings", FindingsParams, FindingsResult, findings)
