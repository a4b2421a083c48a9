"""What keeps a store small: texts are packed when a run has ended, and the oldest runs go."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Container

from irscope.protocol import OutcomeKind
from irscope.store.file import NEWEST_FIRST, TABLES_OF_RUN, USED_TEXTS, transaction
from irscope.store.reports import outcome_in
from irscope.store.texts import Texts
from irscope.store.value_file import DamagedValues, folder_of

KEEP_BYTES = 1_000_000_000
"""The most bytes of texts in a store, as they are stored; the oldest runs go."""
KEEP_RUNS = 1000
_PACKED_LATER = 3
"""Runs that are looked at: several at a time may have ended since the last run began."""


class Upkeep:
    """Packs and prunes one store.

    Args:
        path: The file of the store, beside which elements of tensors are kept.
        db, texts: Its connection, and the texts in it.
    """

    def __init__(self, path: str, db: sqlite3.Connection, texts: Texts) -> None:
        self._path, self._db, self._texts = path, db, texts

    def tidy(self, run: str, made: Container[str] | None, keep_bytes: int, keep_runs: int) -> int:
        """Like `Store.tidy`; ``made``: the names of stages whose texts are made from their data, None: nothing is
        packed."""
        if self._did_not_begin(run):
            self.delete(run)
            return 1
        if made is not None:
            self._pack(run, made)
        with transaction(self._db, "BEGIN IMMEDIATE"):
            self._texts.sweep(USED_TEXTS)  # what a stage had before it was written again
        gone = self.prune(keep_bytes, keep_runs)
        self._db.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page
        return gone

    def pack_newest(self, made: Container[str]) -> None:
        """Like `Store.pack_newest`."""
        rows = self._db.execute(
            f"SELECT id FROM runs WHERE outcome IS NOT NULL {NEWEST_FIRST} LIMIT ?", (_PACKED_LATER,)
        ).fetchall()
        for (run,) in rows:
            self._pack(run, made)
        if rows:
            self._db.executescript("PRAGMA incremental_vacuum")

    def prune(self, keep_bytes: int, keep_runs: int) -> int:
        """Like `Store.prune`."""
        gone = 0
        while self._count() > max(keep_runs, 2) or self._texts.size() > keep_bytes:
            oldest = self._db.execute(
                "SELECT id FROM runs WHERE outcome IS NOT NULL ORDER BY made, rowid LIMIT 1"
            ).fetchone()
            if oldest is None or self._count() <= 2:
                break
            self.delete(oldest[0])
            gone += 1
        return gone

    def delete(self, run: str) -> None:
        """Deletes a run and what no other run uses."""
        with transaction(self._db, "BEGIN IMMEDIATE"):
            self.delete_facts(run)
            self._db.execute("DELETE FROM runs WHERE id = ?", (run,))
            self._texts.sweep(USED_TEXTS)

    def _did_not_begin(self, run: str) -> bool:
        row = self._db.execute("SELECT outcome, torch FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None or row[1] is not None:
            return False
        outcome = outcome_in(row[0])
        return outcome is not None and outcome.kind is OutcomeKind.ENVIRONMENT_ERROR

    def _count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM runs").fetchone()[0])

    def _pack(self, run: str, made: Container[str]) -> None:
        stages = self._db.execute(
            "SELECT id, name, digest, data FROM stages WHERE run = ? ORDER BY compile, position, rowid", (run,)
        ).fetchall()
        sources = self._db.execute("SELECT digest FROM sources WHERE run = ? ORDER BY file", (run,)).fetchall()
        # Alike next to alike: the graphs of a compile, then their data; long data of few stages last.
        self._texts.pack([digest for _, _, digest, _ in stages] + [digest for (digest,) in sources])
        trails = self._db.execute("SELECT digest FROM trails WHERE run = ?", (run,)).fetchall()
        self._texts.pack(digest for (digest,) in trails)
        self._texts.pack(data for _, _, _, data in sorted(stages, key=lambda row: str(row[1]) in made) if data)

    def delete_facts(self, run: str) -> None:
        """Deletes all that a run has found, but not the run."""
        with contextlib.suppress(DamagedValues):
            shutil.rmtree(folder_of(self._path, run), ignore_errors=True)
        for table in TABLES_OF_RUN:
            self._db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
