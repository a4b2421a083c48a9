"""``irscope watch``: a run that looks at every step for the first number that is not finite, or that drifts."""

from __future__ import annotations

import argparse
import json
import sys

from irscope.cli.progress import ProgressLine
from irscope.cli.report import finding_lines
from irscope.cli.running import exit_code_of
from irscope.cli.text import Paint, to_stdout
from irscope.cli.values import spec_of
from irscope.driver.driver import execute
from irscope.findings.kinds import divergence, non_finite
from irscope.protocol import Finding, OutcomeKind, Report, ValuesRequest, to_json
from irscope.store.store import Store
from irscope.vocabulary.visible import printable

_KINDS = (non_finite.KIND.id, divergence.KIND.id)


def watch(options: argparse.Namespace) -> int:
    """Runs the script and prints what was found; the exit code is the script's."""
    wanted = ValuesRequest(
        statistics=False, divergence=True, watch=True, replay_bytes=options.replay_memory * 1_000_000,
        against=options.against or "",
    )  # fmt: skip
    progress, exits = ProgressLine(), list[int]()
    with Store(options.store) as store:
        stdout = sys.stderr.fileno() if options.json else None
        run, outcome = execute(
            spec_of(options, wanted), store, on_message=progress.see, on_exit=exits.append, stdout=stdout
        )
        progress.wipe()
        report = store.report(run)
    if options.json:
        found = to_json(_found(report))
        print(json.dumps({"run": run, "outcome": to_json(report.outcome), "findings": found}, indent=1))
    else:
        to_stdout(report_of_watch(report, Paint(sys.stdout)))
    for gap in report.capture_gaps:
        print(printable(f"not captured: {gap.what}: {gap.why}"), file=sys.stderr)
    return exit_code_of(outcome, exits)


def report_of_watch(report: Report, paint: Paint) -> list[str]:
    """What is printed after the script's own output."""
    if found := _found(report):
        return [line for finding in found for line in (*finding_lines(finding, paint), "")]
    if not report.compiles:
        return [printable(report.outcome.message)]
    if report.outcome.kind is not OutcomeKind.COMPLETED:
        return [printable(f"{report.outcome.message} Until then every number that was watched was finite.")]
    if report.capture_gaps:
        return ["Every number that was seen is finite, but something was not captured:"]
    return [paint("Every number that was watched is finite.", "green")]


def _found(report: Report) -> tuple[Finding, ...]:
    return tuple(finding for finding in report.findings if finding.kind in _KINDS)
