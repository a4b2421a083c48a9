"""Stages of earlier runs of a script, which the capture of a run compares with its own."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Collection, Iterator

from irscope.protocol import Compile, EarlierStage, Lane, from_json
from irscope.store.file import NEWEST_FIRST

_LOOKED_AT, _EARLIER_RUNS = 20, 5
_MOST_CHARACTERS = 8_000_000


def earlier_stages(
    db: sqlite3.Connection, text_of: Callable[[bytes | None], str | None], run: str, names: Collection[str]
) -> tuple[EarlierStage, ...]:
    """Stages of the newest deep runs of the script of a run, the newest first.

    For a rank of a job only runs of the same rank: others have other graphs.  A stage that is the same in several runs
    is
    there once.

    Args:
        text_of: The text of a digest.
        names: The kinds of stages.
    """
    row = db.execute("SELECT script, args FROM runs WHERE id = ?", (run,)).fetchone()
    if row is None:
        return ()
    rows = db.execute(
        f"SELECT id, args FROM runs WHERE script = ? AND lane = ? AND id <> ? {NEWEST_FIRST} LIMIT ?",
        (row[0], Lane.DEEP.value, run, _LOOKED_AT),
    ).fetchall()
    same_rank = [id for id, args in rows if _rank_of(args) == _rank_of(row[1])][:_EARLIER_RUNS]
    stages: dict[tuple[object, ...], EarlierStage] = {}
    left = _MOST_CHARACTERS
    for earlier in same_rank:
        for key, digests in _stages_of(db, earlier, names):
            if (key, digests) in stages:
                continue
            with contextlib.suppress(LookupError):  # a text that is damaged
                stage = EarlierStage(*key, text_of(digests[0]) or "", text_of(digests[1]) or "null")
                left -= len(stage.text) + len(stage.data)
                if left < 0:
                    return tuple(stages.values())
                stages[key, digests] = stage
    return tuple(stages.values())


def _stages_of(
    db: sqlite3.Connection, run: str, names: Collection[str]
) -> Iterator[tuple[tuple[str, str, int, str], tuple[bytes, bytes | None]]]:
    """Which function, which compile of it and which part; and the digests of text and data."""
    which: dict[str, tuple[str, str, int]] = {}
    counted: dict[tuple[str, str], int] = {}
    for id, facts in db.execute("SELECT id, facts FROM compiles WHERE run = ? ORDER BY position", (run,)):
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):  # a damaged row
            compile = from_json(Compile, json.loads(facts))
            if not compile.target:
                number = counted.get((compile.file, compile.function), 0)
                counted[compile.file, compile.function] = number + 1
                which[id] = compile.file, compile.function, number
    marks = ", ".join("?" * len(names))
    rows = db.execute(
        f"SELECT compile, id, digest, data FROM stages WHERE run = ? AND name IN ({marks}) ORDER BY position, rowid",
        (run, *names),
    )
    for compile_id, id, digest, data in rows.fetchall():
        if compile_id in which:
            file, function, number = which[compile_id]
            yield (file, function, number, str(id).rpartition("/")[2]), (digest, data)


def _rank_of(args: object) -> tuple[object, object]:
    with contextlib.suppress(ValueError, RecursionError):
        how = json.loads(str(args))
        if isinstance(how, dict):
            return how.get("world"), how.get("rank")
    return None, None
