"""What changed in measured time between two profiled runs, and whether the repetitions can tell it from noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.comparing.runs import Change, Moved
from irscope.profiling.noise import GROUPS, LEAST_CHANGE, SURE, groups
from irscope.profiling.noise import chance as chance_of
from irscope.profiling.profile import MeasuredProgram, Profile
from irscope.protocol import from_json
from irscope.store.store import Store
from irscope.vocabulary.units import percent


@dataclass(frozen=True)
class LineChange:
    """A line of the newer run (of the older one, if it is gone), with its seconds in a step; 0 if it has no kernel."""

    file: str
    line: int
    before: float
    after: float


@dataclass(frozen=True)
class ProfileDiff:
    """What changed in measured time.

    Args:
        chance: The probability of a difference like this if nothing changed (Mann–Whitney, two-sided, exact); None if
            the runs have too few repetitions.
        is_significant: Whether anything is claimed.
        lines: Those whose change is above the noise of a step, the largest first.
    """

    step_seconds: Change
    chance: float | None
    noise_seconds: float
    is_significant: bool
    words: str
    lines: tuple[LineChange, ...]


def stored_profile(store: Store, run: str) -> Profile | None:
    """The profile of a run; None if it has none, or one that cannot be read."""
    try:
        found = store.profile(run)
        return None if found is None else from_json(Profile, found)
    except (KeyError, ValueError, TypeError, RecursionError):
        return None


def profile_diff(store: Store, before: str, after: str) -> ProfileDiff | None:
    """What changed between two runs; None if one of them was not profiled."""
    old, new = stored_profile(store, before), stored_profile(store, after)
    if old is None or new is None:
        return None
    return compared(old, new, Moved(store.sources(before), store.sources(after)))


def compared(old: Profile, new: Profile, moved: Moved) -> ProfileDiff:
    """What changed from one profile to another."""
    a, b = _groups(old.programs), _groups(new.programs)
    chance = chance_of(a, b) if a and b else None
    noise = max(_spread(a), _spread(b))
    change = new.step_seconds - old.step_seconds
    part = change / old.step_seconds if old.step_seconds else 0.0
    sure = chance is not None and chance <= SURE and abs(part) >= LEAST_CHANGE
    return ProfileDiff(
        Change(old.step_seconds, new.step_seconds),
        chance,
        noise,
        sure,
        _words(part, chance, sure),
        # Without repetitions nobody knows what noise is, so nothing is claimed of any line.
        () if chance is None else tuple(_lines(old, new, moved, max(noise, LEAST_CHANGE * new.step_seconds))),
    )


def _words(part: float, chance: float | None, sure: bool) -> str:
    if chance is None:
        return "too few repetitions to say whether that is more than noise"
    if not sure:
        return "no difference above the noise"
    return f"{percent(abs(part), 1.0)} {'slower' if part > 0 else 'faster'} (p = {chance:.3f}, by {GROUPS} groups of repetitions each)"


def _lines(old: Profile, new: Profile, moved: Moved, least: float) -> list[LineChange]:
    after = {(one.file, one.line): one.seconds for one in new.lines}
    before: dict[tuple[str, int], float] = {}
    gone = []
    for one in old.lines:
        line = moved.line(one.file, one.line)
        if line is None:
            gone.append(LineChange(one.file, one.line, one.seconds, 0.0))
        else:
            before[one.file, line] = before.get((one.file, line), 0.0) + one.seconds
    found = gone + [
        LineChange(file, line, before.get((file, line), 0.0), after.get((file, line), 0.0))
        for file, line in dict.fromkeys([*after, *before])
    ]
    found = [one for one in found if abs(one.after - one.before) >= least]
    return sorted(found, key=lambda one: abs(one.after - one.before), reverse=True)


def _groups(programs: Sequence[MeasuredProgram]) -> list[float]:
    """Medians of a step, from groups of repetitions."""
    lists = [one.samples for one in programs if not one.why_not]
    each = [groups(one) for one in lists]
    return [sum(row) for row in zip(*each, strict=True)] if each and all(each) else []


def _spread(groups: Sequence[float]) -> float:
    return (max(groups) - min(groups)) / 2 if groups else 0.0
