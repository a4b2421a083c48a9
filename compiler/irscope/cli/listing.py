"""``irscope list``."""

from __future__ import annotations

import argparse
import json
import sys
import time

from irscope.cli.tables import table
from irscope.cli.text import Paint, short_path, to_stdout
from irscope.protocol import to_json
from irscope.store.store import Store
from irscope.vocabulary.lanes import DEFAULT_PIPELINE
from irscope.vocabulary.units import duration
from irscope.vocabulary.visible import printable


def list_runs(options: argparse.Namespace) -> int:
    """Prints the newest runs."""
    with Store(options.store) as store:
        runs = store.runs(limit=options.limit)
    if options.json:
        print(json.dumps([to_json(run) for run in runs], indent=1))
        return 0
    if not runs:
        print(f"No run in {options.store} yet. Start one: irscope run SCRIPT.py")
        return 0
    several = any(run.pipeline != DEFAULT_PIPELINE for run in runs)  # else the column says nothing, and takes room
    jobs = any(run.rank is not None for run in runs)
    rows = [
        [
            run.run,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started)),
            run.lane.value,
            *([printable(run.pipeline)] if several else []),
            *([f"{run.rank} of {run.world}" if run.rank is not None else ""] if jobs else []),
            printable(short_path(run.script)),
            run.outcome.kind.value if run.outcome else "unfinished",
            str(run.findings),
            str(run.compiles),
            str(run.kernels),
            duration(run.outcome.seconds) if run.outcome else "",
        ]
        for run in runs
    ]
    head = ["run", "started", "lane", *(["pipeline"] if several else []), *(["rank"] if jobs else [])]
    head += ["script", "outcome", "findings", "compiles", "kernels", "time"]
    right = frozenset(range(len(head) - 4, len(head)))
    to_stdout(table(head, rows, Paint(sys.stdout), right=right, whole=frozenset({0, 1})))
    return 0
