"""The run store: one SQLite file that holds runs, compiles, stages, findings and kernels.

The driver of a run writes, everybody reads (`irscope.store.reader`).  The file is in WAL mode, so readers never wait for
the writer, and each fact is committed when it is known: a process that is killed at any moment leaves a file that opens
again and holds all that was committed.  ``synchronous = NORMAL`` gives up durability only against loss of power.

Texts (a stage's text, its data) are kept by `texts.Texts`, once per content.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence

from irscope.ir.nodes import count_of
from irscope.protocol import (
    DEFAULT_PIPELINE,
    CaptureGap,
    CollectiveWait,
    Compile,
    DataWritten,
    Finding,
    Kernel,
    Lane,
    Outcome,
    Piece,
    RankReport,
    StageRef,
    StageWritten,
    json_text,
    to_json,
)
from irscope.store.disk import why_full
from irscope.store.file import (
    BUSY_SECONDS,
    StoreError,
    default_path,
    go_on_in_memory,
    open_store,
    recovered,
    transaction,
)
from irscope.store.places import with_numbers
from irscope.store.reader import StoreReader, made_texts
from irscope.store.recovery import is_damage
from irscope.store.reports import WRITER, checked_in
from irscope.store.texts import NO_TEXT, Texts
from irscope.store.upkeep import KEEP_BYTES, KEEP_RUNS, Upkeep
from irscope.vocabulary.stages import KERNELS

__all__ = ["Store", "StoreError", "default_path"]

_MADE_LAST = "(SELECT coalesce(max(made), 0) + 1 FROM runs)"
"""The place of a run after all others.  The number of one that was deleted may come again, and does not matter any more."""


class Store(StoreReader):
    """A connection to a run store; any thread may use it, but only one at a time.

    Args:
        path: The file; made, with its folders, if it does not exist.  One of the version before is brought up to date;
            one of any other version is moved aside (to ``….old``), since everything in it can be made again by running.

    Raises:
        StoreError: The path cannot be opened or is not an SQLite file.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        opened = open_store(self.path)
        self.unkept = opened.unkept
        """Why nothing that is written here is kept, for the user; empty if it is."""
        self._in_memory = False
        self._begun: tuple[object, ...] = ()
        """The row of the run that was begun last."""
        self._use(opened.db)
        self._file = _identity(self.path)

    def _use(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._texts = Texts(db)
        self._upkeep = Upkeep(self.path, db, self._texts)

    def close(self) -> None:
        """Close the connection."""
        self._texts.forget()
        self._db.close()

    def is_current(self) -> bool:
        """Whether the path still names the file that was opened, and was not on a full disk: else open it again."""
        return not self.unkept and self._file == _identity(self.path)

    def rest(self) -> None:
        """Gives back the memory that only makes reading the same again faster."""
        self._texts.forget()
        self._db.execute("PRAGMA shrink_memory")

    def go_on_in_memory(self, error: sqlite3.Error, run: str = "") -> bool:
        """On a full disk, which a write has met: what is written from now on, and what there is of a run, is in memory.

        So the run can be shown at its end.  False if the disk is not full; `unkept` then says nothing new.
        """
        why = self.unkept or why_full(os.path.dirname(self.path))
        if not why or self._in_memory:
            return False
        self.unkept = (
            why if self.unkept else f"{os.path.dirname(self.path)} cannot be written: {why}. Free some space there."
        )
        old = self._db
        self._use(go_on_in_memory(old, run))
        self._in_memory = True
        old.close()
        return True

    @contextlib.contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Inside, other processes that write are waited for at most so long."""
        self._db.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Everything written inside becomes visible at once, or not at all."""
        return transaction(self._db, "BEGIN IMMEDIATE")

    # --- writing ------------------------------------------------------------------------------------------------------

    def create_run(
        self,
        script: str,
        args: Sequence[str],
        lane: Lane,
        source: str,
        how: Mapping[str, object] | None = None,
        pipeline: str = DEFAULT_PIPELINE,
        is_made: bool = True,
    ) -> str:
        """A new run; returns its id.

        Args:
            source: The digest of the script's text as run.
            how: What else is needed to run it again (`how_run`), as plain data.
            pipeline: The name of the pipeline that the script's programs go through; one that nobody knows may be no
                valid text.
            is_made: Whether it is the newest run from now on; else it is the oldest until `make_newest`.
        """
        pipeline = pipeline.encode("utf-8", "backslashreplace").decode()
        run = time.strftime("%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(3)
        kept = json.dumps({**(how or {}), "args": list(args), WRITER: os.getpid()})
        row = (run, script, kept, lane.value, time.time(), source, pipeline)
        try:
            self._insert_run(row, is_made)
        except sqlite3.Error as error:
            if not self._mended(error):
                raise
            self._insert_run(row, is_made)
        self._begun = row
        return run

    def _insert_run(self, row: tuple[object, ...], is_made: bool) -> None:
        self._db.execute(
            "INSERT INTO runs (id, script, args, lane, started, source, pipeline, made)"
            f" VALUES (?, ?, ?, ?, ?, ?, ?, {_MADE_LAST if is_made else 0})",
            row,
        )

    def _mended(self, error: sqlite3.Error) -> bool:
        """Whether a run can be begun after an error: in a new store in place of a damaged one, or in memory."""
        return self.recover() if is_damage(error) else self.go_on_in_memory(error)

    def recover(self) -> bool:
        """Goes on in a new store that has what can be read of this one, which is damaged; false if it cannot be made."""
        try:
            is_new = recovered(self.path)
        except (OSError, sqlite3.Error):
            return False
        if is_new:
            self._db.close()
            self._use(open_store(self.path).db)
            self._file = _identity(self.path)
            if self._begun and not self._db.execute("SELECT 1 FROM runs WHERE id = ?", self._begun[:1]).fetchone():
                self._insert_run(self._begun, True)
        return is_new

    def make_newest(self, run: str) -> None:
        """From now on no other run was made after this one."""
        self._db.execute(f"UPDATE runs SET made = {_MADE_LAST} WHERE id = ?", (run,))

    def forget_findings(self, run: str) -> None:
        """Deletes what a run has found so far; it restarts."""
        with self.transaction():
            self._upkeep.delete_facts(run)

    def set_torch(self, run: str, version: str) -> None:
        """Record the version of torch that a run uses."""
        self._db.execute("UPDATE runs SET torch = ? WHERE id = ?", (version, run))

    def set_script(self, run: str, script: str, source: str) -> None:
        """Record the script of a run that is known only now, and the digest of its text."""
        self._db.execute("UPDATE runs SET script = ?, source = ? WHERE id = ?", (script, source, run))

    def delete(self, run: str) -> None:
        """Deletes a run that came to nothing."""
        self._upkeep.delete(run)

    def set_outcome(self, run: str, outcome: Outcome) -> None:
        """Record how a run ended."""
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
        self, run: str, compile: str, stage: StageRef, text: str | None, position: float, data: object = None
    ) -> None:
        """Adds a stage or replaces its text.

        Args:
            text: None if `made_texts` makes it from the data.
            position: Orders the stages of a compile along the pipeline.
            data: What the text cannot tell (nodes with their ancestors, fusion decisions), as plain JSON values.
        """
        nodes = count_of(stage.name, data) if stage.nodes is None else stage.nodes
        self.put_written_stage(
            run, StageWritten(compile, dataclasses.replace(stage, nodes=nodes), position, text, json_text(data))
        )

    def put_written_stage(self, run: str, written: StageWritten) -> None:
        """Like `put_stage`, for a stage whose nodes are counted and whose data is text."""
        stage, text, data = written.stage, written.text, written.data
        with self.transaction():  # a text that no stage names yet might be swept away
            digest, size = (NO_TEXT, stage.bytes) if text is None else self._texts.put(text)
            facts = None if data is None else self._texts.put(data)[0]
            about = (stage.name, stage.language, size, digest, facts, stage.passed, stage.seconds, stage.nodes)
            self._db.execute(
                "INSERT OR REPLACE INTO stages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run, stage.id, written.compile, written.position, *about),
            )
            if f"/{KERNELS}" not in stage.id:  # what is made of a kernel on request is not part of them
                self._db.execute("DELETE FROM trails WHERE run = ? AND compile = ?", (run, written.compile))

    def put_stage_data(self, run: str, stage: str, data: object) -> None:
        """Replaces what is kept of a stage beside its text; does nothing for an unknown stage."""
        row = self._db.execute("SELECT name FROM stages WHERE run = ? AND id = ?", (run, stage)).fetchone()
        self.put_written_data(run, DataWritten(stage, json_text(data), count_of(row[0], data) if row else None))

    def put_written_data(self, run: str, written: DataWritten) -> None:
        """Like `put_stage_data`, for data that is text."""
        with self.transaction():
            digest = self._texts.put(written.data or "null")[0]
            self._db.execute(
                "UPDATE stages SET data = ?, nodes = coalesce(?, nodes) WHERE run = ? AND id = ?",
                (digest, written.nodes, run, written.stage),
            )

    def put_trails(self, run: str, compile: str, trails: object) -> None:
        """Keeps what `provenance.trails` knows of a compile, until one of its stages is written again."""
        with self.transaction():
            digest = self._texts.put(json_text(trails) or "null")[0]
            self._db.execute("INSERT OR REPLACE INTO trails VALUES (?, ?, ?)", (run, compile, digest))

    def put_comparison(self, runs: Sequence[str], comparison: object) -> None:
        """Keeps with each run of a comparison of pipelines what that found, as plain JSON values."""
        with self.transaction():
            digest = self._texts.put(json_text(comparison) or "null")[0]
            self._db.executemany("INSERT OR REPLACE INTO comparisons VALUES (?, ?)", [(run, digest) for run in runs])

    def put_profile(self, run: str, profile: object) -> None:
        """Keeps with a run the time that was measured, as plain JSON values."""
        with self.transaction():
            digest = self._texts.put(json_text(profile) or "null")[0]
            self._db.execute("INSERT OR REPLACE INTO profiles VALUES (?, ?)", (run, digest))

    def put_source(self, run: str, file: str, text: str) -> None:
        """Keeps the text of a source file as it was in this run."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?)", (run, file, self._texts.put(text)[0]))

    def put_kernel(self, run: str, kernel: Kernel) -> None:
        """Store a kernel; it replaces an earlier one of the same stage and name."""
        self._db.execute(
            "INSERT INTO kernels VALUES (?, ?, ?, (SELECT count(*) FROM kernels WHERE run = ?), ?)"
            " ON CONFLICT DO UPDATE SET facts = excluded.facts",
            (run, kernel.stage, kernel.name, run, _dump(kernel)),
        )

    def put_kernels(self, run: str, kernels: Sequence[Kernel]) -> None:
        """Store all kernels of a run again, with what they have in common once."""
        facts, places = with_numbers(kernels)
        self._db.executemany(
            "UPDATE kernels SET facts = ? WHERE run = ? AND stage = ? AND name = ?",
            [(one, run, kernel.stage, kernel.name) for one, kernel in zip(facts, kernels, strict=True)],
        )
        self._db.execute("INSERT OR REPLACE INTO places VALUES (?, ?)", (run, places))

    def put_finding(self, run: str, finding: Finding) -> None:
        """Adds a finding or replaces the one with the same cause."""
        self._db.execute(
            "INSERT INTO findings VALUES (?, ?, (SELECT count(*) FROM findings WHERE run = ?), ?)"
            " ON CONFLICT DO UPDATE SET facts = excluded.facts",
            (run, repr(finding.cause), run, _dump(finding)),
        )

    def put_checked(self, run: str, stage: str, said: str, old: Sequence[Finding], new: Sequence[Finding]) -> None:
        """Keeps what a check of a kernel said, with its findings in place of those of an earlier check."""
        with self.transaction():
            self.put_facts(run, {"checked": {**checked_in(self.how_run(run)[0]), stage: said}})
            self._db.executemany("DELETE FROM findings WHERE run = ? AND cause = ?", [(run, repr(each.cause)) for each in old])  # fmt: skip
            for finding in new:
                self.put_finding(run, finding)

    def put_gap(self, run: str, gap: CaptureGap) -> None:
        """Store a gap; the same gap is kept once."""
        self._db.execute("INSERT OR IGNORE INTO gaps VALUES (?, ?, ?)", (run, gap.what, gap.why))

    def put_facts(self, run: str, facts: Mapping[str, object]) -> None:
        """Keeps what is known about a run beside how it was started (`how_run`), as plain JSON values: `RUN_FACTS`.

        Raises LookupError for an unknown run.
        """
        how, _ = self.how_run(run)
        self._db.execute("UPDATE runs SET args = ? WHERE id = ?", (json.dumps({**how, **facts}), run))

    def put_pieces(self, run: str, pieces: Sequence[Piece]) -> None:
        """Keeps what was compiled piece by piece."""
        self.put_facts(run, {"pieces": to_json(list(pieces))})

    def put_ranks(
        self, run: str, world: int, ranks: Sequence[RankReport], waits: Sequence[CollectiveWait] = ()
    ) -> None:
        """Keeps with the run of the first rank how many ranks the job has, what those that were run compiled, and who
        waited for whom."""
        how, _ = self.how_run(run)
        args = json.dumps({**how, "world": world, "ranks": to_json(list(ranks)), "waits": to_json(list(waits))})
        # It is the newest of them: `irscope show` without a name shows it.
        self._db.execute("UPDATE runs SET args = ? WHERE id = ?", (args, run))
        self.make_newest(run)

    def tidy(self, run: str, keep_bytes: int = KEEP_BYTES, keep_runs: int = KEEP_RUNS, packs: bool = True) -> int:
        """What is to be done when a run has ended, and can wait: packs its texts, and prunes; returns how many runs
        went.  A run that did not begin is deleted: the environment could not run it, and it must not be in the place of
        the newest run.

        Args:
            packs: Whether texts are packed, which takes about a second for 25 MB; else the next run does it
                (`pack_newest`).
        """
        return self._upkeep.tidy(run, made_texts() if packs else None, keep_bytes, keep_runs)

    def pack_newest(self) -> None:
        """Packs the texts of the newest runs that have ended and were not packed then."""
        self._upkeep.pack_newest(made_texts())

    def prune(self, keep_bytes: int, keep_runs: int = KEEP_RUNS) -> int:
        """Deletes the oldest runs until there are no more than ``keep_runs``, whose texts fit into ``keep_bytes``; two
        are kept in any case.  Returns how many runs went."""
        return self._upkeep.prune(keep_bytes, keep_runs)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _dump(value: object) -> str:
    return json.dumps(to_json(value))
