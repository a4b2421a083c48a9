"""``irscope open --overview`` and ``--follow``: a big trace by its index, and one that is still being written."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable

from irscope.cli.tables import table
from irscope.cli.text import Paint, short_path, to_stdout
from irscope.opening.index import IndexedCompile, Overview, TraceIndex
from irscope.opening.logs import log_in
from irscope.opening.warnings import TraceError
from irscope.protocol import to_json
from irscope.system.streams import complain
from irscope.vocabulary.units import count, duration, size
from irscope.vocabulary.visible import printable

_POLL_SECONDS = 0.5
_HEAD = ["compile", "function", "at", "ops", "time", ""]


def overview(options: argparse.Namespace, folder: str) -> int:
    """Indexes a log, or continues its index, and prints its longest compiles."""
    try:
        with TraceIndex(log_in(options.trace, options.log), folder) as index:
            index.update()
            found = index.overview()
    except TraceError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    if options.json:
        print(json.dumps(to_json(found), indent=1))
    else:
        to_stdout(overview_lines(found, Paint(sys.stdout)))
    return 0


def overview_lines(found: Overview, paint: Paint) -> list[str]:
    """The longest compiles of a trace as a table, and its totals."""
    lines = table(_HEAD, _rows(found.compiles), paint, right=frozenset({3, 4}), whole=frozenset({0}))
    more = found.number - len(found.compiles)
    if more > 0:
        lines.append(paint(f"and {more} shorter ones", "dim"))
    damaged = f", {count(found.damaged, 'damaged record')}" if found.damaged else ""
    lines.append(
        f"{count(found.number, 'compile')} in {duration(found.seconds)}, {found.failed} failed, "
        f"{count(found.breaks, 'record')} of graph breaks; {count(found.records, 'record')} in {size(found.size)}{damaged}"
    )
    return [*lines, f"One of them: irscope open {printable(short_path(found.path))} --compile ID"]


def _rows(compiles: Iterable[IndexedCompile]) -> list[list[str]]:
    return [
        [
            printable(one.id), printable(one.function), printable(f"{short_path(one.file)}:{one.line}"), str(one.ops),
            duration(one.seconds), printable(one.error),
        ]
        for one in compiles
    ]  # fmt: skip


def follow(options: argparse.Namespace, folder: str, wait: Callable[[], bool] | None = None) -> int:
    """Prints each compile of a log as it is written, until Ctrl-C.

    Args:
        wait: Waits for more, and says whether to go on; None: half a second, always.
    """
    try:
        with TraceIndex(log_in(options.trace, options.log), folder) as index:
            while True:
                for one in index.update():
                    line = json.dumps(to_json(one)) if options.json else "  ".join(_rows([one])[0]).rstrip()
                    to_stdout([line])
                    sys.stdout.flush()
                if not (wait or _pause)():
                    return 0
    except TraceError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    except KeyboardInterrupt:
        return 0


def _pause() -> bool:
    time.sleep(_POLL_SECONDS)
    return True
