"""What was tried for a finding, and what can be applied together."""

from __future__ import annotations

from irscope.driver.fixing.library import Patch
from irscope.driver.fixing.proving import Proof, Status
from irscope.protocol import Edit, Finding, Fix
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Candidate:
    """One way to remove a finding, tried, with the file that its edits are for."""

    fix: Fix
    file: str
    proof: Proof

    @property
    def title(self) -> str:
        """What it does."""
        return self.fix.title

    @property
    def caveat(self) -> str:
        """What else it changes; may be empty."""
        return self.fix.caveat

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the original's text."""
        return self.fix.edits

    @property
    def is_repair(self) -> bool:
        """Whether it repairs what broke; what leaves it to Python is never applied with others."""
        return self.fix.repairs


@dataclass(frozen=True)
class Tried:
    """A finding with its candidates, the best first; those that repair nothing are last."""

    finding: Finding
    candidates: tuple[Candidate, ...]
    patches: tuple[Patch, ...] = ()
    """Changes of the library that breaks, if one does."""

    @property
    def verified(self) -> Candidate | None:
        """The first repair that is verified."""
        return next((one for one in self.candidates if one.is_repair and one.proof.status is Status.VERIFIED), None)

    @property
    def left_to_python(self) -> Candidate | None:
        """What is verified as well and repairs nothing."""
        return next((one for one in self.candidates if not one.is_repair and one.proof.status is Status.VERIFIED), None)


@dataclass(frozen=True)
class Together:
    """All verified fixes that can be applied together: the texts of the files, and the proof of the whole."""

    texts: dict[str, str]
    proof: Proof | None
    fixed: tuple[Finding, ...]
    left_out: tuple[tuple[Finding, str], ...] = ()
    """Findings with a verified fix that is not among them, and why."""

    def why_left_out(self, finding: Finding) -> str:
        """Why the verified fix of a finding is not among them; empty if it is, or there is none."""
        return next((why for one, why in self.left_out if one == finding), "")
