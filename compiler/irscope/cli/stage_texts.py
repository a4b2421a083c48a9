"""The texts of stages, as ``irscope show --stage`` and ``--kernel`` print them, and the facts beside them."""

from __future__ import annotations

import argparse
import sys

from irscope.cli.text import Paint, print_json
from irscope.lowering.comments import facts_beside, with_comments
from irscope.protocol import Report, StageRef, to_json
from irscope.store.store import Store
from irscope.vocabulary.visible import printable


def print_stages(store: Store, report: Report, stages: list[StageRef], options: argparse.Namespace) -> int:
    """Prints each text once."""
    found = [(stage, text := store.stage_text(report.run, stage.id), facts_beside(store, report.run, stage, text)) for stage in stages]  # fmt: skip
    if options.json:
        print_json([{**to_json(stage), "text": text, **to_json(facts)} for stage, text, facts in found])
        return 0
    distinct: dict[str, list[str]] = {}
    for stage, text, facts in found:
        distinct.setdefault(with_comments(text, stage.name, facts), []).append(stage.id)
    paint = Paint(sys.stdout)
    for text, ids in distinct.items():
        if len(distinct) > 1:
            print(paint(f"=== {', '.join(ids)}", "bold"))
        # As it is into a file or a pipe; on a terminal nothing that a script wrote may steer it.
        sys.stdout.write("\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text)
    return 0
