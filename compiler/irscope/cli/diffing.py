"""``irscope diff``: what changed between two runs, or between two stages."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterable, Sequence

from irscope.cli.autotuning import tuned_lines
from irscope.cli.measured import change_lines
from irscope.cli.text import Paint, short_path, to_stdout
from irscope.comparing.autotuning import tuned_diff
from irscope.comparing.graphs import GraphDiff, diff_graphs
from irscope.comparing.runs import Change, CompileChange, RunDiff, diff_runs, pipeline_words
from irscope.ir.graphs import GraphNode
from irscope.pipelines.registry import stage_kind
from irscope.profiling.changes import profile_diff
from irscope.protocol import Compile, Finding, Kernel, Report, StageRef, to_json
from irscope.store.store import Store
from irscope.vocabulary.lanes import DEFAULT_PIPELINE
from irscope.vocabulary.suggestions import did_you_mean, listed
from irscope.vocabulary.units import count, duration
from irscope.vocabulary.visible import printable

_SHOWN = 40
"""Nodes of one sort that are listed on a terminal."""


def diff(options: argparse.Namespace) -> int:
    """Prints what changed.  Raises LookupError if a run or a stage is missing, or there is nothing to compare."""
    if options.python:
        from irscope.cli.versioning import compare_environments  # here: no other comparison runs anything

        options.runs = [*options.runs, *options.args]
        return compare_environments(options)
    if options.output or options.args:
        raise LookupError("-o and arguments after -- belong to `irscope diff --python OLD --python NEW SCRIPT`.")
    with Store(options.store) as store:
        runs = [store.find_run(name) for name in options.runs]
        if options.stage:
            return _stages(store, runs or [store.find_run()], options)
        targets = _targets(options.target)
        if targets and targets[0] != targets[1]:
            runs = (runs or [store.find_run()]) * (2 if len(runs) < 2 else 1)
        before, after = _two_runs(store, runs)
        found = diff_runs(store, before, after, targets)
        measured, tuned = (
            (None, None) if targets else (profile_diff(store, before, after), tuned_diff(store, before, after))
        )
    if options.json:
        more = {"same": found.same, "measured": to_json(measured), "autotuning": to_json(tuned)}
        print(json.dumps({**to_json(found), **more}, indent=1))
    else:
        paint = Paint(sys.stdout)
        to_stdout([
            *run_lines(found, paint),
            *(change_lines(measured, paint) if measured else []),
            *(tuned_lines(tuned, paint) if tuned else []),
        ])  # fmt: skip
    return 0


def _targets(given: str | None) -> tuple[str, str] | None:
    """The targets of the older and of the newer run; None without ``--target``."""
    names = [name.strip() for name in (given or "").split(",") if name.strip()]
    if len(names) > 2 or (given is not None and not names):
        raise LookupError("--target names one target, or two with a comma between them: --target h100,mi300x.")
    return (names[0], names[-1]) if names else None


def _two_runs(store: Store, runs: list[str]) -> tuple[str, str]:
    """The two that were named, or the named (else the newest) one and the one before it of the same script, lane
    and pipeline."""
    if len(runs) == 2:
        return runs[0], runs[1]
    if len(runs) > 2:
        raise LookupError("`irscope diff` compares two runs.")
    after = runs[0] if runs else store.find_run()
    report, lane = store.report(after), store.lane_of(after)
    alike = (lane, report.pipeline)
    older = [run.run for run in store.runs(limit=1000, script=report.script) if (run.lane, run.pipeline) == alike]
    before = older[older.index(after) + 1 :] if after in older else []  # what is damaged is not listed
    if not before:
        through = "" if report.pipeline == DEFAULT_PIPELINE else f" through {report.pipeline}"
        raise LookupError(
            f"{after} is the first {lane.value} run of {report.script}{through}, "
            "so no earlier run can be compared with it."
        )
    return before[0], after


# --- stages -----------------------------------------------------------------------------------------------------------


def _stages(store: Store, runs: list[str], options: argparse.Namespace) -> int:
    names: list[str] = options.stage
    if len(names) > 2 or len(runs) > 2 or (len(names) == 1 and len(runs) == 1):
        raise LookupError("Name two stages (--stage A B), or one stage and two runs.")
    first, last = store.report(runs[0]), store.report(runs[-1])
    a, b = find_stage(first, names[0], options.compile), find_stage(last, names[-1], options.compile)
    before, after = store.stage_text(first.run, a.id), store.stage_text(last.run, b.id)
    found = None
    if not options.text and stage_kind(a.name).is_graph and stage_kind(b.name).is_graph:
        try:
            found = diff_graphs(before, after)
        except ValueError:
            found = None  # a text that cannot be read as a graph is compared as text
    if options.json:
        text = None if found else _text_diff(before, after, a.id, b.id)
        print(json.dumps({"before": a.id, "after": b.id, "graph": to_json(found), "text": text}, indent=1))
    elif found is not None:
        to_stdout(graph_lines(found, a.id, b.id, Paint(sys.stdout)))
    else:
        to_stdout(_painted(_text_diff(before, after, a.id, b.id), Paint(sys.stdout)) or ["The texts are the same."])
    return 0


def find_stage(report: Report, wanted: str, compile: str | None = None) -> StageRef:
    """A stage by its id, else the only one of that name.  Raises LookupError if there is none, or more than one."""
    stages = [stage for c in report.with_predictions if compile in (None, c.id) for stage in c.stages]
    named = [stage for stage in stages if stage.name == wanted and not stage.passed]
    found = [stage for stage in stages if stage.id == wanted] or [stage for stage in named if not stage.target] or named
    if len(found) == 1:
        return found[0]
    if not found:
        raise no_stage(report, wanted, stages)
    raise LookupError(f"{wanted} names several stages. Choose one: {listed(stage.id for stage in found)}.")


def no_stage(report: Report, wanted: str, stages: Sequence[StageRef]) -> LookupError:
    """The error for a stage that is not among these: what there is, and what was perhaps meant."""
    names = [stage.name for stage in stages]
    near = did_you_mean(wanted, [stage.id for stage in stages] if "/" in wanted else names)
    return LookupError(f"Run {report.run} has no stage {wanted}. It has: {listed(names)}.{near}")


def _text_diff(before: str, after: str, a: str, b: str) -> list[str]:
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), a, b, lineterm=""))


def _painted(lines: list[str], paint: Paint) -> list[str]:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return [paint(printable(line), *filter(None, [styles.get(line[:1])])) for line in lines]


def graph_lines(found: GraphDiff, a: str, b: str, paint: Paint) -> list[str]:
    """A diff of two graphs for people."""
    lines = [paint(f"{printable(a)} → {printable(b)}", "bold")]
    if found.same:
        return [*lines, f"The same graph: {count(len(found.pairs), 'node')}."]
    for mark, style, nodes in (("-", "red", found.removed), ("+", "green", found.added)):
        lines += [paint(f"  {mark} {_node(node)}", style) for node in nodes[:_SHOWN]]
        if len(nodes) > _SHOWN:
            lines.append(paint(f"  {mark} and {len(nodes) - _SHOWN} more", style))
    for change in found.changed[:_SHOWN]:
        before, after = change.before, change.after
        name = before.name if before.name == after.name else f"{before.name} → {after.name}"
        detail = f"{before.detail} → {after.detail}" if "type" in change.what else after.detail
        lines.append(
            paint("  ~ ", "yellow")
            + printable(f"{name} = {after.target}  {detail}".rstrip())
            + paint(f"  {', '.join(change.what)}", "dim")
        )
    if len(found.changed) > _SHOWN:
        lines.append(paint(f"  ~ and {len(found.changed) - _SHOWN} more", "yellow"))
    kept = len(found.pairs) - len(found.changed)
    lines.append(
        f"{len(found.added)} added, {len(found.removed)} removed, {len(found.changed)} changed, {kept} the same"
    )
    return lines


def _node(node: GraphNode) -> str:
    at = f"  # {short_path(node.origin.file)}:{node.origin.line}" if node.origin else ""
    return printable(f"{node.name} = {node.target}({', '.join(node.inputs)})  {node.detail}").rstrip() + at


# --- runs -------------------------------------------------------------------------------------------------------------


def run_lines(found: RunDiff, paint: Paint) -> list[str]:
    """A diff of two runs for people: what is new and what is gone, findings first."""
    before, after = (
        f"{run} for {target}" if target else run
        for run, target in zip((found.before, found.after), found.targets or ("", ""), strict=True)
    )
    lines = [paint(f"{printable(before)} → {printable(after)}", "bold")]
    if found.pipelines:
        lines.append(paint(printable(pipeline_words(found)), "yellow"))
    for mark, style, findings in (("+", "red", found.findings_new), ("-", "green", found.findings_gone)):
        lines += [paint(f"  {mark} ", style) + _finding(finding, paint) for finding in findings]
    for mark, style, compiles in (("-", "red", found.compiles_gone), ("+", "green", found.compiles_new)):
        lines += [paint(f"  {mark} compile {_compile(compile)}", style) for compile in compiles]
    lines += [_compile_change(change, paint) for change in found.compiles_changed]
    lines += [
        paint("  ~ ", "yellow") + printable(f"kernel {one.name} ({one.language})") for one in found.kernels_changed
    ]
    for mark, style, kernels in (("-", "red", found.kernels_gone), ("+", "green", found.kernels_new)):
        lines += [paint(f"  {mark} {_kernel(kernel)}", style) for kernel in kernels]
    lines.append(
        f"findings: {len(found.findings_new)} new, {len(found.findings_gone)} gone, {found.findings_kept} kept; "
        f"compiles: {len(found.compiles_new)} new, {len(found.compiles_gone)} gone, "
        f"{len(found.compiles_changed)} changed, {found.compiles_same} {'in both' if found.pipelines else 'the same'}; "
        f"kernels: {_generated(found.kernels_new)} new, {_generated(found.kernels_gone)} gone, "
        f"{f'{len(found.kernels_changed)} changed, ' if found.targets else ''}{found.kernels_kept} kept"
    )
    lines.append(
        f"compile time {duration(found.compile_seconds.before)} → {duration(found.compile_seconds.after)}, "
        f"the run {duration(found.seconds.before)} → {duration(found.seconds.after)}"
    )
    return lines


def _compile_change(change: CompileChange, paint: Paint) -> str:
    facts = []
    if change.outcome is not None:
        facts.append(f"{change.outcome[0]} → {change.outcome[1]}")
    if change.ops is not None:
        facts.append(f"{_numbers(change.ops)} ops")
    if change.kernels is not None:
        facts.append(f"{_numbers(change.kernels)} kernels")
    if change.stages:
        facts.append(printable(f"changed: {', '.join(change.stages)}"))
    ids = change.before if change.before == change.after else f"{change.before} → {change.after}"
    where = f"{short_path(change.file)}:{change.line}" if change.file else ""
    title = printable(f"compile {ids} {change.title} {where}".rstrip())
    return paint("  ~ ", "yellow") + title + paint(f"  {'; '.join(facts)}", "dim")


def _finding(finding: Finding, paint: Paint) -> str:
    start = finding.range.start
    where = f"{short_path(finding.file)}:{start.line}:{start.column + 1}"
    return f"{where}  {paint(printable(f'{finding.kind} {finding.code}'), 'bold')}  {printable(finding.message)}"


def _kernel(kernel: Kernel) -> str:
    if kernel.is_generated:
        return printable(f"kernel {kernel.name} ({kernel.language}, {kernel.compile})")
    return printable(f"library call {kernel.name} ({kernel.compile})")


def _generated(kernels: Iterable[Kernel]) -> int:
    return sum(kernel.is_generated for kernel in kernels)


def _compile(compile: Compile) -> str:
    at = f" {short_path(compile.file)}:{compile.line}" if compile.file else ""
    return printable(f"{compile.id} {compile.title}") + at


def _numbers(change: Change) -> str:
    return f"{change.before:g} → {change.after:g}"
