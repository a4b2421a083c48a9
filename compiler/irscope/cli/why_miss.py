"""``irscope why-miss A B``: which part of a cache key differs between two runs, stores or traces."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator

from irscope.cli.text import Paint, short_path, to_stdout
from irscope.opening.logs import is_trace
from irscope.opening.paths import Roots
from irscope.opening.trace_run import TraceSpec, open_trace
from irscope.opening.warnings import TraceError
from irscope.pipeline_captures.inductor.cache_differences import KeyComparison, compare_keys
from irscope.protocol import to_json
from irscope.store.store import Store
from irscope.system.streams import complain
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import printable

_SQLITE = b"SQLite format 3\0"


def why_miss(options: argparse.Namespace) -> int:
    """Compares the cache keys of two runs and prints what differs.  Raises LookupError if one of them is not a run."""
    try:
        with contextlib.ExitStack() as stack:
            store, before = stack.enter_context(_run_of(options.before, options.store))
            newer, after = stack.enter_context(_run_of(options.after, options.store))
            found = compare_keys(store, before, after, newer)
    except TraceError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    if options.json:
        print(json.dumps({"same": not any(key.changes for key in found.keys), **to_json(found)}, indent=1))
    else:
        to_stdout(key_lines(found, Paint(sys.stdout)))
    return 0


@contextlib.contextmanager
def _run_of(given: str, path: str) -> Iterator[tuple[Store, str]]:
    """A run by its ID, the newest one of a store's file, or a trace, which is read into a store that is not kept."""
    if not os.path.exists(given):
        with Store(path) as store:
            yield store, store.find_run(given)
    elif _is_store(given):
        with Store(given) as store:
            yield store, store.find_run()
    elif is_trace(given):
        with tempfile.TemporaryDirectory(prefix="irscope-why-") as folder, Store(os.path.join(folder, "r.db")) as store:
            yield store, open_trace(TraceSpec(given, Roots(os.getcwd(), False, ())), store)
    else:
        raise LookupError(f"{given} is not a run, a run store or a structured trace.")


def _is_store(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def key_lines(found: KeyComparison, paint: Paint) -> list[str]:
    """A comparison for people: what differs first."""
    lines = [paint(printable(f"{found.before} → {found.after}"), "bold")]
    for key in found.keys:
        if key.changes:
            place = f"{short_path(key.file)}:{key.line}  " if key.file else ""
            lines.append(paint(f"{place}{printable(key.function)}", "bold") + printable(f"  {key.cache}: {key.what}"))
            lines += [f"  {printable(text)}" for text in key.changes]
    same = sum(not key.changes for key in found.keys)
    lines.append(f"{count(len(found.keys) - same, 'key')} with changes, {same} the same")
    for title, names in (
        ("only in the first run", found.only_before),
        ("only in the second run", found.only_after),
        ("no key is known in one of the runs (a hit, a bypass, or the fast lane)", found.without_keys),
    ):
        if names:
            lines.append(f"{title}: {printable(listed(names))}")
    return lines
