"""What changed between two runs of a script: before an edit and after it, or under other settings.

Findings and compiles are matched by what they are and where they are; since an edit moves lines, a line of the
older run is first looked up in the newer text (`Moved`), which the store keeps with each run.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from irscope.comparing.texts import LineMatch
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile, CompileOutcome, Finding, Kernel, Report
from irscope.store.store import Store
from irscope.usercode.reading import real_path
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Change:
    """A number before and after."""

    before: float
    after: float


@dataclass(frozen=True)
class CompileChange:
    """A compile that both runs have, with what differs; a field is None if it is the same."""

    before: str
    after: str
    function: str
    file: str
    line: int
    outcome: tuple[str, str] | None
    ops: Change | None
    kernels: Change | None
    stages: tuple[str, ...]
    """Names of the stages whose text differs."""
    qualified: str = ""
    """As in `Compile`, of the newer run."""
    title: str = ""
    """As in `Compile`, of the newer run."""


@dataclass(frozen=True)
class RunDiff:
    """From one run to another.  Kernels are the same where their code is, whatever their names are; the number of those
    kept is of generated ones."""

    before: str
    after: str
    findings_new: tuple[Finding, ...]
    findings_gone: tuple[Finding, ...]
    findings_kept: int
    compiles_new: tuple[Compile, ...]
    compiles_gone: tuple[Compile, ...]
    compiles_changed: tuple[CompileChange, ...]
    compiles_same: int
    kernels_new: tuple[Kernel, ...]
    kernels_gone: tuple[Kernel, ...]
    kernels_kept: int
    compile_seconds: Change
    seconds: Change
    targets: tuple[str, ...] = ()
    """The targets of the predictions in the older and the newer run; none: what the script got itself."""
    pipelines: tuple[str, ...] = ()
    """The pipelines of the older and the newer run, if they went through different ones."""
    shared_stages: tuple[str, ...] = ()
    """For runs of different pipelines: names of the stages that both have, which are compared."""
    kernels_changed: tuple[Kernel, ...] = ()
    """Kernels of two predictions that have one name and another code, as in the newer one; they are neither new nor gone."""

    @property
    def same(self) -> bool:
        """Only times differ."""
        return not (
            self.pipelines or self.findings_new or self.findings_gone or self.compiles_new or self.compiles_gone
            or self.compiles_changed or self.kernels_new or self.kernels_gone or self.kernels_changed
        )  # fmt: skip


def diff_runs(store: Store, before: str, after: str, targets: tuple[str, str] | None = None) -> RunDiff:
    """Compares two stored runs.

    Args:
        targets: Compare the predictions of the older run for the first of them with those of the newer run for the
            second.  Then kernels are the same if only the figures of the device in their source differ.

    Raises LookupError if one of the runs is not there, or has no predictions for its target, or only such that failed.
    """
    old, new = store.report(before), store.report(after)
    if targets:
        old, new = (_predicted(one, target) for one, target in zip((old, new), targets, strict=True))
    moved = Moved(store.sources(before), store.sources(after))
    new_findings, gone_findings, kept = _findings(old, new, moved)
    pairs, added, removed = _compiles(old, new, moved)
    if old.pipeline != new.pipeline and len(added) == len(removed) == 1:
        # One program: some pipelines list it as its method, others as what is around it, such as a decorator's wrapper.
        pairs, added, removed = [*pairs, (removed[0], added[0])], (), ()
    changes = [_compile_change(store, old, new, a, b) for a, b in pairs]
    new_kernels, gone_kernels, kept_kernels = _kernels(store, old, new)
    new_kernels, gone_kernels, changed_kernels = _by_name(new_kernels, gone_kernels, targets is not None)
    return RunDiff(
        before=before,
        after=after,
        findings_new=new_findings,
        findings_gone=gone_findings,
        findings_kept=kept,
        compiles_new=added,
        compiles_gone=removed,
        compiles_changed=tuple(change for change in changes if change is not None),
        compiles_same=sum(change is None for change in changes),
        kernels_new=new_kernels,
        kernels_gone=gone_kernels,
        kernels_changed=changed_kernels,
        kernels_kept=kept_kernels,
        compile_seconds=Change(sum(c.seconds for c in old.compiles), sum(c.seconds for c in new.compiles)),
        seconds=Change(old.outcome.seconds, new.outcome.seconds),
        targets=targets or (),
        pipelines=(old.pipeline, new.pipeline) if old.pipeline != new.pipeline else (),
        shared_stages=_shared_stages(old, new) if old.pipeline != new.pipeline else (),
    )


def _by_name(
    new: Sequence[Kernel], gone: Sequence[Kernel], predicted: bool
) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...], tuple[Kernel, ...]]:
    """Kernels that are new, gone, and changed: of two predictions a name that both have is the same kernel."""
    both = {kernel.name for kernel in new} & {kernel.name for kernel in gone} if predicted else set()
    return (
        tuple(kernel for kernel in new if kernel.name not in both),
        tuple(kernel for kernel in gone if kernel.name not in both),
        tuple(kernel for kernel in new if kernel.name in both),
    )


def _predicted(report: Report, target: str) -> Report:
    """What a run predicted for a target.  Raises LookupError if all of it failed: two that failed would be the same."""
    found = report.of_target(target)
    if all(each.outcome is CompileOutcome.ERROR for each in found.compiles):
        about = [gap.why for gap in report.capture_gaps if gap.what.endswith(f" for {target}")]
        raise LookupError(f"Run {report.run} predicted no kernels for {target}. {about[0] if about else ''}".rstrip())
    return found


def pipeline_words(found: RunDiff) -> str:
    """What can be compared of runs that went through different pipelines; empty if they went through the same one."""
    if not found.pipelines:
        return ""
    before, after = found.pipelines
    compared = "findings, compiles, kernels and times"
    if not found.shared_stages:
        return f"Two pipelines: {before} → {after}. They have no stage in common: only {compared} are compared."
    stages = ", ".join(found.shared_stages)
    return f"Two pipelines: {before} → {after}. Compared are {compared}, and the stages that both have: {stages}."


def _shared_stages(old: Report, new: Report) -> tuple[str, ...]:
    """In the order of the newer pipeline."""
    first, second = (
        {stage.name: None for compile in report.compiles for stage in compile.stages} for report in (old, new)
    )
    return tuple(name for name in second if name in first and stage_kind(name).is_compared)


class Moved:
    """Where the lines of the older texts are in the newer ones."""

    def __init__(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        self._before, self._after = ({real_path(file): text for file, text in each.items()} for each in (before, after))
        self._lines: dict[str, dict[int, int]] = {}

    def line(self, file: str, line: int) -> int | None:
        """The line of the newer text; None if it was deleted or rewritten.

        The line itself if the file's texts are not known, or are the same.
        """
        file = real_path(file)
        if self._before.get(file) == self._after.get(file) or file not in self._before or file not in self._after:
            return line
        if file not in self._lines:
            self._lines[file] = LineMatch(self._before[file], self._after[file]).lines()
        return self._lines[file].get(line)


def _findings(old: Report, new: Report, moved: Moved) -> tuple[tuple[Finding, ...], tuple[Finding, ...], int]:
    """New ones, gone ones, and how many are in both."""
    left: dict[tuple[str, str, str, int | None], list[Finding]] = defaultdict(list)
    for finding in old.findings:
        line = moved.line(finding.file, finding.range.start.line)
        left[finding.kind, finding.code, real_path(finding.file), line].append(finding)
    added = []
    for finding in new.findings:
        same_line = left.get((finding.kind, finding.code, real_path(finding.file), finding.range.start.line))
        if same_line:
            # Several on one line: the one with the same words first.
            same_line.remove(next((f for f in same_line if f.message == finding.message), same_line[0]))
        else:
            added.append(finding)
    gone = [finding for rest in left.values() for finding in rest]
    return tuple(added), tuple(f for f in old.findings if f in gone), len(new.findings) - len(added)


_Pairs = list[tuple[Compile, Compile]]


def _compiles(old: Report, new: Report, moved: Moved) -> tuple[_Pairs, tuple[Compile, ...], tuple[Compile, ...]]:
    """Pairs of the n-th compiles of one function, then what only the newer and what only the older run has."""
    left: dict[tuple[str, str, int | None], list[Compile]] = defaultdict(list)
    for compile in old.compiles:
        left[_name(compile), real_path(compile.file), moved.line(compile.file, compile.line)].append(compile)
    pairs: _Pairs = []
    late = []
    for compile in new.compiles:
        same = left.get((_name(compile), real_path(compile.file), compile.line))
        if same:
            pairs.append((same.pop(0), compile))
        else:
            late.append(compile)
    # A function whose first line was rewritten is still that function.
    by_name: dict[tuple[str, str], list[Compile]] = defaultdict(list)
    for (name, file, _), rest in left.items():
        by_name[name, file] += rest
    added = []
    for compile in late:
        rest = by_name.get((_name(compile), real_path(compile.file)), [])
        if rest:
            pairs.append((rest.pop(0), compile))
        else:
            added.append(compile)
    gone = [compile for rest in by_name.values() for compile in rest]
    return pairs, tuple(added), tuple(c for c in old.compiles if c in gone)


def _name(compile: Compile) -> str:
    """With its classes: most methods are called ``forward``.  Without the numbers of a resume function's name, which shift
    with every edit."""
    around = compile.qualified.rpartition(".")[0]
    function = re.sub(r"(torch_dynamo_resume_in_.*?)_at_\d+", r"\1", compile.function)
    return f"{around}.{function}"


def _compile_change(store: Store, old: Report, new: Report, a: Compile, b: Compile) -> CompileChange | None:
    kernels = Change(_count(old.kernels, a.id), _count(new.kernels, b.id))
    stages = _changed_stages(store, old.run, a, new.run, b)
    outcome = None if a.outcome is b.outcome else (a.outcome.value, b.outcome.value)
    ops = None if a.graph_ops == b.graph_ops else Change(a.graph_ops, b.graph_ops)
    if not stages and outcome is None and ops is None and kernels.before == kernels.after:
        return None
    return CompileChange(
        a.id, b.id, b.function, b.file, b.line, outcome, ops,
        None if kernels.before == kernels.after else kernels, stages, b.qualified, b.title,
    )  # fmt: skip


def _count(kernels: Iterable[Kernel], compile: str) -> int:
    return sum(kernel.compile == compile and kernel.is_generated for kernel in kernels)


def _changed_stages(store: Store, run: str, a: Compile, other: str, b: Compile) -> tuple[str, ...]:
    """Stages that both have and whose texts differ in more than the numbers of lines and compiles."""
    mine, theirs = (
        {_in_compile(compile, stage.id): stage for stage in compile.stages if stage_kind(stage.name).is_compared}
        for compile in (a, b)
    )
    return tuple(
        name
        for name in mine
        if name in theirs
        and _plain(store.stage_text(run, mine[name].id), a) != _plain(store.stage_text(other, theirs[name].id), b)
    )


def _in_compile(compile: Compile, stage: str) -> str:
    """The id of a stage without that of its compile; a prediction shares the first stages of the script's own."""
    own = f"{compile.id}/"
    return stage.removeprefix(own) if stage.startswith(own) else stage.partition("/")[2].partition("/")[2]


_DEVICE = re.compile(
    r"DeviceProperties\([^()]*\)|'backend_hash': '[0-9A-F]*',? ?"
    # Inductor says these for AMD's GPUs alone.
    r"|,? ?'is_hip': True|, \['tt\.pointer_range', 32\]"
)
_PASSING = re.compile(
    r"# kernel path: .*|# (?:.*? )??File: .*|# AOT ID: .*|#.*Source [nN]odes?.*|# Topologically .*|\[Provenance debug.*"
    r"|\s*(?:torch::aot_inductor::)?RAIIAtenRecordFunctionHandle .*"  # of a profile
    r"|#include <torch/csrc/inductor/aoti_runtime/utils\.h>\n"  # for it
)


def _plain(text: str, of: Compile | Kernel) -> str:
    """Without what a profile adds, and comments that name lines and compiles; of a prediction also without the figures of the device."""
    return _PASSING.sub("", _DEVICE.sub("", text) if of.target else text)


def _kernels(store: Store, old: Report, new: Report) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...], int]:
    left: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in old.kernels:
        left[_code_of(store, old.run, kernel)].append(kernel)
    added, kept = [], 0
    for kernel in new.kernels:
        same = left.get(_code_of(store, new.run, kernel))
        if same:
            same.pop(0)
            kept += kernel.is_generated
        else:
            added.append(kernel)
    gone = [kernel for rest in left.values() for kernel in rest]
    return tuple(added), tuple(k for k in old.kernels if k in gone), kept


def _code_of(store: Store, run: str, kernel: Kernel) -> str:
    """Names a kernel's code without the kernel's own name; an extern kernel by what it calls."""
    if not kernel.is_generated:
        return kernel.name
    text = re.sub(
        r"[\'\"]?(backend_hash|kernel_name)[\'\"]?: [\'\"][^\'\"]*[\'\"]", "", store.stage_text(run, kernel.stage)
    )
    return hashlib.sha256(_plain(text, kernel).replace(kernel.name, "").encode("utf-8", "surrogatepass")).hexdigest()
