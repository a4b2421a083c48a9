"""What a script takes without a graph break or a recompilation: each fix that is verified runs beside the script as it is, by turns.

The changed texts are overlays of runs in a private store; nothing is written into the user's files.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import threading
from collections.abc import Callable, Mapping

from irscope.driver.driver import RunSpec
from irscope.driver.fixing.candidates import Candidate
from irscope.driver.fixing.trying import Trying
from irscope.driver.rounds import Measured, measured, seconds_of, why_not_timed
from irscope.driver.trials.proving import Prover, not_run
from irscope.fixing.texts import applied
from irscope.profiling.break_words import BreakRemoved, RecompileCost
from irscope.profiling.noise import is_clear, spread_of
from irscope.profiling.profile import Profile
from irscope.protocol import Finding, Report
from irscope.worker.client import Worker

ROUNDS = 18
"""The rounds of each side: enough to tell 3 % from noise on a machine that does nothing else."""
_FIX_SECONDS = 300.0
_MOST = 4
"""The most breaks and recompilations, the dearest ones; each has its own process, which stays until all rounds have
ended."""

Place = tuple[str, int, str]
"""The file, line and code of a finding."""


def breaks_removed(
    spec: RunSpec,
    profile: Profile,
    report: Report,
    *,
    on_step: Callable[[str], None] = lambda text: None,
    cancel: threading.Event | None = None,
) -> Profile:
    """The same profile, whose breaks and recompilations say what a step takes without them, or why that is not known.

    Args:
        spec: The run of the profile; the fixes are proven in the fast lane and timed in its own.
        report: Report of the profile's run.
        on_step: Called with what begins now, in few words.
    """
    plain = dataclasses.replace(spec, profile=0, rounds="")
    breaks = [(one.file, one.line, one.code) for one in profile.breaks]
    again = [_recompiled_at(one, report) for one in profile.recompiled]
    # The dearest breaks come first; recompilations are fewer, and most of what they take is taken once.
    places = list(dict.fromkeys([*breaks[:_MOST], *filter(None, again[:_MOST])]))
    on_step("trying fixes")
    fixes = _verified(plain, set(places), cancel)
    removed = _timed(
        plain, {place: fixes.get(place, "Its finding did not come again.") for place in places}, on_step, cancel
    )
    return dataclasses.replace(
        profile,
        breaks=tuple(
            dataclasses.replace(one, removed=removed.get(place, _DEARER))
            for one, place in zip(profile.breaks, breaks, strict=True)
        ),
        recompiled=tuple(
            dataclasses.replace(one, removed=_NO_FINDING if place is None else removed.get(place, _DEARER))
            for one, place in zip(profile.recompiled, again, strict=True)
        ),
    )


_DEARER = BreakRemoved("", why_not="Others are dearer.")
_NO_FINDING = BreakRemoved("", why_not="No finding says why it was compiled again.")


def _recompiled_at(cost: RecompileCost, report: Report) -> Place | None:
    """The place of the first finding that says why a function was compiled again."""
    frames = {
        one.id.partition("/")[0]
        for one in report.compiles
        if (one.title, one.file, one.line) == (cost.function, cost.file, cost.line)
    }
    for finding in report.findings:
        if finding.kind == "recompilation" and frames & {each.partition("/")[0] for each in finding.compiles}:
            return _place(finding)
    return None


def _timed(
    spec: RunSpec,
    fixes: Mapping[Place, tuple[Candidate, str] | str],
    on_step: Callable[[str], None],
    cancel: threading.Event | None,
) -> dict[Place, BreakRemoved]:
    """By place what a step takes with its fix, beside the script as it is."""
    texts = {place: found for place, found in fixes.items() if isinstance(found, tuple)}
    timed: dict[Place, Measured] = {}
    base: Measured | None = None
    if texts:
        specs = [dataclasses.replace(spec, trial=True)]
        specs += [
            dataclasses.replace(specs[0], overlays={**spec.overlays, fix.file: text}) for fix, text in texts.values()
        ]
        with tempfile.TemporaryDirectory(prefix="irscope-breaks-") as folder:
            rounds = os.path.join(folder, "rounds")
            os.mkdir(rounds)
            store = os.path.join(folder, "runs.db")
            base, *others = measured(specs, store, rounds, ROUNDS, on_step=on_step, cancel=cancel)
        timed = dict(zip(texts, others, strict=True))
    return {
        place: BreakRemoved("", why_not=fix) if isinstance(fix, str) else _removed(fix[0], base, timed[place])
        for place, fix in fixes.items()
    }


def _verified(
    spec: RunSpec, places: set[Place], cancel: threading.Event | None
) -> Mapping[Place, tuple[Candidate, str] | str]:
    """By break its verified fix with the whole text of the file, or why there is none."""
    found: dict[Place, tuple[Candidate, str] | str] = {}
    worker = Worker(spec.python)
    try:
        worker.wait_until_ready(90)
        with Prover(spec, worker, cancel, has_run=True) as prover:
            trying, original = Trying(prover, _FIX_SECONDS, with_rules=False), prover.begin()
            if why := not_run(original):
                return dict.fromkeys(places, why)
            for finding in original.findings:
                if (place := _place(finding)) in places:
                    found[place] = _best(prover, trying, finding)
    finally:
        worker.stop()
    return found


def _place(finding: Finding) -> Place:
    return finding.file, finding.range.start.line, finding.code


def _best(prover: Prover, trying: Trying, finding: Finding) -> tuple[Candidate, str] | str:
    tried = trying.finding(finding)
    best = tried.verified or tried.left_to_python
    if best is None and not tried.candidates:
        return "No fix is known that removes it."
    if best is None:
        best = tried.candidates[0]
        return f"The fix “{best.fix.title}” is {best.proof.status.value}: {best.proof.reason}"
    return best, applied(prover.text_of(best.file), best.fix.edits)


def _removed(fix: Candidate, base: Measured | None, other: Measured) -> BreakRemoved:
    before, after = seconds_of(base) if base is not None else [], seconds_of(other)
    pairs = min(len(before), len(after))
    before, after = before[:pairs], after[:pairs]
    saved = spread_of([a - b for a, b in zip(before, after, strict=True)])
    if saved is None:
        why = (why_not_timed(base) if base is not None else "") or why_not_timed(other)
        return BreakRemoved(fix.fix.title, fix.fix.caveat, why_not=why or "The two have too few rounds.")
    return BreakRemoved(
        fix.fix.title, fix.fix.caveat, spread_of(before), spread_of(after), saved, is_clear(before, after)
    )  # fmt: skip
