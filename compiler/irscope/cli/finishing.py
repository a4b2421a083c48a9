"""The end of ``irscope run``: what is only needed when the script has ended.

`irscope.cli.running` imports this while the script imports torch.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import sqlite3
import sys
from collections.abc import Iterable, Mapping

from irscope.cli.progress import ProgressLine
from irscope.cli.report import document, report_lines, use_cells
from irscope.cli.text import Paint, to_stdout
from irscope.driver.driver import RunSpec
from irscope.findings.control import controlled, write_baseline
from irscope.protocol import CaptureGap, Outcome, OutcomeKind, Report
from irscope.provenance.trails import keep_trails
from irscope.store.store import Store
from irscope.system.streams import OutputError


def finish(
    options: argparse.Namespace,
    spec: RunSpec,
    store: Store,
    run: str,
    outcome: Outcome,
    *,
    gaps: Iterable[CaptureGap],
    baseline: Mapping[str, int],
    progress: ProgressLine,
) -> None:
    """Checks, prints and tidies up after a run.  Raises OutputError if the report cannot be printed.

    Args:
        gaps: Gaps that were told while the run went on: on a full disk the store knows neither these nor the outcome.
    """
    if options.check_without_compile:
        from irscope.driver.checking import check_without_compile

        if check_without_compile(spec, store, run, on_message=progress.see):
            outcome = store.report(run, sizes=False).outcome or outcome
    progress.wipe()
    report = store.report(run, sizes=options.json)
    all_gaps = tuple(dict.fromkeys((*gaps, *report.capture_gaps)))
    report = dataclasses.replace(report, outcome=outcome, capture_gaps=all_gaps)
    use_cells(store, run)
    report = controlled(report, spec.lane, dict(options.severity), baseline)
    try:
        finish_report(report, options)
    except OutputError as error:
        if outcome.kind is not OutcomeKind.ENVIRONMENT_ERROR:
            error.next_step = f"The run is stored: irscope show {run}"
        raise
    finally:
        with contextlib.suppress(sqlite3.Error):
            gc.disable()  # everything is now in use until the end, where `main` sets it back
            keep_trails(store, run)
            store.tidy(run, packs=False)  # the next run does it


def finish_report(report: Report, options: argparse.Namespace) -> None:
    """Prints the report of a run, and writes its baseline also where nothing can be printed.

    Raises OutputError and WriteError.
    """
    try:
        print_report(report, options.json)
    finally:
        if options.write_baseline:
            write_baseline(options.write_baseline, report.findings)


def print_report(report: Report, as_json: bool) -> None:
    """Prints the report of a run."""
    if as_json:
        print(json.dumps(document(report), indent=1))
        sys.stdout.flush()
    else:
        to_stdout(report_lines(report, Paint(sys.stdout)))
