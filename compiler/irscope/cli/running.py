"""``irscope run``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import sqlite3
import sys

from irscope.cli.limits import budget_of_flags
from irscope.cli.progress import ProgressLine
from irscope.cli.report import report_lines, use_cells
from irscope.cli.text import Paint, to_stdout
from irscope.driver.driver import RunSpec, execute
from irscope.findings.control import controlled, read_baseline, write_baseline
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import CaptureGap, EntryKind, GapSeen, Lane, Message, OutcomeKind, to_json
from irscope.provenance.trails import keep_trails
from irscope.store.store import Store
from irscope.usercode.notebooks import is_notebook


def run(options: argparse.Namespace) -> int:
    """Runs the script and prints its report."""
    entry = EntryKind.MODULE if options.module else EntryKind.PYTEST if options.pytest else EntryKind.SCRIPT
    if entry is EntryKind.SCRIPT and is_notebook(options.script):
        entry = EntryKind.NOTEBOOK
    spec = RunSpec(
        script=options.module or options.pytest or options.script,
        args=tuple(options.args),
        lane=Lane(options.lane),
        python=options.python,
        cwd=options.cwd,
        budget=budget_of_flags(options),
        entry=entry,
        symbolic_trace=options.symbolic_trace,
        pipeline=pipeline_named(options.pipeline).name,
    )
    baseline = read_baseline(options.baseline) if options.baseline else {}
    progress = ProgressLine()
    with Store(options.store) as store:
        # With --json stdout is the report's alone, so the script prints to our stderr.
        stdout = sys.stderr.fileno() if options.json else None
        # What is to be counted has to pass through our hands.
        on_output = _Echo(to_stderr=options.json) if spec.budget.output else None
        gaps: dict[CaptureGap, None] = {}

        def on_message(message: Message) -> None:
            progress.see(message)
            if isinstance(message, GapSeen):
                gaps[message.gap] = None

        run_id, outcome = execute(spec, store, on_message=on_message, on_output=on_output, stdout=stdout)
        if on_output is not None:
            on_output.end_line()
        progress.wipe()
        # On a full disk the store knows neither the outcome nor the gaps.
        report = store.report(run_id)
        gaps.update(dict.fromkeys(report.capture_gaps))
        report = dataclasses.replace(report, outcome=outcome, capture_gaps=tuple(gaps))
        use_cells(store, run_id)
        report = controlled(report, spec.lane, dict(options.severity), baseline)
        if options.write_baseline:
            write_baseline(options.write_baseline, report.findings)
        if options.json:
            print(json.dumps(to_json(report), indent=1))
        else:
            to_stdout(report_lines(report, Paint(sys.stdout)))
        with contextlib.suppress(sqlite3.Error):
            gc.disable()  # from here on everything is in use until the end, where `main` sets it back
            keep_trails(store, run_id)
            store.tidy(run_id)
    return 3 if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR else 0


class _Echo:
    """Prints what the script prints, as it comes."""

    def __init__(self, to_stderr: bool) -> None:
        self._streams = {"stdout": sys.stderr if to_stderr else sys.stdout, "stderr": sys.stderr}
        self._last = "\n"

    def end_line(self) -> None:
        """The script may have been stopped in the middle of a line."""
        if self._last != "\n":
            self("stdout", "\n")

    def __call__(self, stream: str, text: str) -> None:
        self._last = text[-1:] or self._last
        self._streams[stream].write(text)
        self._streams[stream].flush()
