"""The report of a run, from the rows of the store."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import replace

from irscope.protocol import (
    FULL_RUN,
    SCHEMA,
    CaptureGap,
    CollectiveWait,
    Compile,
    Finding,
    Lane,
    Outcome,
    OutcomeKind,
    Piece,
    RankReport,
    Report,
    StageRef,
    from_json,
    to_json,
)
from irscope.store.costs import with_costs
from irscope.store.file import transaction
from irscope.store.places import without_numbers
from irscope.store.repeats import without_repeats
from irscope.system.processes import is_running

WRITER = "writer"
"""The process that records a run, among what is kept of how it was run: as long as it is there the run goes on."""


def report_of(db: sqlite3.Connection, run: str, sizes: Mapping[str, int]) -> Report:
    """All that is known about a run, with the sizes of some stages' texts.  Raises LookupError for an unknown run."""
    with transaction(db, "BEGIN"):  # one snapshot, however much is written meanwhile
        row = db.execute(
            "SELECT script, torch, outcome, started, pipeline, args, lane FROM runs WHERE id = ?", (run,)
        ).fetchone()
        if row is None:
            raise LookupError(f"No run is named {run}.")
        stages: dict[str, list[StageRef]] = {}
        for compile_id, id, name, language, size, *facts in db.execute(
            "SELECT compile, id, name, language, bytes, passed, seconds, nodes FROM stages WHERE run = ?"
            " ORDER BY position, rowid",
            (run,),
        ):
            stage = StageRef(id, name, language, sizes.get(id, size), *facts)
            stages.setdefault(compile_id, []).append(stage)
        every = [
            _below_target(from_json(Compile, {**json.loads(facts), "stages": to_json(stages.get(compile_id, []))}))
            for compile_id, facts in db.execute(
                "SELECT id, facts FROM compiles WHERE run = ? ORDER BY position", (run,)
            )
        ]
        compiles = tuple(compile for compile in every if not compile.target)
        places = db.execute("SELECT facts FROM places WHERE run = ?", (run,)).fetchone()
        kernels = without_numbers(_facts(db, "kernels", run), None if places is None else places[0])
        checked = checked_in(json.loads(row[5]))
        kernels = [replace(each, checked=checked.get(each.stage, "")) if checked else each for each in kernels]
        findings = [from_json(Finding, json.loads(facts)) for facts in _facts(db, "findings", run)]
        gaps, may_differ = _gaps(db, run, row[6])
        world, ranks, waits = _ranks_in(row[5])
        return Report(
            schema=SCHEMA,
            run=run,
            script=from_json(str, row[0]),
            torch=None if row[1] is None else from_json(str, row[1]),
            outcome=outcome_in(row[2]) or _unfinished(max(0.0, time.time() - row[3]), row[5]),
            compiles=compiles,
            findings=with_costs(without_repeats(findings), compiles),
            kernels=tuple(kernel for kernel in kernels if not kernel.target),
            capture_gaps=gaps,
            pipeline=from_json(str, row[4]),
            predictions=tuple(compile for compile in every if compile.target),
            predicted_kernels=tuple(kernel for kernel in kernels if kernel.target),
            world=world,
            ranks=ranks,
            waits=waits,
            pieces=_pieces_in(row[5]),
            may_differ=may_differ,
        )


def _gaps(db: sqlite3.Connection, run: str, lane: object) -> tuple[tuple[CaptureGap, ...], tuple[str, ...]]:
    """What was not captured, and why a full run may differ, which none does from itself."""
    rows = db.execute("SELECT what, why FROM gaps WHERE run = ? ORDER BY rowid", (run,))
    gaps = [from_json(CaptureGap, to_json(CaptureGap(*gap))) for gap in rows]
    reasons = tuple(gap.why for gap in gaps if gap.what == FULL_RUN)
    return tuple(gap for gap in gaps if gap.what != FULL_RUN), reasons if lane == Lane.FAST.value else ()


def _ranks_in(text: str) -> tuple[int, tuple[RankReport, ...], tuple[CollectiveWait, ...]]:
    """How many ranks a run's job has, those that were run, and who waited; an older irscope kept the arguments as a list."""
    how = json.loads(text)
    if not isinstance(how, dict) or "ranks" not in how:
        return 0, (), ()
    ranks, waits = from_json(tuple[RankReport, ...], how["ranks"]), how.get("waits", [])
    return from_json(int, how.get("world")), ranks, from_json(tuple[CollectiveWait, ...], waits)


def checked_in(how: object) -> dict[str, str]:
    """What checks of kernels said, by the stage that has the kernel's text."""
    found = how.get("checked") if isinstance(how, dict) else None
    return {str(stage): str(said) for stage, said in found.items()} if isinstance(found, dict) else {}


def _pieces_in(text: str) -> tuple[Piece, ...]:
    """What was compiled piece by piece, of an opened trace."""
    how = json.loads(text)
    return from_json(tuple[Piece, ...], how["pieces"]) if isinstance(how, dict) and "pieces" in how else ()


def _below_target(compile: Compile) -> Compile:
    """A prediction with its target at each of its stages; any other compile as it is."""
    if not compile.target:
        return compile
    return replace(compile, stages=tuple(replace(stage, target=compile.target) for stage in compile.stages))


def _facts(db: sqlite3.Connection, table: str, run: str) -> list[str]:
    return [facts for (facts,) in db.execute(f"SELECT facts FROM {table} WHERE run = ? ORDER BY position", (run,))]


def _unfinished(seconds: float, how: str) -> Outcome:
    process = facts.get(WRITER) if isinstance(facts := json.loads(how), dict) else None
    goes_on = isinstance(process, int) and is_running(process)
    message = "The run has not ended, or it was killed before its end was recorded."
    return Outcome(OutcomeKind.CANCELLED, None, "The run is going on." if goes_on else message, seconds)


def outcome_in(text: str | None) -> Outcome | None:
    """The outcome that a row of a run holds; None if it has none yet."""
    return None if text is None else from_json(Outcome, json.loads(text))
