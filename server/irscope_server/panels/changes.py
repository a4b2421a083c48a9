"""``irscope/changes``: what changed since the run before, of the same entry and lane."""

from __future__ import annotations

from dataclasses import dataclass, replace

from irscope.comparing.autotuning import TunedDiff, tuned_diff
from irscope.comparing.runs import Change, CompileChange, RunDiff, diff_runs, pipeline_words
from irscope.findings.registry import kind_of
from irscope.measures.tree import difference
from irscope.profiling.changes import ProfileDiff, profile_diff
from irscope.profiling.run_trees import RUN_TREES
from irscope.protocol import LIBRARY, Compile, Finding, Kernel, Lane, Report, RunSummary, Severity, StageRef
from irscope.store.store import Store
from irscope.vocabulary import units
from irscope.vocabulary.lanes import DEFAULT_PIPELINE

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place, RunItem
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.panels.answers import answer, place_uri
from irscope_server.panels.findings import place_of
from irscope_server.panels.trees import NO_TREE, MeasureTree, tree_answer
from irscope_server.running.since_last_run import ran_whole, run_before
from irscope_server.stages.tree import UriOf, run_item

_MOST_RUNS = 20
_MOST_LINES = 50
"""Lines whose time changed, and operators with another choice."""


@dataclass(frozen=True)
class ChangesParams:
    """A run, and the earlier run to compare it with; empty: the run before it, of the same entry and lane."""

    run: str
    since: str = ""


@dataclass(frozen=True)
class ChangedFinding:
    """A finding that only one of the two runs has."""

    kind: str
    code: str
    title: str
    severity: Severity
    message: str
    place: Place
    seconds: float


@dataclass(frozen=True)
class ChangedStage:
    """Two documents to be compared."""

    title: str
    left: str
    right: str


@dataclass(frozen=True)
class ChangedCompile:
    """A compile that is new, gone or different."""

    id: str
    function: str
    place: Place
    what: str
    """In words: ``72 → 70 ops, 5 → 4 kernels``; empty for one that is new or gone."""
    stages: tuple[ChangedStage, ...]


@dataclass(frozen=True)
class ChangedKernel:
    """A kernel that is new, gone or different."""

    name: str
    language: str
    compile: str
    uri: str
    """The document that holds it, in its own run."""
    places: tuple[Place, ...]
    other: str
    """For a changed kernel: the document of the older one."""


@dataclass(frozen=True)
class ChangedLine:
    """A line with its measured seconds in a step, before and now; 0 if it has no kernel."""

    place: Place
    before: float
    after: float


@dataclass(frozen=True)
class MeasuredChange:
    """Measured time of a step before and now; `words` say whether the repetitions can tell the difference from noise.

    Lines are only those that changed by more than the noise.
    """

    before: float
    after: float
    is_significant: bool
    words: str
    lines: tuple[ChangedLine, ...]


@dataclass(frozen=True)
class ChangedChoice:
    """An operator for which autotuning chose otherwise; `before` and `after` are the choices in words, with margins."""

    operator: str
    place: Place
    before: str
    after: str


@dataclass(frozen=True)
class ChangesResult:
    """How a run differs from an earlier one; `since` is None if there is no earlier run, and `reason` says so."""

    run: RunItem | None
    since: RunItem | None
    older: tuple[RunItem, ...]
    """Earlier runs of the same entry and lane, the newest first: what ``since`` may name."""
    summary: str
    findings_new: tuple[ChangedFinding, ...]
    findings_gone: tuple[ChangedFinding, ...]
    findings_kept: int
    compiles_new: tuple[ChangedCompile, ...]
    compiles_gone: tuple[ChangedCompile, ...]
    compiles_changed: tuple[ChangedCompile, ...]
    compiles_same: int
    kernels_new: tuple[ChangedKernel, ...]
    kernels_gone: tuple[ChangedKernel, ...]
    kernels_changed: tuple[ChangedKernel, ...]
    kernels_kept: int
    compile_seconds: tuple[float, float] | None
    """Before and now; None if one of the runs compiled nothing."""
    seconds: tuple[float, float] | None
    measured: MeasuredChange | None
    """None if one of the runs was not profiled."""
    choices_changed: tuple[ChangedChoice, ...]
    time: MeasureTree
    """The change of compile time by what was compiled and by phase, with the seconds before and now."""
    memory: MeasureTree
    """The same of the bytes at the peak of each graph, by module."""
    reason: str


async def changes(context: ReadContext, params: ChangesParams) -> Encoded:
    """Raises LookupError if one of the runs is not there."""
    report = await context.archive.report(params.run)
    lane = await context.archive.ask(lambda store: store.lane_of(params.run))
    runs = await context.archive.ask(lambda store: store.runs(1000, report.script))
    same = [one for one in runs if one.lane is lane and one.outcome is not None]
    mine = next((one for one in runs if one.run == params.run), None)
    older = [one for one in same if mine is not None and one.started < mine.started]
    items = tuple(run_item(one, context.uri_of) for one in older[:_MOST_RUNS])
    item = run_item(mine, context.uri_of) if mine is not None else None
    before = run_before(runs, params.run, lane)
    wanted = params.since or (before.run if before is not None else "")
    since = next((run_item(one, context.uri_of) for one in runs if one.run == wanted), None)

    def read(store: Store, report: Report) -> ChangesResult:
        if since is None:
            return _nothing(item, items, _why_alone(report, lane, mine))
        diff = diff_runs(store, since.run, params.run)
        whole = mine is None or ran_whole(mine)
        uri_of = context.uri_of
        before_report = store.report(since.run)
        found = _result(item, since, items, diff, before_report, report, uri_of, whole)
        return replace(
            found,
            measured=_measured(profile_diff(store, since.run, params.run), uri_of),
            choices_changed=_choices(tuned_diff(store, since.run, params.run), uri_of),
            time=_tree(store, before_report, report, "time", uri_of),
            memory=_tree(store, before_report, report, "memory", uri_of),
        )

    return await answer(context, ("changes", params.run, wanted), params.run, read)


def _nothing(run: RunItem | None, older: tuple[RunItem, ...], reason: str) -> ChangesResult:
    return ChangesResult(
        run, None, older, "", (), (), 0, (), (), (), 0, (), (), (), 0, None, None, None, (), NO_TREE, NO_TREE, reason
    )


def _result(
    run: RunItem | None,
    since: RunItem,
    older: tuple[RunItem, ...],
    diff: RunDiff,
    before: Report,
    after: Report,
    uri_of: UriOf,
    whole: bool,
) -> ChangesResult:
    stages = {
        report.run: {stage.id: stage for compile in report.compiles for stage in compile.stages}
        for report in (before, after)
    }
    new, gone, changed = _kernels(diff, stages, uri_of)
    times = (diff.compile_seconds.before, diff.compile_seconds.after)
    return ChangesResult(
        run,
        since,
        older,
        summary(diff, _generated(new), _generated(gone), len(changed), whole and not diff.pipelines),
        tuple(_finding(finding, uri_of) for finding in diff.findings_new),
        tuple(_finding(finding, uri_of) for finding in diff.findings_gone),
        diff.findings_kept,
        tuple(_compile(compile, uri_of) for compile in diff.compiles_new),
        tuple(_compile(compile, uri_of) for compile in diff.compiles_gone),
        tuple(_changed(change, before.run, after.run, stages, uri_of) for change in diff.compiles_changed),
        diff.compiles_same,
        new,
        gone,
        changed,
        diff.kernels_kept,
        times if all(times) else None,
        (diff.seconds.before, diff.seconds.after),
        None,
        (),
        NO_TREE,
        NO_TREE,
        _about(diff, after, whole),
    )


def _measured(diff: ProfileDiff | None, uri_of: UriOf) -> MeasuredChange | None:
    if diff is None:
        return None
    return MeasuredChange(
        diff.step_seconds.before,
        diff.step_seconds.after,
        diff.is_significant,
        diff.words,
        tuple(
            ChangedLine(Place(place_uri(uri_of, one.file), one.line - 1), one.before, one.after)
            for one in diff.lines[:_MOST_LINES]
        ),
    )


def _tree(store: Store, before: Report, after: Report, name: str, uri_of: UriOf) -> MeasureTree:
    """What changed of a tree of measures; without rows if nothing did."""
    tree = difference(*(RUN_TREES[name](store, report) for report in (before, after)))
    return tree_answer(tree, uri_of, is_change=True) if any(node.inclusive[0] for node in tree.nodes) else NO_TREE


def _choices(diff: TunedDiff | None, uri_of: UriOf) -> tuple[ChangedChoice, ...]:
    return tuple(
        ChangedChoice(
            f"padding of {one.operator}" if one.decision == "padding" else one.operator,
            Place(place_uri(uri_of, one.file), max(0, one.line - 1)),
            one.before.words,
            one.after.words,
        )
        for one in (diff.changed if diff else ())[:_MOST_LINES]
    )


def _generated(kernels: _Kernels) -> int:
    return sum(kernel.language != LIBRARY for kernel in kernels)


def _why_alone(report: Report, lane: Lane, summary: RunSummary | None) -> str:
    through = "" if report.pipeline == DEFAULT_PIPELINE else f" through {report.pipeline}"
    first = f"This is the first {lane.value} run of this script{through} that is kept."
    if summary is not None and summary.outcome is None:
        return f"{report.outcome.message} {first}"
    return f"{first} Change the code and run it again."


def _about(diff: RunDiff, after: Report, whole: bool) -> str:
    pipelines = pipeline_words(diff)
    if not whole:
        return f"{pipelines} {after.outcome.message} What this run did not reach counts as gone.".strip()
    if pipelines:
        return pipelines
    return "The two runs differ only in their times." if diff.same else ""


def summary(diff: RunDiff, new_kernels: int, gone_kernels: int, changed_kernels: int, whole: bool = True) -> str:
    """One line: ``1 finding fixed · 2 kernels changed · compiles 12.3 s → 9.1 s``.

    Args:
        whole: Whether the newer run came to its end through the pipeline of the older one; else what is gone may be
            what it did not come to.
    """
    parts = [
        (len(diff.findings_new), "new finding", ""),
        (len(diff.findings_gone), "finding", " fixed" if whole else " not seen"),
        (new_kernels, "kernel", " gained"),
        (gone_kernels, "kernel", " lost"),
        (changed_kernels, "kernel", " changed"),
    ]
    said = [f"{units.count(number, noun)}{what}" for number, noun, what in parts if number]
    if not said:
        said = ["only times differ" if diff.same else "the graphs differ"]
    before, after = words.known_duration(diff.compile_seconds.before), words.known_duration(diff.compile_seconds.after)
    return " · ".join([*said, *([f"compile time {before} → {after}"] if before and after else [])])


def _finding(finding: Finding, uri_of: UriOf) -> ChangedFinding:
    return ChangedFinding(
        finding.kind,
        finding.code,
        kind_of(finding.kind).label,
        finding.severity,
        finding.message,
        place_of(finding, uri_of),
        finding.cost.seconds,
    )


def _compile(compile: Compile, uri_of: UriOf) -> ChangedCompile:
    place = Place(place_uri(uri_of, compile.file), max(0, compile.line - 1))
    return ChangedCompile(compile.id, compile.title, place, "", ())


def _changed(
    change: CompileChange, before: str, after: str, stages: dict[str, dict[str, StageRef]], uri_of: UriOf
) -> ChangedCompile:
    facts = []
    if change.outcome is not None:
        facts.append(f"{change.outcome[0]} → {change.outcome[1]}".replace("-", " "))
    if change.ops is not None:
        facts.append(f"{_numbers(change.ops)} ops")
    if change.kernels is not None:
        facts.append(f"{_numbers(change.kernels)} kernels")
    compared = []
    for name in change.stages:
        left = stages[before].get(f"{change.before}/{name}")
        right = stages[after].get(f"{change.after}/{name}")
        if left is not None and right is not None and not right.passed:
            compared.append(
                ChangedStage(
                    words.stage_title(right),
                    uri_of_stage(before, left.id, left.language),
                    uri_of_stage(after, right.id, right.language),
                )
            )
    place = Place(place_uri(uri_of, change.file), max(0, change.line - 1))
    ids = change.after if change.before == change.after else f"{change.before} → {change.after}"
    return ChangedCompile(ids, change.title, place, ", ".join(facts), tuple(compared))


def _numbers(change: Change) -> str:
    return f"{change.before:g} → {change.after:g}"


_Kernels = tuple[ChangedKernel, ...]


def _kernels(
    diff: RunDiff, stages: dict[str, dict[str, StageRef]], uri_of: UriOf
) -> tuple[_Kernels, _Kernels, _Kernels]:
    """New, gone and changed ones; a new one with the name of one that is gone is a changed one."""

    def made(kernel: Kernel, run: str, other: str = "") -> ChangedKernel:
        stage = stages[run].get(kernel.stage)
        return ChangedKernel(
            kernel.name,
            kernel.language,
            kernel.compile,
            uri_of_stage(run, stage.id, stage.language) if stage is not None else "",
            tuple(Place(uri_of(origin.file), max(0, origin.line - 1)) for origin in kernel.origins),
            other,
        )

    left: dict[tuple[str, str], list[Kernel]] = {}
    for kernel in diff.kernels_gone:
        left.setdefault((kernel.compile, kernel.name), []).append(kernel)
    new, changed = [], []
    for kernel in diff.kernels_new:
        same = left.get((kernel.compile, kernel.name))
        if same and kernel.is_generated:
            changed.append(made(kernel, diff.after, made(same.pop(0), diff.before).uri))
        else:
            new.append(made(kernel, diff.after))
    gone = [made(kernel, diff.before) for rest in left.values() for kernel in rest]
    return tuple(new), tuple(gone), tuple(changed)


REQUEST = PanelRequest("irscope/changes", ChangesParams, ChangesResult, changes)
