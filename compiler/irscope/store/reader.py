"""What can be asked of a run store."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import platform
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from irscope.ir.symbols import symbols_of
from irscope.pipelines.registry import names_with, role_of, stage_kind
from irscope.protocol import (
    EarlierStage,
    Finding,
    Lane,
    Report,
    RunSummary,
    from_json,
)
from irscope.protocol.symbols import SymbolFacts, symbols_in
from irscope.store.choosing import (
    best_run,
    find_run,
    newest_of_each_pipeline,
    newest_runs,
    newest_with,
    runs_of_file,
    runs_touching,
)
from irscope.store.costs import measured_step, with_measured
from irscope.store.earlier import earlier_stages
from irscope.store.file import (
    StoreError,
    is_own_store,
    reading,
    transaction,
)
from irscope.store.reports import report_of
from irscope.store.texts import NO_TEXT, DamagedTextError, MissingCodecError, Texts
from irscope.vocabulary.stages import Role

_LONGEST_DEVICE = 200
"""Characters of a GPU's name: what is longer is none."""


class StoreReader:
    """The reading side of `irscope.store.store.Store`.

    Attributes:
        path: The store's file.
    """

    path: str
    _db: sqlite3.Connection
    _texts: Texts

    @reading
    def runs(self, limit: int = 50, script: str | None = None) -> list[RunSummary]:
        """The newest runs first, of one script where it is named; without those whose rows are damaged."""
        return newest_runs(self._db, limit, script)

    @reading
    def newest_of_each_pipeline(self, script: str) -> list[RunSummary]:
        """The newest deep run of each pipeline that a script went through; newest first."""
        return newest_of_each_pipeline(self._db, script)

    @reading
    def runs_touching(self, file: str, limit: int = 20) -> list[tuple[str, str]]:
        """The newest runs that compiled, found or generated something in a file, with their scripts; newest first."""
        return runs_touching(self._db, file, limit)

    @reading
    def runs_of_file(self, file: str, limit: int = 20) -> list[RunSummary]:
        """Like `runs_touching`, with the runs whose script it is."""
        return runs_of_file(self._db, file, limit)

    @reading
    def best_run(self, file: str | None = None) -> str | None:
        """The newest run that compiled something and came to its end; else the newest that compiled something, then
        the newest; None if there is none.

        Args:
            file: Only runs that have to do with this file: it is their script, or they compiled, found or generated
                something in it.
        """
        return best_run(self._db, file)

    @reading
    def find_run(self, name: str | None = None) -> str:
        """The id of the run that is named by its id or a part that only it begins with; the newest if none is named.

        Raises LookupError with a message for the user if there is none, or more than one.
        """
        return find_run(self._db, self.path, name)

    @reading
    def source_of(self, run: str) -> str:
        """The digest of the script's text with which the run was made."""
        row = self._db.execute("SELECT source FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None:
            raise LookupError(f"No run is named {run}.")
        return str(row[0])

    @reading
    def lane_of(self, run: str) -> Lane:
        """The lane of a run.  Raises LookupError for an unknown run."""
        row = self._db.execute("SELECT lane FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None:
            raise LookupError(f"No run is named {run}.")
        return Lane(row[0])

    @reading
    def report(self, run: str, sizes: bool = True) -> Report:
        """All that is known about a run, also of a run in progress (its outcome is then *running so far* as cancelled).

        Args:
            sizes: Whether the sizes of texts that are made from data are needed: of a run that has ended they are
                measured when a caller first asks for them, which takes some tenths of a second.

        Raises LookupError for an unknown run.
        """
        report = report_of(self._db, run, self._measured(run) if sizes else {})
        report = with_symbols(report, lambda stage: self.stage_data(run, stage))
        with contextlib.suppress(ValueError, RecursionError):  # a profile from elsewhere
            if (profile := self.profile(run)) is not None:
                found = with_measured(report.findings, profile)
                return dataclasses.replace(report, findings=found, step_seconds=measured_step(profile))
        return report

    @reading
    def stage_text(self, run: str, stage: str) -> str:
        """The text of a stage.  Raises LookupError if there is none."""
        name, digest, _ = self._stage(run, stage)
        text = self._made_text(run, stage, name) if digest == NO_TEXT else self._text(digest)
        if text is None:
            raise LookupError(f"The text of stage {stage} of run {run} is missing.")
        return text

    @reading
    def stage_data(self, run: str, stage: str) -> Any:
        """What was kept of a stage beside its text, as plain JSON values; None if there is none.

        Raises LookupError for an unknown stage.
        """
        name, digest, data_digest = self._stage(run, stage)
        kept = self._text(data_digest)
        data = None if kept is None else json.loads(kept)
        if role_of(name) is not Role.LOWERED:
            return data
        from irscope.ir.line_tables import with_lines  # here: runs themselves never read these

        return with_lines(data, stage_kind(name).language, self._text(digest))

    @reading
    def stages_with_data(self, run: str, name: str) -> frozenset[str]:
        """Ids of the stages of this name of which more than a text is kept."""
        rows = self._db.execute("SELECT id FROM stages WHERE run = ? AND name = ? AND data IS NOT NULL", (run, name))
        return frozenset(from_json(str, id) for (id,) in rows)

    @reading
    def sources(self, run: str, wanted: Callable[[str], object] = lambda _: True) -> dict[str, str]:
        """The source files that a run names, by path, with their texts as they were then."""
        rows = self._db.execute("SELECT file, digest FROM sources WHERE run = ?", (run,)).fetchall()
        rows = [(from_json(str, file), digest) for file, digest in rows]
        return {file: text for file, digest in rows if wanted(file) and (text := self._text(digest)) is not None}

    @reading
    def earlier_stages(self, run: str, names: Collection[str]) -> tuple[EarlierStage, ...]:
        """Stages of these kinds of earlier runs of the script of a run, the newest run first."""
        return earlier_stages(self._db, self._text, run, names)

    @reading
    def has_trails(self, run: str) -> bool:
        """Whether trails were kept for any compile of a run."""
        return self._db.execute("SELECT 1 FROM trails WHERE run = ?", (run,)).fetchone() is not None

    @reading
    def trails(self, run: str) -> dict[str, Any]:
        """By compile what `put_trails` kept, as plain JSON values; without invalid ones: they can be made again."""
        found = {}
        for compile, digest in self._db.execute("SELECT compile, digest FROM trails WHERE run = ?", (run,)).fetchall():
            with contextlib.suppress(ValueError, RecursionError):
                found[from_json(str, compile)] = json.loads(self._text(digest) or "null")
        return found

    @reading
    def profile(self, run: str) -> Any:
        """What `put_profile` kept with a run, as plain JSON values; None if the run was not profiled."""
        row = self._db.execute("SELECT digest FROM profiles WHERE run = ?", (run,)).fetchone()
        text = self._text(row[0]) if row else None
        return None if text is None else json.loads(text)

    @reading
    def newest_profiled(self, script: str | None) -> str | None:
        """The newest run of a script, or of any, that a profile was kept with; None if there is none."""
        return newest_with(self._db, "profiles", script)

    @reading
    def comparison(self, run: str) -> Any:
        """What `put_comparison` kept with a run, as plain JSON values; None if the run is of no comparison."""
        row = self._db.execute("SELECT digest FROM comparisons WHERE run = ?", (run,)).fetchone()
        text = self._text(row[0]) if row else None
        return None if text is None else json.loads(text)

    @reading
    def newest_compared(self, script: str) -> str | None:
        """The newest run of a script that a comparison of pipelines was kept with; None if there is none."""
        return newest_with(self._db, "comparisons", script)

    def device_of(self, run: str) -> str:
        """The name of the GPU that a run used, as PyTorch reports it; empty if it used none, or that was not kept.

        Raises LookupError for an unknown run.
        """
        name = self.how_run(run)[0].get("device")
        return name[:_LONGEST_DEVICE] if isinstance(name, str) else ""

    @reading
    def how_run(self, run: str) -> tuple[dict[str, Any], str]:
        """How a run was started (``args``, what `create_run` was given, ``files``, ``device``) and the digest of its
        script's text.

        A run of an older irscope has its arguments alone.  Raises LookupError for an unknown run.
        """
        row = self._db.execute("SELECT args, source FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None:
            raise LookupError(f"No run is named {run}.")
        try:
            how = json.loads(row[0])
        except ValueError:
            how = {}
        return (how if isinstance(how, dict) else {"args": how}), str(row[1])

    def is_made_here(self, run: str) -> bool:
        """Whether irscope ran the script on this machine into the user's own store; false for an opened trace."""
        return is_own_store(self.path) and self.how_run(run)[0].get("machine") == platform.node()

    def _measured(self, run: str) -> dict[str, int]:
        """How long the texts are that are made from data, by stage, of those that nobody has measured yet."""
        rows = self._db.execute(
            "SELECT stages.id, name FROM stages JOIN runs ON runs.id = run"
            " WHERE run = ? AND digest = ? AND bytes = 0 AND outcome IS NOT NULL",
            (run, NO_TEXT),
        ).fetchall()
        found = {}
        for id, name in rows:
            with contextlib.suppress(LookupError, StoreError):
                found[id] = len((self._made_text(run, id, name) or "").encode("utf-8", "surrogatepass"))
        if found:
            with contextlib.suppress(sqlite3.Error), transaction(self._db, "BEGIN IMMEDIATE"):  # it may be read-only
                for id, size in found.items():
                    self._db.execute("UPDATE stages SET bytes = ? WHERE run = ? AND id = ?", (size, run, id))
        return found

    def _stage(self, run: str, stage: str) -> tuple[str, bytes, bytes | None]:
        row = self._db.execute(
            "SELECT name, digest, data FROM stages WHERE run = ? AND id = ?", (run, stage)
        ).fetchone()
        if row is None:
            raise LookupError(f"Run {run} has no stage {stage}.")
        return from_json(str, row[0]), row[1], row[2]

    def _text(self, digest: bytes | None) -> str | None:
        try:
            return None if digest is None else self._texts.get(digest)
        except MissingCodecError as error:
            raise StoreError(f"The run store {self.path} cannot be read by {sys.executable}: {error}.") from error
        except DamagedTextError as error:  # this text alone: what else is stored can still be shown
            raise LookupError(
                f"A text in the run store {self.path} is damaged: {error}. Run the script again."
            ) from error

    def _made_text(self, run: str, stage: str, name: str) -> str | None:
        make = made_texts().get(name)
        try:
            return None if make is None else make(self.stage_data(run, stage))
        except ValueError as error:
            raise LookupError(f"Stage {stage} of run {run} cannot be read: {error}.") from error


def made_texts() -> Mapping[str, Callable[[Any], str]]:
    """By name the stages whose text tells no more than their data, and is made from it when it is read."""
    from irscope.symbolic.text import text_of
    from irscope.symbolic.trace import Walk

    return {name: lambda data: text_of(Walk(data)) for name in names_with(Role.TRACE)}


def with_symbols(report: Report, data_of: Callable[[str], Any]) -> Report:
    """The report with the symbols that its findings name, as their compiles know them.

    Args:
        data_of: Gives the data of a stage.
    """
    stages = {
        compile.id: stage.id
        for compile in report.compiles
        for stage in compile.stages
        if role_of(stage.name) is Role.SYMBOLS
    }
    read: dict[str, dict[str, SymbolFacts]] = {}

    def known(compile: str) -> dict[str, SymbolFacts]:
        if compile not in read:
            try:
                read[compile] = symbols_of(data_of(stages[compile]))
            except (LookupError, TypeError, ValueError):  # it has none, or data from elsewhere
                read[compile] = {}
        return read[compile]

    def named(finding: Finding) -> Iterator[SymbolFacts]:
        for name in symbols_in(finding.words):
            found = (facts for compile in finding.compiles or stages if (facts := known(compile).get(name)))
            yield from list(found)[-1:]

    found = tuple(dataclasses.replace(each, symbols=tuple(named(each))) for each in report.findings) if stages else ()
    return dataclasses.replace(report, findings=found) if found else report
