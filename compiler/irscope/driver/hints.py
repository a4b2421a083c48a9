"""What the trials of fixes say of the hints that the fixes carry out."""

from __future__ import annotations

import enum
import os

from irscope.driver.fixing.candidates import Candidate, Tried
from irscope.driver.trials.proving import Status
from irscope.protocol import Finding
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count


class Standing(str, enum.Enum):
    """Whether a hint helps in this script, as far as it is known; in the order in which hints are shown."""

    HELPS = "tried: helps"
    PARTLY = "tried: helps in part"
    UNPROVEN = "tried: not proven"
    NOT_TRIED = "not tried"
    NO_HELP = "tried: does not help here"


@dataclass(frozen=True)
class TriedHint:
    """A hint of a finding; ``why`` is what it gains, or why it does not help or was not tried."""

    text: str
    standing: Standing
    why: str = ""

    @property
    def said(self) -> str:
        """``tried: helps (1 finding fewer, 1 graph (was 2))``, ``tried: does not help here, because: …``, ``not tried``."""
        if self.standing in (Standing.HELPS, Standing.PARTLY):
            return f"{self.standing.value} ({self.why})"
        return f"{self.standing.value}, because: {self.why}" if self.why else self.standing.value


def tried_hints(finding: Finding, tried: Tried | None) -> list[TriedHint]:
    """The hints of a finding: what helps first, and last what does not help; if one helps, none that no edit carries out."""
    forms = {fix.hint: fix.identity for fix in finding.fixes}
    candidates = tried.candidates if tried is not None else ()  # the best first
    why = _NO_EDIT.format(os.path.basename(finding.file))
    hints, without_edit = list[TriedHint](), list[TriedHint]()
    for index, text in enumerate(finding.hints):
        of_hint = (one for one in candidates if index in forms and one.fix.first.identity == forms[index])
        is_left_open = tried is not None and index not in forms
        kept = without_edit if is_left_open else hints
        kept.append(_judged(text, next(of_hint, None), why if is_left_open else ""))
    if not any(hint.standing is Standing.HELPS for hint in hints):
        hints += without_edit
    return sorted(hints, key=lambda hint: list(Standing).index(hint.standing))


def gains_of(one: Candidate) -> str:
    """``1 finding fewer, 1 graph (was 2)``."""
    before, after = one.proof.gain.graphs if one.proof.gain is not None else (0, 0)
    return f"{count(len(one.proof.removes), 'finding')} fewer, {count(after, 'graph')} (was {before})"


def _judged(text: str, one: Candidate | None, untried: str) -> TriedHint:
    if one is None:  # there was no time left, or there is nothing to try
        return TriedHint(text, Standing.NOT_TRIED, untried)
    if one.proof.gain is None:
        return TriedHint(text, Standing.NOT_TRIED, one.proof.reason)
    proof, (before, after) = one.proof, one.proof.gain.graphs
    if proof.status is Status.VERIFIED and one.fix.repairs:
        more = f", as a part of: {one.fix.title}" if one.fix.steps else ""
        return TriedHint(text, Standing.HELPS, f"{gains_of(one)}{more}")
    if proof.status is Status.VERIFIED:
        return TriedHint(text, Standing.NO_HELP, _NOTHING)
    if proof.adds and proof.status is Status.UNPROVEN and after < before:
        return TriedHint(text, Standing.PARTLY, f"{count(after, 'graph')} (was {before}). {proof.reason}")
    # What moves a break, or leads to as many compiles for another reason, gains nothing.
    is_no_help = proof.status is Status.DISPROVEN or bool(proof.adds)
    return TriedHint(text, Standing.NO_HELP if is_no_help else Standing.UNPROVEN, proof.reason)


_NO_EDIT = "irscope has no change of `{}` that carries it out."
_NOTHING = "it repairs nothing: what broke runs as plain Python."
