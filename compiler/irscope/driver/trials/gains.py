"""What a change of a script is worth: graphs, kernels, compile time, and measured time of a call with its spread.

Both texts go through the whole pipeline, and their processes take turns, so that what else the machine does hits both.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from irscope.driver.driver import RunSpec
from irscope.driver.rounds import Measured, measured
from irscope.protocol import Compile, Lane, OutcomeKind
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass

ROUNDS = 7


@dataclass(frozen=True)
class Spread:
    """Seconds of one call of each compiled program, added up, over the rounds."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Side:
    """One of the two texts.  ``call`` is None if it could not be measured, and ``why`` says why."""

    graphs: int
    kernels: int
    compile_seconds: float
    call: Spread | None
    why: str = ""
    operations: int = 0


@dataclass(frozen=True)
class MeasuredGain:
    """The original and the changed script."""

    before: Side
    after: Side

    @property
    def is_significant(self) -> bool:
        """Whether the two spreads do not touch."""
        first, second = self.before.call, self.after.call
        return first is not None and second is not None and (second.high < first.low or first.high < second.low)

    @property
    def is_slower(self) -> bool:
        """Whether a call takes longer with the change, beyond the spread."""
        first, second = self.before.call, self.after.call
        return first is not None and second is not None and second.low > first.high


def operations(compiles: Iterable[Compile]) -> int:
    """How many operations are compiled: of each function, and of what follows a break in it, the most of its compiles."""
    most = Counter[str]()
    for compile in compiles:
        frame = compile.id.partition("/")[0]
        most[frame] = max(most[frame], compile.graph_ops)
    return most.total()


def measure(
    spec: RunSpec, texts: Mapping[str, str], rounds: int = ROUNDS, cancel: threading.Event | None = None
) -> MeasuredGain:
    """Runs a script as it is and with other texts of files, by absolute path, and times both in turns."""
    deep = dataclasses.replace(spec, lane=Lane.DEEP, symbolic_trace=False, trial=True)
    changed = dataclasses.replace(deep, overlays={**deep.overlays, **texts})
    with tempfile.TemporaryDirectory(prefix="irscope-gain-") as folder:
        path, turns = os.path.join(folder, "runs.db"), os.path.join(folder, "turns")
        os.mkdir(turns)
        first, second = measured([deep, changed], path, turns, rounds, cancel=cancel)
        with Store(path) as store:
            return MeasuredGain(_side(store, first), _side(store, second))


def _side(store: Store, one: Measured) -> Side:
    if not one.run:
        return Side(0, 0, 0.0, None, one.problem)
    report = store.report(one.run)
    graphs = sum(compile.graph_ops > 0 for compile in report.compiles)
    seconds = sum(compile.seconds for compile in report.compiles)
    call, why = _spread(one)
    if not why and one.outcome is not None and one.outcome.kind is not OutcomeKind.COMPLETED:
        why = one.outcome.message
    return Side(graphs, len(report.kernels), seconds, call, why, operations(report.compiles))


def _spread(one: Measured) -> tuple[Spread | None, str]:
    programs = one.programs or []
    why = next((str(each["why_no_seconds"]) for each in programs if each.get("why_no_seconds")), one.problem)
    rounds: list[list[float | None]] = [[each.get("seconds") for each in programs] for programs in one.rounds]
    totals = [sum(each or 0.0 for each in seconds) for seconds in rounds if seconds and None not in seconds]
    if why or not totals:
        return None, why or "The script calls no compiled program."
    return Spread(statistics.median(totals), min(totals), max(totals)), ""
