"""The differences between runs of one script in two environments, each by itself and at a line of the user's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from irscope.comparing.graphs import GraphDiff, diff_graphs
from irscope.comparing.runs import RunDiff, diff_runs
from irscope.ir.graphs import GraphNode
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, Finding, Kernel, Outcome, Report, StageRef
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.units import count, size

KINDS = ("outcome", "finding", "compile", "graph", "kernels", "code", "memory", "numbers")
"""All kinds of differences, in the order in which they are listed."""
_NUMBER = re.compile(r"_\d+$")
_MOST_NODES = 6


@dataclass(frozen=True)
class Difference:
    """One thing that the two runs do not have in common.

    Args:
        kind: One of `KINDS`.
        what: The difference in words.
        file, line: The user's line that it belongs to; empty and 0 for none.
        compile: Which compile of the newer run, or, if that has none, of the older one; empty for none.
        stage: The name of the stage in which it is; empty for none.
    """

    kind: str
    what: str
    file: str = ""
    line: int = 0
    compile: str = ""
    stage: str = ""

    @property
    def order(self) -> tuple[int, str, int, str]:
        """Sorts them by kind, then by place."""
        return KINDS.index(self.kind), self.file, self.line, self.what


def differences(
    store: Store,
    before: str,
    after: str,
    numbers: Sequence[str] = (),
    ignored: Sequence[str] = (),
    code: Iterable[Difference] = (),
) -> list[Difference]:
    """What differs between two stored runs of one script.  Times are not among it.

    Args:
        numbers: Results that differ, in words (`irscope.runner.evidence`).
        code: Differences in the code of kernels (`irscope.comparing.versions.kernel_code`).
        ignored: Kinds of findings that are left out.

    Raises LookupError if one of the runs is not there.
    """
    old, new = store.report(before), store.report(after)
    found = diff_runs(store, before, after)
    return sorted(
        {
            *_of_outcome(old.outcome, new.outcome),
            *(_of_finding(one, "new") for one in found.findings_new if one.kind not in ignored),
            *(_of_finding(one, "gone") for one in found.findings_gone if one.kind not in ignored),
            *_of_compiles(found),
            *_of_pairs(store, old, new),
            *code,
            *(Difference("numbers", text) for text in numbers),
        },
        key=lambda one: one.order,
    )


def _of_outcome(old: Outcome, new: Outcome) -> Iterator[Difference]:
    if old.kind is not new.kind:
        why = f": {new.message}" if new.message else ""
        yield Difference("outcome", f"the run was {old.kind.value}, now {new.kind.value}{why}")


def _of_finding(finding: Finding, state: str) -> Difference:
    what = f"{state}: {finding.kind} {finding.code}: {finding.message}"
    return Difference(
        "finding", what, finding.file, finding.range.start.line, finding.compiles[0] if finding.compiles else ""
    )


def _of_compiles(found: RunDiff) -> Iterator[Difference]:
    for state, compiles in (("new", found.compiles_new), ("gone", found.compiles_gone)):
        for one in compiles:
            yield Difference("compile", f"{state}: compile of {one.title}", one.file, one.line, one.id)
    for change in found.compiles_changed:
        facts = []
        if change.outcome is not None:
            facts.append(f"{change.outcome[0]}, now {change.outcome[1]}")
        if change.ops is not None:
            facts.append(f"{change.ops.before:g} operations captured, now {change.ops.after:g}")
        if facts:
            what = f"compile of {change.title}: {'; '.join(facts)}"
            yield Difference("compile", what, change.file, change.line, change.after)


def _of_pairs(store: Store, old: Report, new: Report) -> Iterator[Difference]:
    """The differences of compiles that both have: the first graph that differs, the names of kernels, and memory."""
    for a, b in paired(old, new):
        graph = _first_graph(store, old.run, a, new.run, b)
        if graph is not None:
            yield graph
        kernels = _kernels(a, b, old.kernels, new.kernels)
        if kernels is not None:
            yield kernels
        was, now = (_peak(store, report.run, one) for report, one in ((old, a), (new, b)))
        if was != now and None not in (was, now):
            what = f"the peak of the memory plan was {size(was or 0)}, now {size(now or 0)}"
            yield Difference("memory", what, b.file, b.line, b.id)


def paired(old: Report, new: Report) -> list[tuple[Compile, Compile]]:
    """The n-th compiles of one function in both."""
    left: dict[tuple[str, str, int], list[Compile]] = {}
    for one in old.compiles:
        left.setdefault((one.file, one.qualified or one.function, one.line), []).append(one)
    return [
        (same.pop(0), one)
        for one in new.compiles
        if (same := left.get((one.file, one.qualified or one.function, one.line)))
    ]


def _first_graph(store: Store, run: str, a: Compile, other: str, b: Compile) -> Difference | None:
    """The first stage from the top in which the graphs differ; below it they differ as a consequence."""
    mine, theirs = ({stage.name: stage for stage in one.stages if _is_graph(stage)} for one in (a, b))
    for name in sorted((name for name in mine if name in theirs), key=_rank):
        try:
            found = diff_graphs(store.stage_text(run, mine[name].id), store.stage_text(other, theirs[name].id))
        except ValueError:
            continue
        if not found.same and (words := _nodes(found)):
            origin = next((node.origin for node in (*found.added, *found.removed) if node.origin is not None), None)
            file, line = (origin.file, origin.line) if origin is not None else (b.file, b.line)
            return Difference("graph", f"{stage_kind(name).title}: {words}", file, line, b.id, name)
    return None


def _is_graph(stage: StageRef) -> bool:
    return role_of(stage.name) is Role.GRAPH and not stage.passed and not stage.target


def graph_texts(store: Store, run: str) -> Iterator[str]:
    """The texts of all graphs of a run."""
    for compile in store.report(run, sizes=False).compiles:
        for stage in compile.stages:
            if _is_graph(stage):
                yield store.stage_text(run, stage.id)


def _rank(name: str) -> int:
    return stage_kind(name).rank or 0


def _nodes(found: GraphDiff) -> str:
    """What was added, removed and changed, in words; empty if only how values print differs."""
    parts = []
    for verb, nodes in (("added", found.added), ("removed", found.removed)):
        if nodes:
            parts.append(f"{verb} {_targets(nodes)}")
    changed = [one.after for one in found.changed if set(one.what) - {"type"} and one.after.op != "output"]
    if changed:
        parts.append(f"changed {_targets(changed)}")
    return "; ".join(parts)


def _targets(nodes: Sequence[GraphNode]) -> str:
    counted = Counter(node.target for node in nodes)
    shown = [target if number == 1 else f"{target} ({number} times)" for target, number in counted.most_common()]
    more = len(shown) - _MOST_NODES
    return ", ".join(shown[:_MOST_NODES]) + (f" and {more} more" if more > 0 else "")


def _kernels(a: Compile, b: Compile, old: Sequence[Kernel], new: Sequence[Kernel]) -> Difference | None:
    """Which kernels and library calls there are, by what is in their names."""
    was, now = kernel_names(a, old), kernel_names(b, new)
    if was == now:
        return None
    parts = [f"{count(was.total(), 'kernel or library call', 'kernels and library calls')}, now {now.total()}"]
    if came := now - was:
        parts.append(f"new: {listed(sorted(came))}")
    if went := was - now:
        parts.append(f"gone: {listed(sorted(went))}")
    return Difference("kernels", "; ".join(parts), b.file, b.line, b.id)


def kernel_names(compile: Compile, kernels: Sequence[Kernel]) -> Counter[str]:
    """How many kernels and library calls of a compile have a name, without its number."""
    return Counter(_NUMBER.sub("", kernel.name) for kernel in kernels if kernel.compile == compile.id)


def _peak(store: Store, run: str, compile: Compile) -> int | None:
    """Bytes that a compile's programs hold at most, with their inputs; None without a memory plan."""
    peaks = []
    for stage in compile.stages:
        if role_of(stage.name) is Role.MEMORY and not stage.target:
            try:
                plan = store.stage_data(run, stage.id)
                live = max((int(step["live"]) for step in plan["steps"]), default=0)
                peaks.append(live + sum(int(bytes) for _, bytes in plan["inputs"]))
            except (LookupError, TypeError, ValueError):
                continue
    return max(peaks, default=None)
