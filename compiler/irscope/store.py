"""The run store: one SQLite file that holds runs, compiles, stages, findings and kernels.

The process of a run writes, everybody reads.  The file is in WAL mode, so readers never wait for the writer, and
each fact is committed when it is known: whoever is killed at whatever moment leaves a file that opens again and
holds all that was committed.  ``synchronous = NORMAL`` gives up durability only against loss of power.

Texts (a stage's text) are compressed and stored once per content, named by their SHA-256.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from irscope.costs import with_costs
from irscope.findings.repeats import without_repeats
from irscope.protocol import (
    SCHEMA,
    CaptureGap,
    Compile,
    Finding,
    Kernel,
    Lane,
    Outcome,
    Report,
    RunSummary,
    StageRef,
    from_json,
    to_json,
)
from irscope.values.valuefile import DamagedValues, folder_of

_VERSION = 4

_TABLES = """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, script TEXT NOT NULL, args TEXT NOT NULL, lane TEXT NOT NULL, started REAL NOT NULL,
  source TEXT NOT NULL, torch TEXT, outcome TEXT);
CREATE TABLE texts (digest BLOB PRIMARY KEY, data BLOB NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE compiles (run TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, facts TEXT NOT NULL,
  PRIMARY KEY (run, id));
CREATE TABLE stages (run TEXT NOT NULL, id TEXT NOT NULL, compile TEXT NOT NULL, position REAL NOT NULL,
  name TEXT NOT NULL, language TEXT NOT NULL, bytes INTEGER NOT NULL, digest BLOB NOT NULL, data BLOB,
  passed TEXT NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (run, id));
CREATE TABLE sources (run TEXT NOT NULL, file TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (run, file));
CREATE TABLE kernels (run TEXT NOT NULL, stage TEXT NOT NULL, name TEXT NOT NULL, position INTEGER NOT NULL,
  facts TEXT NOT NULL, PRIMARY KEY (run, stage, name));
CREATE TABLE findings (run TEXT NOT NULL, cause TEXT NOT NULL, position INTEGER NOT NULL, facts TEXT NOT NULL,
  PRIMARY KEY (run, cause));
CREATE TABLE gaps (run TEXT NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (run, what, why));
"""


class StoreError(Exception):
    """The store cannot be used; the message says what to do."""


def default_path() -> str:
    """The command line's store: ``IRSCOPE_STORE``, else a file in the user's cache folder."""
    if named := os.environ.get("IRSCOPE_STORE"):
        return named
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "irscope", "runs.db")


class Store:
    """A connection to a run store; any thread may use it, but only one at a time.

    Parameters
    ----------
    path
        The file; made, with its folders, where it does not exist.  A file written by another version of irscope is
        moved aside (to ``….old``), since everything in it can be made again by running.

    Raises
    ------
    StoreError
        The path cannot be opened or is no SQLite file.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The run store {self.path} cannot be used: {error}. Name another file (--store FILE or the setting irscope.storePath), or delete this one."
            ) from error

    def _open(self) -> sqlite3.Connection:
        db = self._connect()
        with _transaction(db, "BEGIN IMMEDIATE"):
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in _TABLES.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {_VERSION}")
        if version in (0, _VERSION):
            return db
        db.close()
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(self.path + suffix, self.path + ".old" + suffix)
        return self._open()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and not tables >= {"runs", "texts"}:
            db.close()
            raise sqlite3.DatabaseError("it is a database of another program, not a run store")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    def close(self) -> None:
        self._db.close()

    def abandon(self) -> None:
        """Never closes the connection: for a forked child, where closing would meddle with the parent's locks."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._db))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Everything written inside becomes visible at once, or not at all."""
        return _transaction(self._db, "BEGIN IMMEDIATE")

    # --- writing ------------------------------------------------------------------------------------------------------

    def create_run(self, script: str, args: Sequence[str], lane: Lane, source: str) -> str:
        """A new run; returns its id, which sorts by time.  ``source`` is the digest of the script's text as run."""
        run = time.strftime("%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(3)
        self._db.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
            (run, script, json.dumps(list(args)), lane.value, time.time(), source),
        )
        return run

    def forget_findings(self, run: str) -> None:
        """Deletes what a run has found so far; it begins anew."""
        with self.transaction():
            self._delete_facts(run)

    def set_torch(self, run: str, version: str) -> None:
        self._db.execute("UPDATE runs SET torch = ? WHERE id = ?", (version, run))

    def set_outcome(self, run: str, outcome: Outcome) -> None:
        self._db.execute("UPDATE runs SET outcome = ? WHERE id = ?", (_dump(outcome), run))

    def put_compile(self, run: str, compile: Compile) -> None:
        """Adds a compile or replaces what was known of it; its stages are kept by `put_stage`."""
        facts = {key: value for key, value in to_json(compile).items() if key != "stages"}
        self._db.execute(
            "INSERT INTO compiles VALUES (?, ?, (SELECT count(*) FROM compiles WHERE run = ?), ?)"
            " ON CONFLICT DO UPDATE SET facts = excluded.facts",
            (run, compile.id, run, json.dumps(facts)),
        )

    def put_stage(
        self, run: str, compile: str, stage: StageRef, text: str, position: float, data: object = None
    ) -> None:
        """Adds a stage or replaces its text.

        Parameters
        ----------
        position
            Orders the stages of a compile along the pipeline.
        data
            What the text cannot tell (nodes with their ancestors, fusion decisions), as plain JSON values.
        """
        digest, size = self._put_text(text)
        facts = None if data is None else self._put_text(json.dumps(data, separators=(",", ":")))[0]
        self._db.execute(
            "INSERT OR REPLACE INTO stages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                run,
                stage.id,
                compile,
                position,
                stage.name,
                stage.language,
                size,
                digest,
                facts,
                stage.passed,
                stage.seconds,
            ),
        )

    def put_stage_data(self, run: str, stage: str, data: object) -> None:
        """Replaces what is kept of a stage beside its text; does nothing where there is no such stage."""
        digest = self._put_text(json.dumps(data, separators=(",", ":")))[0]
        self._db.execute("UPDATE stages SET data = ? WHERE run = ? AND id = ?", (digest, run, stage))

    def _put_text(self, text: str) -> tuple[bytes, int]:
        data = text.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(data).digest()
        if not self._db.execute("SELECT 1 FROM texts WHERE digest = ?", (digest,)).fetchone():
            self._db.execute(
                "INSERT OR IGNORE INTO texts VALUES (?, ?, ?)", (digest, zlib.compress(data, 3), len(data))
            )
        return digest, len(data)

    def put_source(self, run: str, file: str, text: str) -> None:
        """Keeps the text of a source file as it was in this run."""
        self._db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?)", (run, file, self._put_text(text)[0]))

    def put_kernel(self, run: str, kernel: Kernel) -> None:
        self._db.execute(
            "INSERT INTO kernels VALUES (?, ?, ?, (SELECT count(*) FROM kernels WHERE run = ?), ?)"
            " ON CONFLICT DO UPDATE SET facts = excluded.facts",
            (run, kernel.stage, kernel.name, run, _dump(kernel)),
        )

    def put_finding(self, run: str, finding: Finding) -> None:
        """Adds a finding or replaces the one with the same cause."""
        self._db.execute(
            "INSERT INTO findings VALUES (?, ?, (SELECT count(*) FROM findings WHERE run = ?), ?)"
            " ON CONFLICT DO UPDATE SET facts = excluded.facts",
            (run, repr(finding.cause), run, _dump(finding)),
        )

    def put_gap(self, run: str, gap: CaptureGap) -> None:
        self._db.execute("INSERT OR IGNORE INTO gaps VALUES (?, ?, ?)", (run, gap.what, gap.why))

    def prune(self, keep_bytes: int) -> int:
        """Deletes the oldest runs until the texts fit into ``keep_bytes``; returns how many runs went."""
        gone = 0
        while self._text_bytes() > keep_bytes:
            oldest = self._db.execute(
                "SELECT id FROM runs WHERE outcome IS NOT NULL ORDER BY started LIMIT 1 OFFSET 0"
            ).fetchone()
            if oldest is None or self._db.execute("SELECT count(*) FROM runs").fetchone()[0] <= 2:
                break
            with self.transaction():
                self._delete_facts(oldest[0])
                self._db.execute("DELETE FROM runs WHERE id = ?", oldest)
                self._db.execute(
                    "DELETE FROM texts WHERE digest NOT IN (SELECT digest FROM stages)"
                    " AND digest NOT IN (SELECT data FROM stages WHERE data IS NOT NULL)"
                    " AND digest NOT IN (SELECT digest FROM sources)"
                )
            gone += 1
        return gone

    def _delete_facts(self, run: str) -> None:
        with contextlib.suppress(DamagedValues):
            shutil.rmtree(folder_of(self.path, run), ignore_errors=True)
        for table in ("compiles", "stages", "sources", "kernels", "findings", "gaps"):
            self._db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))

    def _text_bytes(self) -> int:
        return int(self._db.execute("SELECT coalesce(sum(length(data)), 0) FROM texts").fetchone()[0])

    # --- reading ------------------------------------------------------------------------------------------------------

    def runs(self, limit: int = 50, script: str | None = None) -> list[RunSummary]:
        """The newest runs first, of one script where it is named."""
        rows = self._db.execute(
            "SELECT id, script, lane, started, torch, outcome,"
            " (SELECT count(*) FROM compiles WHERE run = runs.id), (SELECT count(*) FROM findings WHERE run = runs.id),"
            " (SELECT count(*) FROM kernels WHERE run = runs.id)"
            " FROM runs WHERE ? IS NULL OR script = ? ORDER BY started DESC, rowid DESC LIMIT ?",
            (script, script, limit),
        )
        return [
            RunSummary(run, path, Lane(lane), started, torch, _load(Outcome, outcome), compiles, findings, kernels)
            for run, path, lane, started, torch, outcome, compiles, findings, kernels in rows
        ]

    def runs_touching(self, file: str, limit: int = 20) -> list[tuple[str, str]]:
        """The newest runs that compiled, found or generated something in a file, with their scripts; newest first."""
        rows = self._db.execute(
            "SELECT id, script FROM runs WHERE EXISTS (SELECT 1 FROM compiles WHERE run = runs.id AND instr(facts, ?1))"
            " OR EXISTS (SELECT 1 FROM findings WHERE run = runs.id AND instr(facts, ?1))"
            " OR EXISTS (SELECT 1 FROM kernels WHERE run = runs.id AND instr(facts, ?1))"
            " ORDER BY started DESC, rowid DESC LIMIT ?2",
            (f'"file": {json.dumps(file)}', limit),
        )
        return [(str(run), str(script)) for run, script in rows]

    def find_run(self, name: str | None = None) -> str:
        """The id of the run that is named by its id or a part that only it begins with; the newest where none is named.

        Raises LookupError with a message for the user where there is none, or more than one.
        """
        if name is None:
            row = self._db.execute("SELECT id FROM runs ORDER BY started DESC, rowid DESC LIMIT 1").fetchone()
            if row is None:
                raise LookupError(f"No run in {self.path} yet. Start one: irscope run SCRIPT.py")
            return str(row[0])
        found = [
            row[0] for row in self._db.execute("SELECT id FROM runs WHERE substr(id, 1, ?) = ?", (len(name), name))
        ]
        if len(found) == 1:
            return str(found[0])
        what = "No run is called" if not found else "More than one run begins with"
        raise LookupError(f"{what} {name}. `irscope list` shows what there is in {self.path}.")

    def source_of(self, run: str) -> str:
        """The digest of the script's text with which the run was made."""
        row = self._db.execute("SELECT source FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None:
            raise LookupError(f"No run is called {run}.")
        return str(row[0])

    def lane_of(self, run: str) -> Lane:
        row = self._db.execute("SELECT lane FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None:
            raise LookupError(f"No run is called {run}.")
        return Lane(row[0])

    def report(self, run: str) -> Report:
        """All that is known of a run, also while it goes on (then its outcome is *running so far* as cancelled).

        Raises LookupError where there is no such run.
        """
        with _transaction(self._db, "BEGIN"):  # one snapshot, however much is written meanwhile
            row = self._db.execute("SELECT script, torch, outcome, started FROM runs WHERE id = ?", (run,)).fetchone()
            if row is None:
                raise LookupError(f"No run is called {run}.")
            stages: dict[str, list[StageRef]] = {}
            for compile_id, *facts in self._db.execute(
                "SELECT compile, id, name, language, bytes, passed, seconds FROM stages WHERE run = ?"
                " ORDER BY position, rowid",
                (run,),
            ):
                stages.setdefault(compile_id, []).append(StageRef(*facts))
            compiles = tuple(
                from_json(Compile, {**json.loads(facts), "stages": to_json(stages.get(compile_id, []))})
                for compile_id, facts in self._db.execute(
                    "SELECT id, facts FROM compiles WHERE run = ? ORDER BY position", (run,)
                )
            )
            findings = list(self._facts(Finding, "findings", run))
            return Report(
                schema=SCHEMA,
                run=run,
                script=row[0],
                torch=row[1],
                outcome=_load(Outcome, row[2]) or _unfinished(time.time() - row[3]),
                compiles=compiles,
                findings=with_costs(without_repeats(findings), compiles),
                kernels=tuple(self._facts(Kernel, "kernels", run)),
                capture_gaps=tuple(
                    CaptureGap(*gap)
                    for gap in self._db.execute("SELECT what, why FROM gaps WHERE run = ? ORDER BY rowid", (run,))
                ),
            )

    def _facts(self, cls: type, table: str, run: str) -> Iterator:  # type: ignore[type-arg]
        for (facts,) in self._db.execute(f"SELECT facts FROM {table} WHERE run = ? ORDER BY position", (run,)):
            yield from_json(cls, json.loads(facts))

    def stage_text(self, run: str, stage: str) -> str:
        """The text of a stage.  Raises LookupError where there is none."""
        text = self._text("digest", run, stage)
        assert text is not None
        return text

    def stage_data(self, run: str, stage: str) -> Any:
        """What was kept of a stage beside its text, as plain JSON values; nothing where there is none.

        Raises LookupError where there is no such stage.
        """
        text = self._text("data", run, stage)
        return None if text is None else json.loads(text)

    def sources(self, run: str) -> dict[str, str]:
        """The source files that a run tells of, by path, with their texts as they were then."""
        rows = self._db.execute("SELECT file, data FROM sources JOIN texts USING (digest) WHERE run = ?", (run,))
        return {file: zlib.decompress(data).decode("utf-8", "surrogatepass") for file, data in rows}

    def _text(self, column: str, run: str, stage: str) -> str | None:
        row = self._db.execute(
            f"SELECT texts.data FROM stages LEFT JOIN texts ON stages.{column} = texts.digest WHERE run = ? AND id = ?",
            (run, stage),
        ).fetchone()
        if row is None:
            raise LookupError(f"Run {run} has no stage {stage}.")
        return None if row[0] is None else zlib.decompress(row[0]).decode("utf-8", "surrogatepass")


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    if db.in_transaction:
        yield
        return
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")  # may fail, too: a full disk
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _unfinished(seconds: float) -> Outcome:
    from irscope.protocol import OutcomeKind

    return Outcome(
        OutcomeKind.CANCELLED,
        None,
        "The run has not ended, or everything was killed before its end was noted.",
        seconds,
    )


def _dump(value: object) -> str:
    return json.dumps(to_json(value))


def _load(cls: type[Outcome], text: str | None) -> Outcome | None:
    return None if text is None else from_json(cls, json.loads(text))
