"""Finds which changes of an environment cause which differences, by runs in which some of the changes are taken back.

All candidates are tried together first; if that removes differences, halves of the candidates are tried, and so on: a
cause among N candidates takes about 2 · log2(N) runs, and candidates that change nothing take one run together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field

from irscope.comparing.versions.differences import Difference
from irscope.comparing.versions.environments import EnvironmentChange
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count


@dataclass(frozen=True)
class Flip:
    """What a run of the search has in place of its environment's own.

    Args:
        settings: Values as Python literals, by full name.
        without: Operations whose decompositions are left out.
        passes: Passes that are left out.
        code: Texts of functions of the other environment, by name (`irscope.internals.older_code`).
        in_both: Whether both environments are run with it; else the newer one alone.
    """

    settings: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    code: dict[str, str] = field(default_factory=dict)
    in_both: bool = False


@dataclass(frozen=True)
class Cause:
    """What is different in the environments and causes differences.

    Args:
        changes: One change, or several of which none is enough by itself.
        confirmed: Whether taking it back was tried and removes what it explains.
        how: What was tried, in words.
    """

    changes: tuple[EnvironmentChange, ...]
    confirmed: bool
    how: str
    explains: tuple[Difference, ...]


Candidate = tuple[EnvironmentChange, Flip]
_OF_PROGRAMS = ("outcome", "finding", "compile", "graph", "kernels")
"""Kinds of differences in what is compiled; the others are in what it became: code, memory, numbers."""


class Search:
    """The state of a search.

    Args:
        found: All differences.
        tried: Runs with a flip: the differences then; None if the script fails with it.
        until: On the monotonic clock, in seconds; no run is begun later.
        on_step: Called with what is tried next.
        varying: Returns, after a run without a flip, in what the newer environment differs from itself.

    Attributes:
        left: Differences without a confirmed cause so far.
        unstable: Differences that come and go by themselves.
    """

    def __init__(
        self,
        found: Sequence[Difference],
        tried: Callable[[Flip], list[Difference] | None],
        until: float,
        on_step: Callable[[str], None],
        varying: Callable[[], Sequence[Difference]] = list,
    ) -> None:
        self._varying = varying
        self.left, self.unstable, self.causes = list(found), list[Difference](), list[Cause]()
        self.is_over = False
        self._known = set(map(_key, found))
        self._tried, self._until, self._on_step = tried, until, on_step

    def control(self) -> None:
        """Runs the newer environment once more as it is: what does not differ again, or differs between these two runs as
        well (a time that became a constant), has no cause that can be found."""
        again = self._try(Flip(), "running it once more, to see what stays")
        if again is not None:
            keys = set(map(_key, again)) - set(map(_key, self._varying()))
            self.unstable = [one for one in self.left if _key(one) not in keys]
            self.left = [one for one in self.left if _key(one) in keys]

    def candidates(self, candidates: Sequence[Candidate], how: str) -> None:
        """Looks for causes among changes of one sort; ``how`` says what a trial is."""
        if not self.left or not candidates or self.is_over:
            return
        still = self._still(candidates)
        if still is not None:
            self._narrow(list(candidates), [one for one in self.left if _key(one) not in still], how)
        elif len(candidates) > 1:  # the script fails with some of them
            half = len(candidates) // 2
            self.candidates(candidates[:half], how)
            self.candidates(candidates[half:], how)

    def _narrow(self, candidates: list[Candidate], explained: list[Difference], how: str) -> None:
        """The candidates among these that together explain the differences."""
        if not _is_evidence(candidates, explained):
            return
        if len(candidates) == 1 or self.is_over:
            self._add(candidates, explained, how)
            return
        half = len(candidates) // 2
        rest = explained
        for part in (candidates[:half], candidates[half:]):
            if rest:
                found = self._explained(part, rest)
                self._narrow(part, found, how)
                rest = [one for one in rest if one not in found]
        if _is_evidence(candidates, rest):
            self._add(self._needed(candidates, rest), rest, how)

    def _needed(self, candidates: list[Candidate], rest: list[Difference]) -> list[Candidate]:
        """Without the candidates that are not needed: one after the other is left out."""
        kept = list(candidates)
        for one in candidates:
            fewer = [other for other in kept if other is not one]
            if fewer and not self.is_over and self._explained(fewer, rest) == rest:
                kept = fewer
        return kept

    def _add(self, candidates: Sequence[Candidate], explained: list[Difference], how: str) -> None:
        self.causes.append(Cause(tuple(change for change, _ in candidates), True, how, tuple(explained)))
        self.left = [one for one in self.left if one not in explained]

    def _explained(self, candidates: Sequence[Candidate], differences: list[Difference]) -> list[Difference]:
        still = self._still(candidates)
        return [] if still is None else [one for one in differences if _key(one) not in still]

    def _still(self, candidates: Sequence[Candidate]) -> set[tuple[object, ...]] | None:
        """What still differs when these changes are taken back; None if the script then fails, or if time has run out, or if
        older code brings differences of its own."""
        names = [change.name for change, _ in candidates]
        words = names[0] if len(names) == 1 else count(len(names), "change")
        flip = _together([flip for _, flip in candidates])
        found = self._try(flip, f"taking back {words}")
        keys = None if found is None else set(map(_key, found))
        # Older code in the newer environment may do what neither version does: then it says nothing.
        return None if keys is None or (flip.code and keys - self._known) else keys

    def _try(self, flip: Flip, words: str) -> list[Difference] | None:
        if time.monotonic() > self._until:
            self.is_over = True
            return None
        self._on_step(words)
        return self._tried(flip)


def _is_evidence(candidates: Sequence[Candidate], explained: Sequence[Difference]) -> bool:
    """Whether what went away shows a cause.

    If a decomposition is left out of both environments, neither has the code that it made.  So every difference in that
    code goes away, whatever caused it.  Then only a difference in what is compiled shows the cause.
    """
    in_both = any(flip.in_both for _, flip in candidates)
    return any(one.kind in _OF_PROGRAMS for one in explained) if in_both else bool(explained)


def _key(one: Difference) -> tuple[object, ...]:
    """What stays the same of a difference where only its amount changes."""
    if one.kind == "numbers":
        return one.kind, one.what.rpartition(": ")[0]
    if one.kind in ("finding", "compile"):
        return one.kind, one.what, one.file, one.line
    return one.kind, one.file, one.line, one.stage


def _together(flips: Sequence[Flip]) -> Flip:
    return Flip(
        {name: value for flip in flips for name, value in flip.settings.items()},
        tuple(one for flip in flips for one in flip.without),
        tuple(one for flip in flips for one in flip.passes),
        {name: text for flip in flips for name, text in flip.code.items()},
        any(flip.in_both for flip in flips),
    )
