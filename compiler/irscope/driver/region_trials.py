"""Times the graphs between breaks through other pipelines, beside Inductor and by turns."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irscope.driver.driver import RunSpec
from irscope.driver.rounds import Measured, measured
from irscope.profiling.noise import is_clear, spread_of
from irscope.profiling.regions import Elsewhere, MeasuredRegion
from irscope.protocol import EntryKind, Severity
from irscope.runner import kept_regions
from irscope.store.store import Store
from irscope.vocabulary.lanes import DEFAULT_PIPELINE
from irscope.vocabulary.visible import bounded

SCRIPT = Path(kept_regions.__file__).with_name("region_script.py")
ROUNDS = 18
"""The rounds of each side: enough to tell 3 % from noise on a machine that does nothing else."""


def compared_elsewhere(
    spec: RunSpec,
    regions: Sequence[MeasuredRegion],
    told: object,
    folder: str,
    pipelines: Sequence[str],
    *,
    on_step: Callable[[str], None] = lambda text: None,
    cancel: threading.Event | None = None,
) -> tuple[MeasuredRegion, ...]:
    """The same regions, each with what a call of it takes through other pipelines, forward alone.

    Args:
        spec: The run of the profile.
        told: What the run's process wrote of the same regions: which file has the graph of each, or why none has it.
        folder: With these files.
        pipelines: Names of others than Inductor.
    """
    kept = [_Kept.of(row, folder) for row in (told if isinstance(told, list) else ()) if isinstance(row, dict)]
    kept += [_Kept(None, "Its graph was not kept.")] * (len(regions) - len(kept))
    sides: list[_Side] = []
    if any(one.number is not None for one in kept):
        sides = _timed(spec, folder, (DEFAULT_PIPELINE, *pipelines), on_step, cancel)
    return tuple(
        dataclasses.replace(
            one, elsewhere=tuple(_elsewhere(name, at, mine, sides) for at, name in enumerate(pipelines, 1))
        )
        for one, mine in zip(regions, kept, strict=False)
    )


@dataclass(frozen=True)
class _Kept:
    """The number of the file that has a region's graph; None if there is none, and why."""

    number: int | None
    why_not: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any], folder: str) -> _Kept:
        """What the process says is not trusted: the file must be there."""
        number = row.get("kept")
        if type(number) is int and os.path.isfile(os.path.join(folder, f"{number}.pt")):
            return cls(number)
        return cls(None, bounded(str(row.get("why_not_kept") or row.get("why_not") or "Its graph was not kept.")))


@dataclass(frozen=True)
class _Side:
    """What one process measured, and by file the first reason that its run has against a graph; of no file: against all."""

    measured: Measured
    reasons: Mapping[str, str]

    def seconds(self, number: int) -> list[float]:
        """The seconds of each round in which a graph was timed."""
        at = self._program(number)
        found = [row[at].get("seconds") for row in self.measured.rounds if at is not None and at < len(row)]
        return [float(one) for one in found if isinstance(one, (int, float))]

    def _program(self, number: int) -> int | None:
        """Which program of the script a graph is; None if its module could not be made there."""
        names = [os.path.basename(str(one.get("file", ""))) for one in self.measured.programs or ()]
        return next((at for at, name in enumerate(names) if name == _file_of(number)), None)

    def why(self, number: int) -> str:
        """Why a graph was not timed; empty if that is not known."""
        at = self._program(number)
        programs: Sequence[Mapping[str, Any]] = self.measured.programs or ()
        if at is None:
            return self.measured.problem or "Its graph could not be made again in another process."
        told = str(programs[at].get("why_no_seconds") or self.measured.problem)
        return (self.reasons.get(_file_of(number)) or self.reasons.get("") or told) if told else ""


def _file_of(number: int) -> str:
    return f"{kept_regions.module_name(number)}.py"


def _reasons(store: Store, run: str) -> dict[str, str]:
    """The reasons from findings first, then from what was not captured."""
    found: dict[str, str] = {}
    with contextlib.suppress(LookupError):
        report = store.report(run)
        for one in report.findings:
            if one.severity in (Severity.ERROR, Severity.WARNING):
                found.setdefault(os.path.basename(one.file), one.message)
        for gap in report.capture_gaps:
            found.setdefault("", f"{gap.what}: {gap.why}" if gap.why else gap.what)
    return found


def _timed(
    spec: RunSpec,
    folder: str,
    pipelines: Sequence[str],
    on_step: Callable[[str], None],
    cancel: threading.Event | None,
) -> list[_Side]:
    script = os.path.join(folder, "regions.py")
    shutil.copy(SCRIPT, script)
    plain = dataclasses.replace(
        spec, script=script, args=(), entry=EntryKind.SCRIPT, model=None, overlays={}, profile=0, rounds=""
    )
    specs = [dataclasses.replace(plain, pipeline=name) for name in pipelines]
    with tempfile.TemporaryDirectory(prefix="irscope-regions-") as place:
        rounds = os.path.join(place, "rounds")
        os.mkdir(rounds)
        path = os.path.join(place, "runs.db")
        found = measured(specs, path, rounds, ROUNDS, on_step=on_step, cancel=cancel)
        with Store(path) as store:  # it is gone with the folder
            return [_Side(one, _reasons(store, one.run)) for one in found]


def _elsewhere(name: str, at: int, kept: _Kept, sides: Sequence[_Side]) -> Elsewhere:
    if kept.number is None:
        return Elsewhere(name, why_not=kept.why_not)
    base, other = sides[0], sides[at]
    mine, theirs = base.seconds(kept.number), other.seconds(kept.number)
    pairs = min(len(mine), len(theirs))
    mine, theirs = mine[:pairs], theirs[:pairs]
    if (spread := spread_of(theirs)) is None:
        why = other.why(kept.number) or base.why(kept.number) or "The two have too few rounds."
        return Elsewhere(name, why_not=bounded(why.split("\n", 1)[0]))
    return Elsewhere(name, spread, spread_of(mine), is_clear(mine, theirs))
