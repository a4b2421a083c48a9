"""Why two kernels of a run are two, or how they came to be one: what the stage ``fusion`` says about a pair.

The layout of that stage's data is that of `irscope.pipeline_captures.inductor.fusion`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irscope.ir.fusion_reasons import told
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Origin, Report, StageRef
from irscope.provenance import Element, Provenance, chain
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role
from irscope.vocabulary.suggestions import did_you_mean, listed


@dataclass(frozen=True)
class Side:
    """Nodes of Inductor's schedule before fusion, the post-grad nodes in them, and the user's lines."""

    nodes: tuple[str, ...]
    operations: tuple[str, ...]
    origins: tuple[Origin, ...]


@dataclass(frozen=True)
class Decision:
    """What Inductor decided on a pair.

    Args:
        kind: ``vertical`` (the second reads what the first writes), ``horizontal`` (they share what they read) or
            ``template``.
        reason: Inductor's words where it refused, its score where it fused.
        buffers: What both touch, of a refused pair.
    """

    fused: bool
    first: Side
    second: Side
    kind: str
    reason: str
    buffers: tuple[str, ...] = ()


@dataclass(frozen=True)
class FusionAnswer:
    """What there is to say of two things in one schedule.

    Args:
        stage: Id of the stage ``fusion``.
        together: Both ended in one kernel.
        summary: The answer in a sentence.
        decisions: What Inductor decided on parts of the one against parts of the other.
    """

    compile: str
    stage: str
    first: str
    second: str
    together: bool
    summary: str
    decisions: tuple[Decision, ...]


def explain_fusion(
    store: Store, reports: Sequence[Report], first: str, second: str, compile: str | None = None
) -> list[FusionAnswer]:
    """Answers for each schedule that has both.

    Args:
        reports: The reports of one run: as it was, and its predictions.
        first, second: A kernel, a node of the schedule (``op3``) or a node of the post-grad graph (``mul_1``).

    Raises LookupError if no schedule has both; the message says what there is.
    """
    answers = []
    known: list[str] = []
    for report in reports:
        thread = Provenance(store, report)
        of_fusion = [(one, stage) for one in report.compiles for stage in one.stages if compile in (None, one.id)]
        for one, stage in of_fusion:
            if role_of(stage.name) is not Role.FUSION:
                continue
            schedule = _Schedule(store, report, one.stages, stage, thread)
            known += schedule.kernels
            a, b = schedule.find(first), schedule.find(second)
            if a and b:
                answers.append(_answer(one.id, stage.id, schedule, (first, a), (second, b)))
    if not answers:
        names = listed(known) if known else "none; fusion is seen in the deep lane, with Inductor"
        near = "".join(did_you_mean(name, known) for name in (first, second) if name not in known)
        raise LookupError(f"No schedule in run {reports[0].run} has both {first} and {second}. Kernels: {names}.{near}")
    return answers


def is_fused(stage: StageRef) -> bool:
    """Whether a stage is the schedule after fusion."""
    return stage_kind(stage.name).is_fused


class _Schedule:
    """One graph's schedule: who is in which kernel."""

    def __init__(
        self, store: Store, report: Report, stages: tuple[StageRef, ...], fusion: StageRef, thread: Provenance
    ) -> None:
        schedules = chain.siblings(stages, fusion, Role.SCHEDULE)
        before, after = [one for one in schedules if not is_fused(one)], [one for one in schedules if is_fused(one)]

        def data(found: list[StageRef]) -> Any:
            return (store.stage_data(report.run, found[0].id) if found else None) or {}

        self.facts: Any = store.stage_data(report.run, fusion.id) or {}
        self.before = {node["name"]: node for node in data(before).get("nodes", ())}
        self.calls = data(chain.siblings(stages, fusion, Role.CODE)).get("calls", ())
        self.kernels = [call["kernel"] for call in self.calls]
        self._thread, self._stage = thread, before[0].id if before else ""
        self.kernel_of = {i: str(node.get("kernel") or "") for i, node in enumerate(data(after).get("nodes", ()))}
        self.home = {part: i for i, node in enumerate(data(after).get("nodes", ())) for part in node["parts"]}

    def find(self, name: str) -> set[str]:
        """The nodes before fusion that a name stands for."""
        if name in self.before:
            return {name}
        found = {node for call in self.calls if call["kernel"] == name for node in call["nodes"]}
        return found or {node for node, facts in self.before.items() if name in facts["origins"]}

    def apart(self, a: set[str], b: set[str]) -> str:
        """What two things are that were not fused: C++ code can have them in one function nevertheless."""
        of_both = [{self.kernel_of.get(self.home.get(node, -1), "") for node in nodes} - {""} for nodes in (a, b)]
        return "two loops of one kernel" if of_both[0] & of_both[1] else "two kernels"

    def side(self, facts: Any) -> Side:
        origins: dict[Origin, None] = {}
        for name in facts["nodes"]:
            if name in self.before:
                origins.update(dict.fromkeys(self._thread.origins(Element(self._stage, name, 0, 0))))
        return Side(tuple(facts["nodes"]), tuple(facts["origins"]), tuple(origins))

    def decisions(self, a: set[str], b: set[str]) -> Iterator[Decision]:
        for fused, rows in ((True, self.facts.get("fused", ())), (False, self.facts.get("refused", ()))):
            for row in rows:
                first, second = set(row["first"]["nodes"]), set(row["second"]["nodes"])
                if (first & a and second & b) or (first & b and second & a):
                    reason = row["score"] if fused else row["reason"]
                    buffers = tuple(row.get("buffers", ()))
                    yield Decision(
                        fused, self.side(row["first"]), self.side(row["second"]), row["kind"], reason, buffers
                    )


def _answer(
    compile: str, stage: str, schedule: _Schedule, first: tuple[str, set[str]], second: tuple[str, set[str]]
) -> FusionAnswer:
    (name, a), (other, b) = first, second
    together = bool({schedule.home.get(node) for node in a} & {schedule.home.get(node) for node in b} - {None})
    decisions = tuple(d for d in schedule.decisions(a, b) if d.fused or not together)
    return FusionAnswer(
        compile, stage, name, other, together, _summary(schedule, name, a, other, b, together, decisions), decisions
    )


def _summary(
    schedule: _Schedule,
    name: str,
    a: set[str],
    other: str,
    b: set[str],
    together: bool,
    decisions: tuple[Decision, ...],
) -> str:
    if a == b:
        return f"{name} and {other} are the same."
    if together:
        return f"{name} and {other} are in one kernel."
    for what, nodes in ((name, a), (other, b)):
        if any(_is_extern(schedule.before.get(node, {})) for node in nodes):
            return f"{what} is a call into a library, which Inductor cannot fuse with its own code."
    refused = [decision for decision in decisions if not decision.fused]
    if refused:
        return f"{name} and {other} are {schedule.apart(a, b)}: {told(refused[0].reason)}."
    shared = _buffers(schedule, a) & _buffers(schedule, b)
    if shared:
        return (
            f"{name} and {other} both touch {', '.join(sorted(shared))}, but Inductor gave no reason: it did not "
            "consider the pair, or an earlier fusion ruled it out."
        )
    return f"{name} and {other} share no buffer, so fusing them would save no memory traffic; Inductor does not try."


def _is_extern(facts: Any) -> bool:
    return "Extern" in facts.get("kind", "") or "Nop" in facts.get("kind", "")


def _buffers(schedule: _Schedule, nodes: set[str]) -> set[str]:
    rows = [schedule.before[node] for node in nodes if node in schedule.before]
    return {buffer for row in rows for buffer, _ in (*row["reads"], *row["writes"])}
