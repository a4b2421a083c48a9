"""``irscope show --autotuning``: what max-autotune tried for each operator, and what each choice took."""

from __future__ import annotations

import argparse
import os

from irscope.cli.text import Paint, print_json, to_stdout
from irscope.comparing.autotuning import TunedDiff
from irscope.pipelines.inductor.stages import BINARY
from irscope.pipelines.registry import role_of
from irscope.protocol import Report
from irscope.store.store import Store
from irscope.vocabulary.stages import KERNELS, Role
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable

_MOST_CONFIGURATIONS = 500
_MOST_CHANGES = 20
"""Operators that are listed on a terminal."""


def show_autotuning(store: Store, report: Report, options: argparse.Namespace) -> int:
    """Prints the tables of all compiles, or of the one that is named.  Raises LookupError if there are none."""
    stages = [
        (compile.id, stage.id)
        for compile in report.with_predictions
        if options.compile in (None, compile.id)
        for stage in compile.stages
        if role_of(stage.name) is Role.TUNING
    ]
    kernels = _kernels(store, report, options.compile)
    if not stages and not kernels:
        raise LookupError(
            f"Nothing was autotuned in run {report.run}: compile with mode='max-autotune', and run the deep lane."
        )
    if options.json:
        print_json([
            {"compile": compile, **operator}
            for compile, stage in stages
            for operator in (store.stage_data(report.run, stage) or {}).get("operators", ())
        ] + [{"compile": stage.partition(f"/{KERNELS}")[0], "kernel": stage, "configurations": each} for stage, each in kernels])  # fmt: skip
        return 0
    for number, (_, stage) in enumerate(stages):
        lines = store.stage_text(report.run, stage).rstrip("\n").split("\n")
        to_stdout([*([""] if number else []), printable(stage), "", *map(printable, lines)])
    for stage, configurations in kernels:
        rows = [f"  {number:>3}  {text}" for number, text in enumerate(configurations, 1)]
        to_stdout(["", *map(printable, [f"{stage}: {count(len(rows), 'configuration')}, not timed", *rows])])
    return 0


def _kernels(store: Store, report: Report, compile: str | None) -> list[tuple[str, list[str]]]:
    """The predicted kernels of which the device would time several configurations, with these."""
    found = []
    for each in report.with_predictions:
        for stage in each.stages if compile in (None, each.id) else ():
            data = store.stage_data(report.run, stage.id) if stage.name == BINARY.name and each.target else None
            options = data.get("options") if isinstance(data, dict) else None
            if isinstance(options, list) and len(options) > 1:
                found.append((stage.id.rpartition("/")[0], list(map(str, options[:_MOST_CONFIGURATIONS]))))
    return found


def tuned_lines(found: TunedDiff, paint: Paint) -> list[str]:
    """Where another choice won, for `irscope diff`."""
    head = f"{paint('Autotuning', 'bold')}: {count(len(found.changed), 'operator')} with another choice, {found.same} with the same"
    lines = ["", head]
    for one in found.changed[:_MOST_CHANGES]:
        place = f" at {os.path.basename(one.file)}:{one.line}" if one.file else ""
        what = "padding of " if one.decision == "padding" else ""
        lines += [
            printable(f"  {what}{one.operator}{place}"),
            printable(f"    before: {one.before.words}"),
            printable(f"    after:  {one.after.words}"),
        ]
    if len(found.changed) > _MOST_CHANGES:
        lines.append(f"  … and {count(len(found.changed) - _MOST_CHANGES, 'operator')} more (--json has all)")
    return lines
