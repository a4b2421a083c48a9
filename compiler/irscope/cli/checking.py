"""``irscope check``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sqlite3
import sys
from collections.abc import Mapping

from irscope.cli.check_arguments import limits_of
from irscope.cli.check_formats import WITH_EDITS, written
from irscope.cli.check_formats.github import Quoted
from irscope.cli.checked import Check, ScriptCheck
from irscope.cli.limits import budget_of_flags
from irscope.cli.progress import ProgressLine
from irscope.cli.report import use_cells
from irscope.cli.running import Echo, refuse_unwritable
from irscope.cli.text import to_stdout
from irscope.driver.driver import RunSpec, execute
from irscope.findings.control import baseline_of, controlled, read_baseline, write_baseline
from irscope.findings.verdicts import BOUNDS, Verdict, fails, lane_for, measured, verdict_on
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import SCHEMA, CaptureGap, EntryKind, GapSeen, Lane, Message, Report
from irscope.store.store import Store
from irscope.usercode.notebooks import is_notebook
from irscope.usercode.writing import write_file


def check(options: argparse.Namespace) -> int:
    """Runs the scripts and prints what fails; returns the exit code.

    Raises LookupError if a script is not there; none has run then.
    """
    limits = limits_of(options)
    lane = _lane(options, limits)
    for script in options.scripts:
        if not os.path.exists(script):  # before the first of them runs, which may take long
            raise LookupError(f"File not found: {os.path.abspath(script)}.")
    baseline = read_baseline(options.baseline) if options.baseline else {}
    for path in filter(None, (options.output, options.write_baseline)):
        refuse_unwritable(path)
    with Store(options.store) as store:
        reports = [_run(script, lane, options, store) for script in options.scripts]

        def shown_of(report: Report) -> Report:
            use_cells(store, report.run)
            return controlled(report, lane, dict(options.severity), baseline)

        if options.write_baseline:
            baseline = {}
            causes = {finding.cause: finding for report in reports for finding in shown_of(report).findings}
            baseline = baseline_of(causes.values())
        scripts = [
            judged(name, report, shown_of(report), options.fail_on, limits)
            for name, report in zip(options.scripts, reports, strict=True)
        ]
        result = _summed(scripts)
        try:
            _print(result, options)
        finally:
            if options.write_baseline:
                write_baseline(options.write_baseline, causes.values())
    return result.exit_code


def judged(
    name: str, report: Report, shown: Report, fail_on: tuple[str, ...], limits: Mapping[str, float]
) -> ScriptCheck:
    """The check of one script.

    Args:
        name: The script as it was typed.
        report, shown: As the run left it, and with the findings that are not hidden.
        fail_on: From `irscope.findings.verdicts.read_fail_on`.
        limits: Bounds by name.
    """
    failing = tuple(at for at, finding in enumerate(shown.findings) if fails(finding, fail_on))
    numbers = measured(report, shown, limits)
    verdict = verdict_on(shown.outcome, [shown.findings[at] for at in failing], numbers)
    return ScriptCheck(name, verdict, shown, failing, numbers)


def _summed(scripts: list[ScriptCheck]) -> Check:
    verdict = Verdict.worst([script.verdict for script in scripts])
    return Check(SCHEMA, verdict, verdict.exit_code, tuple(scripts))


def _lane(options: argparse.Namespace, limits: Mapping[str, float]) -> Lane:
    """The lane that was asked for, or that is needed.  Raises LookupError if the two do not fit."""
    needed = lane_for(options.fail_on, limits)
    if options.lane == Lane.FAST.value and needed is Lane.DEEP:
        flags = [BOUNDS[name].flag for name in limits if Lane.FAST not in BOUNDS[name].lanes] or ["--fail-on"]
        raise LookupError(f"--lane fast: {' and '.join(flags)} needs the deep lane. Leave --lane out.")
    return Lane(options.lane) if options.lane else needed


def _run(script: str, lane: Lane, options: argparse.Namespace, store: Store) -> Report:
    """Runs a script; what it prints goes where it does not disturb the format."""
    spec = RunSpec(
        script=script,
        args=tuple(options.args),
        lane=lane,
        python=options.python,
        cwd=options.cwd,
        budget=budget_of_flags(options),
        entry=EntryKind.NOTEBOOK if is_notebook(script) else EntryKind.SCRIPT,
        symbolic_trace=False,
        pipeline=pipeline_named(options.pipeline).name,
    )
    progress = ProgressLine()
    gaps: dict[CaptureGap, None] = {}

    def on_message(message: Message) -> None:
        progress.see(message)
        if isinstance(message, GapSeen):
            gaps[message.gap] = None

    to_stderr = options.format != "text" and not options.output
    echo = Quoted() if options.format == "github" else Echo(to_stderr) if spec.budget.output else None
    stdout = sys.stderr.fileno() if to_stderr else None
    sys.stdout.flush()
    run, outcome = execute(spec, store, on_message=on_message, on_bytes=echo, stdout=stdout)
    if echo is not None:
        echo.end_line()
    progress.wipe()
    report = store.report(run)
    gaps.update(dict.fromkeys(report.capture_gaps))
    with contextlib.suppress(sqlite3.Error):
        store.tidy(run)
    return dataclasses.replace(report, outcome=outcome, capture_gaps=tuple(gaps))


def _print(result: Check, options: argparse.Namespace) -> None:
    if options.format in WITH_EDITS:
        result = result
    text = written(options.format, result)
    try:
        if options.output:
            write_file(options.output, text.encode("utf-8", "backslashreplace"))
            text = written("text", result)
    finally:
        to_stdout(text.removesuffix("\n").split("\n"))
