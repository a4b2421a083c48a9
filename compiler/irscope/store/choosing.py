"""Which runs of the store: the newest ones, those of a file, the one that a name stands for."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from dataclasses import replace

from irscope.protocol import LIBRARY, Lane, RunSummary, from_json, to_json
from irscope.store.file import NEWEST_FIRST
from irscope.store.reports import outcome_in
from irscope.usercode.reading import real_path
from irscope.vocabulary.suggestions import did_you_mean_id, listed

_LIBRARY_CALL = f'"language": {json.dumps(LIBRARY)}'
"""What the facts of a kernel contain that is a library call; quotes inside of a name are escaped."""
_WITH_FILES = ("compiles", "findings", "kernels", "places")
"""The tables whose facts name the files that a run has to do with."""
_OWN = """(NOT instr(facts, '"target": "') OR instr(facts, '"target": ""'))"""
"""Whether facts of a compile are of one of the script's own, not of a prediction for a target."""


def _names_of(db: sqlite3.Connection, file: str) -> list[str]:
    """The names by which runs know a file: Python names a file by the links through which it was reached."""
    real = real_path(file)
    rows = db.execute("SELECT script FROM runs UNION SELECT file FROM sources")
    others = (name for (name,) in rows if isinstance(name, str) and name != file)
    return [file, *(name for name in others if real_path(name) == real)]


def _is_script(names: list[str]) -> str:
    return f"script IN ({','.join('?' * len(names))})"


def _touches(names: list[str]) -> tuple[str, list[str]]:
    """Whether facts of a run are about a file, as a condition and its values."""
    condition = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE run = runs.id AND ({' OR '.join(['instr(facts, ?)'] * len(names))}))"
        for table in _WITH_FILES
    )
    return condition, [f'"file": {json.dumps(name)}' for name in names] * len(_WITH_FILES)


def _is_whole(outcome: str | None) -> bool:
    """Whether the run of an outcome came to its end; not where that is damaged."""
    try:
        return (known := outcome_in(outcome)) is not None and known.is_whole
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def newest_runs(db: sqlite3.Connection, limit: int, script: str | None) -> list[RunSummary]:
    """The newest runs first, of one script where it is named; without those whose rows are damaged."""
    names = [] if script is None else _names_of(db, script)
    return _summaries(db, f"{_is_script(names) if names else 1} {NEWEST_FIRST} LIMIT ?", *names, limit)


def newest_of_each_pipeline(db: sqlite3.Connection, script: str) -> list[RunSummary]:
    """The newest deep run of each pipeline that a script went through; newest first."""
    names = _names_of(db, script)
    newest = f"SELECT id, max(made) FROM runs WHERE {_is_script(names)} AND lane = ? GROUP BY pipeline"
    return _summaries(db, f"id IN (SELECT id FROM ({newest})) {NEWEST_FIRST}", *names, Lane.DEEP.value)


def newest_with(db: sqlite3.Connection, table: str, script: str | None) -> str | None:
    """The newest run of a script, or of any, that has a row in a table; None if there is none."""
    names = [] if script is None else _names_of(db, script)
    row = db.execute(
        f"SELECT id FROM runs WHERE {_is_script(names) if names else 1} AND id IN (SELECT run FROM {table}) {NEWEST_FIRST} LIMIT 1",
        names,
    ).fetchone()
    return None if row is None else from_json(str, row[0])


def _summaries(db: sqlite3.Connection, which: str, *values: object) -> list[RunSummary]:
    """Summaries of runs that a condition chooses; without those whose rows are damaged."""
    rows = db.execute(
        "SELECT id, script, lane, started, torch, outcome,"
        f" (SELECT count(*) FROM compiles WHERE run = runs.id AND {_OWN}), (SELECT count(*) FROM findings WHERE run = runs.id),"
        f" (SELECT count(*) FROM kernels WHERE run = runs.id AND NOT instr(facts, ?) AND {_OWN}), pipeline, args"
        f" FROM runs WHERE {which}",
        (_LIBRARY_CALL, *values),
    )
    found = []
    for run, script, lane, started, torch, outcome, *rest, args in rows:
        # Everything is known about the others.  A time in a year beyond C's numbers is an OSError.
        with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
            summary = RunSummary(run, script, Lane(lane), started, torch, outcome_in(outcome), *rest)
            rank, world = _rank_in(args)
            summary = replace(summary, rank=rank, world=world)
            time.gmtime(started)  # is a time that can be shown
            found.append(from_json(RunSummary, to_json(summary)))
    return found


def _rank_in(args: object) -> tuple[int | None, int]:
    """The rank of a run, and how many its job has; None and 0 for any other run, and if that is not readable."""
    if not isinstance(args, str) or '"rank": ' not in args:
        return None, 0
    with contextlib.suppress(ValueError, RecursionError):
        how = json.loads(args)
        if isinstance(how, dict) and isinstance(how.get("rank"), int) and isinstance(how.get("world"), int):
            return how["rank"], how["world"]
    return None, 0


def runs_touching(db: sqlite3.Connection, file: str, limit: int) -> list[tuple[str, str]]:
    """The newest runs that compiled, found or generated something in a file, with their scripts; newest first."""
    touches, facts = _touches(_names_of(db, file))
    rows = db.execute(f"SELECT id, script FROM runs WHERE {touches} {NEWEST_FIRST} LIMIT ?", (*facts, limit))
    return [(str(run), str(script)) for run, script in rows]


def runs_of_file(db: sqlite3.Connection, file: str, limit: int) -> list[RunSummary]:
    """Like `runs_touching`, with the runs whose script it is."""
    names = _names_of(db, file)
    touches, facts = _touches(names)
    return _summaries(db, f"({_is_script(names)} OR {touches}) {NEWEST_FIRST} LIMIT ?", *names, *facts, limit)


def best_run(db: sqlite3.Connection, file: str | None) -> str | None:
    """The newest run that compiled something and came to its end; else the newest that compiled something, then the
    newest; None if there is none.

    Args:
        file: Only runs that have to do with this file: it is their script, or they compiled, found or generated
            something in it.
    """
    which, values = "1", list[str]()
    if file is not None:
        names = _names_of(db, file)
        touches, facts = _touches(names)
        which, values = f"{_is_script(names)} OR {touches}", [*names, *facts]
    rows = db.execute(
        "SELECT id, outcome, EXISTS (SELECT 1 FROM compiles WHERE run = runs.id) FROM runs"
        f" WHERE {which} {NEWEST_FIRST}",
        values,
    )
    found: list[tuple[bool, bool, str]] = []
    for run, outcome, compiled in rows:
        found.append((bool(compiled), bool(compiled) and _is_whole(outcome), str(run)))
        if found[-1][1]:
            break
    return max(found, key=lambda each: each[:2], default=(False, False, None))[2]


def find_run(db: sqlite3.Connection, path: str, name: str | None) -> str:
    """The id of the run that is named by its id or a part that only it begins with; the newest if none is named.

    Args:
        path: The store's file, for messages.

    Raises LookupError with a message for the user if there is none, or more than one.
    """
    if name is None:
        row = db.execute(f"SELECT id FROM runs {NEWEST_FIRST} LIMIT 1").fetchone()
        if row is None:
            raise LookupError(f"No run in {path} yet. Start one: irscope run SCRIPT.py")
        return str(row[0])
    found = [row[0] for row in db.execute("SELECT id FROM runs WHERE substr(id, 1, ?) = ?", (len(name), name))]
    if len(found) == 1:
        return str(found[0])
    where = f"`irscope list` shows the runs in {path}."
    if found:
        ids = listed(row[0] for row in found)
        raise LookupError(f"More than one run starts with {name}. {where} These do: {ids}.")
    rows = db.execute(f"SELECT id FROM runs {NEWEST_FIRST} LIMIT 1000")
    raise LookupError(f"No run is named {name}. {where}{did_you_mean_id(name, [row[0] for row in rows])}")
