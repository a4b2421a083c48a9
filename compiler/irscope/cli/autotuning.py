"""``irscope show --autotuning``: what max-autotune tried for each operator, and what each choice took."""

from __future__ import annotations

import argparse

from irscope.cli.text import print_json, to_stdout
from irscope.pipelines.registry import role_of
from irscope.protocol import Report
from irscope.store.store import Store
from irscope.vocabulary.stages import Role
from irscope.vocabulary.visible import printable


def show_autotuning(store: Store, report: Report, options: argparse.Namespace) -> int:
    """Prints the tables of all compiles, or of the one that is named.  Raises LookupError if there are none."""
    stages = [
        (compile.id, stage.id)
        for compile in report.compiles
        if options.compile in (None, compile.id)
        for stage in compile.stages
        if role_of(stage.name) is Role.TUNING
    ]
    if not stages:
        raise LookupError(
            f"Nothing was autotuned in run {report.run}: compile with mode='max-autotune', and run the deep lane."
        )
    if options.json:
        print_json([
            {"compile": compile, **operator}
            for compile, stage in stages
            for operator in (store.stage_data(report.run, stage) or {}).get("operators", ())
        ])  # fmt: skip
        return 0
    for number, (_, stage) in enumerate(stages):
        lines = store.stage_text(report.run, stage).rstrip("\n").split("\n")
        to_stdout([*([""] if number else []), printable(stage), "", *map(printable, lines)])
    return 0
