"""Whether what a run found is acceptable: which findings fail a check, and which numbers are over their bound.

``irscope check`` and the pytest plugin judge with this.  A bound is one row of `BOUNDS`: the flags of the command, the
arguments of the plugin and the tables of the docs have its name and its words.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from irscope.findings.kinds import graph_break, recompilation
from irscope.findings.registry import all_kinds
from irscope.protocol import Finding, Lane, Limit, Outcome, OutcomeKind, Report, Severity
from irscope.vocabulary.findings import DEEP_ONLY
from irscope.vocabulary.suggestions import did_you_mean
from irscope.vocabulary.units import count

NONE = "none"
"""In place of names: no finding fails a check, only a number over its bound."""
DEFAULT_FAIL_ON = (Severity.WARNING.value, recompilation.KIND.id)
_PYTORCHS_CODE = re.compile(r"GB\d{4}")
_BY_WEIGHT = tuple(severity.value for severity in Severity)


class Verdict(str, enum.Enum):
    """What a check says about one script, or about all; the worst one comes last."""

    CLEAN = "clean"
    FINDINGS = "findings"
    """There is a finding that fails, or a number is over its bound."""
    SCRIPT_FAILED = "script-failed"
    """The script did not end well, so nobody knows whether it is clean."""
    ENVIRONMENT = "environment"
    """It could not start."""

    @property
    def exit_code(self) -> int:
        """The exit code of ``irscope check``."""
        return {Verdict.CLEAN: 0, Verdict.FINDINGS: 1, Verdict.ENVIRONMENT: 3, Verdict.SCRIPT_FAILED: 4}[self]

    @staticmethod
    def worst(verdicts: Collection[Verdict]) -> Verdict:
        """The one that decides; clean for none."""
        order = list(Verdict)
        return max(verdicts, key=order.index, default=Verdict.CLEAN)


@dataclass(frozen=True)
class Bound:
    """A number of a run that can have an upper bound.

    Args:
        name: The argument of the pytest plugin: ``max_graphs``.
        unit: One of what is counted, for messages; of seconds ``s``.
        help: What is counted, for ``--help`` and the docs.
        measure: Takes the report with all findings and that with those that are shown; returns the number.
        lanes: The lanes in which the number is known.
        kind: The kind of the findings that say where it comes from; empty: none does.
    """

    name: str
    unit: str
    help: str
    measure: Callable[[Report, Report], float]
    lanes: tuple[Lane, ...] = (Lane.FAST, Lane.DEEP)
    kind: str = ""

    @property
    def flag(self) -> str:
        """The flag of ``irscope check``."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_whole(self) -> bool:
        """Whether only whole numbers make sense."""
        return self.unit != "s"

    def said(self, value: float) -> str:
        """The number with its unit: ``2 graphs``, ``31.5 s``."""
        return count(int(value), self.unit) if self.is_whole else f"{value:.4g} s"


def _graphs(report: Report, _shown: Report) -> float:
    return sum(compile.graph_ops > 0 for compile in report.compiles)


def _breaks(_report: Report, shown: Report) -> float:
    return sum(finding.kind == graph_break.KIND.id for finding in shown.findings)


def _recompiles(report: Report, shown: Report) -> float:
    """Without those whose finding a comment, a baseline or a severity hides."""
    left = {finding.cause for finding in shown.findings}
    hidden = [f for f in report.findings if f.kind == recompilation.KIND.id and f.cause not in left]
    ignored = {compile for finding in hidden for compile in finding.compiles}
    return sum(bool(compile.reasons) and compile.id not in ignored for compile in report.compiles)


def _kernels(report: Report, _shown: Report) -> float:
    return sum(kernel.is_generated for kernel in report.kernels)


def _seconds(report: Report, _shown: Report) -> float:
    return sum(compile.seconds for compile in report.compiles)


BOUNDS: Mapping[str, Bound] = {
    bound.name: bound
    for bound in (
        Bound("max_graphs", "graph", "graphs that are captured, also those of recompilations", _graphs, kind=graph_break.KIND.id),
        Bound("max_graph_breaks", "graph break", "places at which a graph is cut", _breaks, kind=graph_break.KIND.id),
        Bound("max_recompiles", "recompilation", "compiles of a function that had been compiled before", _recompiles,
              kind=recompilation.KIND.id),
        Bound("max_kernels", "kernel", "generated kernels", _kernels, lanes=DEEP_ONLY),
        Bound("max_compile_seconds", "s", "seconds of compile time, all compiles together", _seconds, lanes=DEEP_ONLY),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A number of a run beside its bound."""

    name: str
    """The name of the `Bound`."""
    limit: float
    actual: float
    exceeded: bool

    @property
    def message(self) -> str:
        """One sentence: ``3 graphs; max_graphs allows 1.``"""
        bound = BOUNDS[self.name]
        allowed = str(int(self.limit)) if bound.is_whole else f"{self.limit:g} s"
        return f"{bound.said(self.actual)}; {self.name} allows {allowed}."


def measured(report: Report, shown: Report, limits: Mapping[str, float]) -> tuple[Measured, ...]:
    """The numbers of a run that have a bound.

    Args:
        report, shown: As the run left it, and with the findings that `irscope.findings.control.controlled` leaves.
        limits: Bounds by name.
    """
    actual = {name: BOUNDS[name].measure(report, shown) for name in BOUNDS if name in limits}
    return tuple(Measured(name, limits[name], value, value > limits[name]) for name, value in actual.items())


def read_fail_on(text: str) -> tuple[str, ...]:
    """Kinds, codes and severities of a list with commas.  Raises ValueError with a message for the user."""
    names = tuple(dict.fromkeys(name for each in text.split(",") if (name := each.strip())))
    known = [*all_kinds(), *_BY_WEIGHT, NONE]
    for name in names:
        if name not in known and not _PYTORCHS_CODE.fullmatch(name):
            raise ValueError(f"unknown kind of finding: {name}.{did_you_mean(name, known)}")
    if not names or (NONE in names and len(names) > 1):
        raise ValueError(f"{text!r} names no kinds: write them with commas between, or {NONE} alone")
    return names


def fails(finding: Finding, fail_on: Collection[str]) -> bool:
    """Whether a finding fails a check: by its kind, its code, or a severity that is as bad as one that is named."""
    named_by = _BY_WEIGHT[_BY_WEIGHT.index(finding.severity.value) :]
    return any(name in fail_on for name in (finding.kind, finding.code, *named_by))


def lane_for(fail_on: Collection[str], limits: Collection[str]) -> Lane:
    """The lane that can judge all of it: the fast one, unless a kind or a number is only known in the deep one."""
    kinds = all_kinds()
    deep = any(name in kinds and kinds[name].lanes == DEEP_ONLY for name in fail_on)
    return Lane.DEEP if deep or any(BOUNDS[name].lanes == DEEP_ONLY for name in limits) else Lane.FAST


def verdict_on(outcome: Outcome, failing: Collection[Finding], numbers: Collection[Measured]) -> Verdict:
    """The verdict on one run."""
    if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR:
        return Verdict.ENVIRONMENT
    if outcome.kind is not OutcomeKind.COMPLETED and outcome.limit is not Limit.STEADY_STATE:
        return Verdict.SCRIPT_FAILED
    return Verdict.FINDINGS if failing or any(each.exceeded for each in numbers) else Verdict.CLEAN
