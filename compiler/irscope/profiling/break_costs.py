"""What each graph break and each recompilation takes in a step, from what was measured around the compiles.

After a break a function goes on in another compile, a *resume function*, which has its own guards and its own way into its
graphs.  Without the break there would be none of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irscope.profiling.break_words import BreakCost, RecompileCost
from irscope.profiling.noise import spread_of
from irscope.profiling.timeline import Kind
from irscope.protocol import Compile, Finding, Report
from irscope.vocabulary.function_names import plain_name

Around = Mapping[tuple[str, Kind], float]
"""By compile, as PyTorch names it, and kind: seconds of a step."""
ENTRY = frozenset([Kind.PYTHON, Kind.RUNTIME])
COUNTED = ENTRY | {Kind.EAGER, Kind.GUARDS}


@dataclass
class _Keys:
    """The owner of a break's time; the compiles after a break are the same for all compiles that break there."""

    finding: Finding
    eager: set[tuple[str, Kind]] = field(default_factory=set)
    guards: set[tuple[str, Kind]] = field(default_factory=set)
    entry: set[tuple[str, Kind]] = field(default_factory=set)


def breaks_of(
    report: Report, around: Around, by_step: Mapping[tuple[str, Kind], Mapping[int, float]]
) -> tuple[BreakCost, ...]:
    """The breaks that a step goes through, the dearest first.

    Args:
        by_step: Seconds of ``around`` in each step; empty if they are not known.
    """
    by_compile: dict[str, Finding] = {}
    for finding in report.findings:
        if finding.kind == "graph-break":
            for each in finding.compiles:
                by_compile[_name(each)] = finding  # as `measuring` gives eager operators to breaks
    resumes = [one for one in report.compiles if one.after is not None]
    known = {_name(one.id): one for one in report.compiles}
    breaks: dict[int, _Keys] = {}
    for name, finding in by_compile.items():
        keys, broken = breaks.setdefault(id(finding), _Keys(finding)), known.get(name)
        after = _resumed(broken, finding, resumes) if broken is not None else ()
        keys.eager.add((name, Kind.EAGER))
        keys.guards |= {(each, Kind.GUARDS) for each in after}
        keys.entry |= {(each, kind) for each in after for kind in ENTRY}
    costs = [_cost(keys, around, by_step) for keys in breaks.values()]
    return tuple(sorted((cost for cost in costs if cost.seconds), key=lambda cost: -cost.seconds))


def _cost(keys: _Keys, around: Around, by_step: Mapping[tuple[str, Kind], Mapping[int, float]]) -> BreakCost:
    eager, guards, entry = (sum(around.get(key, 0.0) for key in part) for part in (keys.eager, keys.guards, keys.entry))
    steps: Counter[int] = Counter()
    for key in keys.eager | keys.guards | keys.entry:
        steps.update(by_step.get(key, {}))
    finding = keys.finding
    return BreakCost(
        finding.file, finding.range.start.line, finding.code, eager + guards + entry, eager, guards, entry,
        spread_of([*steps.values()]),
    )  # fmt: skip


def recompiled_of(report: Report, around: Around) -> tuple[RecompileCost, ...]:
    """The functions with several compiles, the one whose compiles took longest first."""
    frames: dict[str, list[Compile]] = defaultdict(list)
    for compile in report.compiles:
        frames[_frame(compile.id)].append(compile)
    # Of the frame: a search goes through all of its compiles, whichever it finds.
    guards: dict[str, float] = defaultdict(float)
    for (name, kind), seconds in around.items():
        if kind is Kind.GUARDS:
            guards[_frame(name)] += seconds
    costs = [
        RecompileCost(
            each[0].title, each[0].file, each[0].line, len(each), sum(one.seconds or 0.0 for one in each[1:]),
            guards[frame],
        )
        for frame, each in frames.items()
        if len({_name(one.id) for one in each}) > 1
    ]  # fmt: skip
    return tuple(sorted(costs, key=lambda cost: -cost.compile_seconds))


def _resumed(broken: Compile, finding: Finding, resumes: Sequence[Compile]) -> list[str]:
    """The compiles that go on after a break."""
    lines = range(finding.range.start.line, finding.range.end.line + 1)
    return [
        _name(one.id)
        for one in resumes
        if (place := one.after) is not None
        and (place.file, plain_name(one.function)) == (finding.file, plain_name(broken.function))
        and place.line in lines
    ]


def _frame(compile: str) -> str:
    return compile.partition("/")[0]


def _name(compile: str) -> str:
    return compile.partition("#")[0]
