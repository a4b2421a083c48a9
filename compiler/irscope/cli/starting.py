"""``irscope profile --start``: where the time of a start goes, cold, warm and with loaded caches."""

from __future__ import annotations

import argparse
import json
import shlex
import sys

from irscope.cli.running import entry_of
from irscope.cli.tables import table
from irscope.cli.text import Paint, to_stdout
from irscope.driver.starts import Start, StartError, starts
from irscope.internals.start_times import PARTS
from irscope.protocol import EntryKind, to_json
from irscope.system.streams import complain
from irscope.vocabulary.visible import printable

_LEAST = 0.005
"""Seconds of a part that is shown."""


def profile_start(options: argparse.Namespace) -> int:
    """Measures the starts and prints them side by side."""
    entry, script, _ = entry_of(options)
    if entry is not EntryKind.SCRIPT:
        complain("irscope: --start measures a script: irscope profile --start SCRIPT")
        return 2
    try:
        found = starts(
            options.python, script, options.args, options.cwd, lambda name: complain(f"irscope: {name} start"),
            shlex.split(options.artifact),
        )  # fmt: skip
    except StartError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    if options.json:
        print(json.dumps({"starts": [{**to_json(one), "total": one.total} for one in found]}, indent=1))
    else:
        to_stdout(start_lines(found, Paint(sys.stdout)))
    return 0


def start_lines(found: list[Start], paint: Paint) -> list[str]:
    """A row for each part, with what the best of the other starts saves of the first."""
    rows = []
    for part, name in PARTS.items():
        times = [one.seconds.get(part, 0.0) for one in found]
        if max(times) >= _LEAST:
            rows.append([name, *(f"{one:.2f} s" for one in times), _saved(times)])
    totals = [one.total for one in found]
    rows.append(["from process begin to the end", *(f"{one:.2f} s" for one in totals), _saved(totals)])
    head = ["", *(one.name for one in found), "saved"]
    gaps = sorted({gap for one in found for gap in one.gaps})
    return [
        *table(head, rows, paint, right=frozenset(range(1, len(head)))),
        *(printable(f"not told apart: {gap}") for gap in gaps),
    ]


def _saved(times: list[float]) -> str:
    best = times[0] - min(times[1:])
    return f"{best:.2f} s" if best >= _LEAST else ""
