"""How a run went, in one sentence: what its causes cost, which to begin with, or that nothing stops the compiler.

The terminal, the status item, the findings and agents show the sentence; what it says is in `Standing`.
"""

from __future__ import annotations

import dataclasses
import enum
import os
import re
from collections.abc import Mapping, Sequence

from irscope.findings.kinds import graph_break, recompilation
from irscope.protocol import Compile, CompileOutcome, Finding, OutcomeKind, Report, Severity, causes_only
from irscope.store.costs import caused_by
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count, duration

_HEAVY = 0.05
"""Share of the compile time from which a finding counts as a cause, whatever its severity."""
_MOST_LETTERS = 160
_MOST_NAMES = 2
_BAD = (Severity.ERROR, Severity.WARNING)


class State(str, enum.Enum):
    """How a run went; the worst one is first."""

    FAILED = "failed"
    """The script failed, or irscope could not run it."""
    CAUSES = "causes"
    """Something stops the compiler, or costs much of the compile time."""
    NOTHING = "nothing"
    """Nothing was compiled."""
    CLEAN = "clean"
    """Nothing stops the compiler."""


class Next(str, enum.Enum):
    """What to do next."""

    FIX = "fix"
    """Something that irscope proposes a change for is among the causes."""
    PROFILE = "profile"
    """Nothing stops the compiler: what is left is how long a step takes."""


NEXT = {
    Next.FIX: "A quick fix in the editor, or `irscope fix`, tries changes.",
    Next.PROFILE: "Next: profile it (Profile This File, or `irscope profile`).",
}
"""How what is next is done, in an editor or without one."""


@dataclass(frozen=True)
class Standing:
    """How a run went.

    Args:
        causes: Findings that are to be dealt with, the one that costs most first, by time of a step where that was
            measured: errors and warnings, and what takes at least 5 % of the compile time.  No finding that another one
            explains.
        seconds, compile_seconds: Of the compile time: that of the compiles that the causes brought about, each counted
            once, and all of it.
        step_seconds, whole_step_seconds: What the causes take in each step and what a step takes, where a profile of
            the run measured it; else 0.
        programs: What was compiled, by the names that the user passed, each once.
        graphs, skipped: Compiled graphs; functions that were not compiled, and run as plain Python.
        breaks, recompilations: How many findings there are of these kinds.
        whole: Whether the run came to its end: else there may be more.
        ran: Whether the script could be run at all: not with an interpreter without torch.
    """

    state: State
    causes: tuple[Finding, ...]
    seconds: float
    compile_seconds: float
    step_seconds: float
    whole_step_seconds: float
    programs: tuple[str, ...]
    graphs: int
    skipped: int
    breaks: int
    recompilations: int
    whole: bool
    ran: bool = True

    @property
    def next(self) -> Next | None:
        """What to do next; None if that is in the sentence, or not known."""
        if self.state is State.CAUSES:
            return Next.FIX if any(finding.fixes for finding in self.causes) else None
        is_fine = self.state is State.CLEAN and self.whole and not self.skipped
        return Next.PROFILE if is_fine and not self.whole_step_seconds else None


@dataclass(frozen=True)
class RunStanding:
    """The same in a document; `causes` are indexes of the report's findings."""

    state: State = State.NOTHING
    sentence: str = ""
    causes: tuple[int, ...] = ()
    seconds: float = 0.0
    compile_seconds: float = 0.0


def documented(report: Report) -> RunStanding:
    """How a run went, for who reads it as data."""
    standing = standing_of(report)
    return RunStanding(
        standing.state,
        sentence(standing, report.outcome.message, NEXT),
        tuple(report.findings.index(finding) for finding in standing.causes),
        round(standing.seconds, 6),
        round(standing.compile_seconds, 6),
    )


def standing_of(report: Report, compiles: Sequence[Compile] | None = None) -> Standing:
    """How a run went, or some compiles of it."""
    report = report if compiles is None else _only(report, compiles)
    whole_time = sum(compile.seconds for compile in report.compiles)
    causes = [
        finding
        for finding in causes_only(report.findings)
        if finding.severity in _BAD or finding.cost.seconds >= max(_HEAVY * whole_time, 1e-9)
    ]
    causes.sort(key=_order)
    graphs = sum(each.outcome in (CompileOutcome.COMPILED, CompileOutcome.GRAPH_BREAK) for each in report.compiles)
    graphs += report.compiles_of_processes
    by_id = {compile.id: compile for compile in report.compiles}
    caused = {compile.id: compile.seconds for finding in causes for compile in caused_by(finding, by_id)}
    return Standing(
        _state(report, causes, graphs),
        tuple(causes),
        sum(caused.values()),
        whole_time,
        sum(finding.cost.step_seconds for finding in causes),
        report.step_seconds,
        tuple(dict.fromkeys(each.program or each.function_name for each in report.compiles)),
        graphs,
        sum(each.outcome is CompileOutcome.SKIPPED for each in report.compiles),
        sum(each.kind == graph_break.KIND.id for each in report.findings),
        sum(each.kind == recompilation.KIND.id for each in report.findings),
        report.outcome.kind is OutcomeKind.COMPLETED,
        report.outcome.kind is not OutcomeKind.ENVIRONMENT_ERROR,
    )


def _only(report: Report, compiles: Sequence[Compile]) -> Report:
    """These compiles of a run, and the findings about them."""
    ids = {compile.id for compile in compiles}
    mine = tuple(finding for finding in report.findings if not ids.isdisjoint(finding.compiles))
    return dataclasses.replace(report, compiles=tuple(compiles), findings=mine)


def _state(report: Report, causes: list[Finding], graphs: int) -> State:
    if report.outcome.kind in (OutcomeKind.SCRIPT_ERROR, OutcomeKind.CRASHED, OutcomeKind.ENVIRONMENT_ERROR):
        return State.FAILED
    if causes:
        return State.CAUSES
    return State.CLEAN if graphs else State.NOTHING


def _order(finding: Finding) -> tuple[object, ...]:
    cost = finding.cost
    return (finding.severity is not Severity.ERROR, -cost.step_seconds, -cost.seconds, -cost.graphs, -finding.count)


def sentence(standing: Standing, message: str = "", next_words: Mapping[Next, str] | None = None) -> str:
    """How a run went and what is next, for people.

    Args:
        message: How the run ended, as its outcome says it.
        next_words: How what is next is done there where the sentence is shown.
    """
    said = [] if standing.whole and standing.state is not State.NOTHING else [_ended(message)]
    if others := tuple(cause for cause in standing.causes if cause.message not in " ".join(said)):
        said.append(_of_causes(dataclasses.replace(standing, causes=others)))
    elif standing.state is State.CLEAN:
        said.append(_clean(standing))
    elif standing.skipped:
        said.append(_ending(standing))
    if next_words and standing.next:
        said.append(next_words[standing.next])
    return " ".join(filter(None, said))


def _ended(message: str) -> str:
    """With a full stop: an exception's text has none."""
    return message if message[-1:] in ("", ".", "!", "?") else f"{message}."


def label(standing: Standing) -> str:
    """The same in a few words: ``3 causes cost 36 of 41 s``; where a step was measured, its time first."""
    if standing.causes and standing.state is State.CAUSES:
        number = len(standing.causes)
        if standing.step_seconds > 0:
            costs = f"{_of(standing.step_seconds, max(standing.step_seconds, standing.whole_step_seconds))} a step"
        else:
            costs = _of(standing.seconds, standing.compile_seconds) if standing.seconds > 0 else ""
        return count(number, "cause") + (f" cost{'s' * (number == 1)} {costs}" if costs else "")
    if standing.state is State.CLEAN:
        measured = f"{duration(standing.whole_step_seconds)} a step, " if standing.whole_step_seconds else ""
        return f"{measured}no {'costly ' * bool(standing.breaks)}breaks"
    failed = "the script failed" if standing.ran else "could not be run"
    return failed if standing.state is State.FAILED else "nothing compiled"


def point(standing: Standing, file: str) -> tuple[str, ...]:
    """The label, and what is next or left in a few words: ``fix first: line 37`` of the file in which that is shown."""
    if standing.causes and standing.state is State.CAUSES:
        line = f"line {standing.causes[0].range.start.line}"
        if standing.causes[0].file != file:
            line = place_of(standing.causes[0])
        what = "fix" if standing.next is Next.FIX else "see"
        return label(standing), f"{what} {line}" if len(standing.causes) == 1 else f"{what} first: {line}"
    if standing.next is Next.PROFILE:
        return label(standing), "next: profile it"
    left = standing.skipped or not standing.whole
    return (label(standing), *([_ending(standing).rstrip(".")] if left and standing.state is State.CLEAN else []))


def _of_causes(standing: Standing) -> str:
    causes, first = standing.causes, standing.causes[0]
    said = f"{count(len(causes), 'cause')} {'costs' if len(causes) == 1 else 'cost'}"
    costs = [
        f"at least {duration(standing.step_seconds)} of each step" if standing.step_seconds > 0 else "",
        f"{_of(standing.seconds, standing.compile_seconds)} of compile time" if standing.seconds > 0 else "",
    ]
    if any(costs):
        said += " " + " and ".join(filter(None, costs))
    else:
        said = f"{count(len(causes), 'cause')} to deal with"
    return f"{said}{'. First' if len(causes) > 1 else ''}: {_short(first.message)} ({place_of(first)})."


def place_of(finding: Finding) -> str:
    """``model.py:37``."""
    return f"{os.path.basename(finding.file)}:{finding.range.start.line}"


def _of(part: float, whole: float) -> str:
    """``36 of 41 s``; with both units where they differ."""
    small, large = duration(part), duration(whole)
    if small == large:
        return f"all {large}"
    amount, _, unit = small.rpartition(" ")
    return (
        f"{amount} of {large}"
        if unit and large == f"{large.split()[0]} {unit}" and " " not in amount
        else f"{small} of {large}"
    )


def _short(message: str) -> str:
    """Its first sentence, without the full stop."""
    first = re.split(r"(?<=[.!?])\s", message.strip(), maxsplit=1)[0].rstrip(".")
    return first if len(first) <= _MOST_LETTERS else first[: _MOST_LETTERS - 1].rstrip() + "…"


def _clean(standing: Standing) -> str:
    names = list(standing.programs[:_MOST_NAMES]) or ["the processes that it started"]
    more = len(standing.programs) - len(names)
    named = ", ".join([*names, *([f"and {more} more"] if more else [])])
    graphs = "one graph" if standing.graphs == 1 else count(standing.graphs, "graph")
    breaks, recompilations = (
        count(number, name) if number else f"no {name}s"
        for number, name in ((standing.breaks, "graph break"), (standing.recompilations, "recompilation"))
    )
    little = (
        f", each with less than {_HEAVY * 100:.0f} % of the compile time"
        if standing.breaks + standing.recompilations
        else ""
    )
    measured = f"A step takes {duration(standing.whole_step_seconds)}. " if standing.whole_step_seconds else ""
    return f"{measured}{named}: {graphs}, {breaks}, {recompilations}{little}. {_ending(standing)}"


def _ending(standing: Standing) -> str:
    if standing.skipped:
        return f"{count(standing.skipped, 'function runs', 'functions run')} as plain Python."
    if not standing.whole:
        return "Nothing stopped the compiler up to there."
    return f"Nothing {'else ' * bool(standing.breaks + standing.recompilations)}stops the compiler here."
