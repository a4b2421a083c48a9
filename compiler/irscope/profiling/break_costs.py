"""What each graph break and each recompilation takes in a step, from what was measured around the compiles.

After a break a function goes on in another compile, a *resume function*, which has its own guards and its own way into its
graphs.  Without the break there would be none of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from irscope.profiling.profile import BreakCost, RecompileCost
from irscope.profiling.timeline import Kind
from irscope.protocol import Compile, Finding, Report
from irscope.vocabulary.function_names import RESUME_PREFIX, plain_name

Around = Mapping[tuple[str, Kind], float]
"""By compile, as PyTorch names it, and kind: seconds of a step."""
ENTRY = frozenset([Kind.PYTHON, Kind.RUNTIME])
COUNTED = ENTRY | {Kind.EAGER, Kind.GUARDS}


def breaks_of(report: Report, around: Around) -> tuple[BreakCost, ...]:
    """The breaks that a step goes through, the dearest first."""
    by_compile: dict[str, Finding] = {}
    for finding in report.findings:
        if finding.kind == "graph-break":
            for each in finding.compiles:
                by_compile[_name(each)] = finding  # as `measuring` gives eager operators to breaks
    resumes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in report.compiles:
        if one.function.startswith(RESUME_PREFIX):
            resumes[one.file, one.function].append(_name(one.id))
    known = {_name(one.id): one for one in report.compiles}
    costs: dict[int, BreakCost] = {}
    for name, finding in by_compile.items():
        broken = known.get(name)
        after = _resumed(broken, finding, resumes) if broken is not None else ()
        eager = around.get((name, Kind.EAGER), 0.0)
        guards = sum(around.get((each, Kind.GUARDS), 0.0) for each in after)
        entry = sum(around.get((each, kind), 0.0) for each in after for kind in ENTRY)
        if total := eager + guards + entry:
            line, before = finding.range.start.line, costs.get(id(finding))
            cost = BreakCost(finding.file, line, finding.code, total, eager, guards, entry)
            costs[id(finding)] = cost if before is None else _sum(before, cost)
    return tuple(sorted(costs.values(), key=lambda cost: -cost.seconds))


def recompiled_of(report: Report, around: Around) -> tuple[RecompileCost, ...]:
    """The functions with several compiles, the one whose compiles took longest first."""
    frames: dict[str, list[Compile]] = defaultdict(list)
    for compile in report.compiles:
        frames[compile.id.partition("/")[0]].append(compile)
    costs = [
        RecompileCost(
            each[0].title, each[0].file, each[0].line, len(each), sum(one.seconds or 0.0 for one in each[1:]),
            sum(around.get((name, Kind.GUARDS), 0.0) for name in {_name(one.id) for one in each}),
        )
        for each in frames.values()
        if len({_name(one.id) for one in each}) > 1
    ]  # fmt: skip
    return tuple(sorted(costs, key=lambda cost: -cost.compile_seconds))


def _resumed(broken: Compile, finding: Finding, resumes: Mapping[tuple[str, str], list[str]]) -> list[str]:
    """The compiles that go on after a break, by their name: ``torch_dynamo_resume_in_forward_at_22``."""
    lines = range(finding.range.start.line, finding.range.end.line + 1)
    return [
        name
        for (file, function), names in resumes.items()
        if file == finding.file
        and plain_name(function) == plain_name(broken.function)
        and any(function.endswith(f"_at_{line}") for line in lines)
        for name in names
    ]


def _sum(a: BreakCost, b: BreakCost) -> BreakCost:
    # The compiles after a break are the same for all compiles that break there.
    eager = a.eager_seconds + b.eager_seconds
    return BreakCost(
        a.file, a.line, a.code, eager + a.guard_seconds + a.entry_seconds, eager, a.guard_seconds, a.entry_seconds
    )


def _name(compile: str) -> str:
    return compile.partition("#")[0]
