"""``irscope run``."""

from __future__ import annotations

import argparse
import json
import sys

from irscope.cli.progress import ProgressLine
from irscope.cli.report import report_lines
from irscope.cli.text import Paint, to_stdout
from irscope.control import controlled, read_baseline, write_baseline
from irscope.driver import RunSpec, execute
from irscope.protocol import Budget, Lane, OutcomeKind, to_json
from irscope.store import Store

_KEEP_BYTES = 1_000_000_000


def run(options: argparse.Namespace) -> int:
    """Runs the script and prints its report."""
    spec = RunSpec(
        script=options.script,
        args=tuple(options.args),
        lane=Lane(options.lane),
        python=options.python,
        cwd=options.cwd,
        budget=Budget(seconds=options.budget),
    )
    baseline = read_baseline(options.baseline) if options.baseline else {}
    progress = ProgressLine()
    with Store(options.store) as store:
        # With --json stdout is the report's alone, so the script prints to our stderr.
        stdout = sys.stderr.fileno() if options.json else None
        run_id, outcome = execute(spec, store, on_message=progress.see, stdout=stdout)
        progress.wipe()
        report = controlled(store.report(run_id), spec.lane, dict(options.severity), baseline)
        if options.write_baseline:
            write_baseline(options.write_baseline, report.findings)
        if options.json:
            print(json.dumps(to_json(report), indent=1))
        else:
            to_stdout(report_lines(report, Paint(sys.stdout)))
        store.prune(_KEEP_BYTES)
    return 3 if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR else 0
