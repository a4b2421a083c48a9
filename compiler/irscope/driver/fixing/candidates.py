"""What was tried for a finding, and what can be applied together."""

from __future__ import annotations

from irscope.comparing.texts import diff_of
from irscope.driver.trials.proving import Proof, Status
from irscope.fixing.places import path_in_library
from irscope.fixing.texts import applied
from irscope.protocol import Finding, Fix
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Candidate:
    """One way to remove a finding, tried, with the file that its edits are for."""

    fix: Fix
    file: str
    proof: Proof


@dataclass(frozen=True)
class Patch(Candidate):
    """A change of an installed library that was tried.  It is told as a patch, and never written there."""

    before: str
    """The text of the library's file."""

    @property
    def name(self) -> str:
        """The path in the library: ``transformers/models/t5/modeling_t5.py``."""
        return path_in_library(self.file)

    @property
    def diff(self) -> str:
        """The change as ``git apply`` takes it, in the folder that holds the package."""
        return "\n".join(diff_of(self.before, applied(self.before, self.fix.edits), self.name)) + "\n"


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
        return next((one for one in self.candidates if one.fix.repairs and one.proof.status is Status.VERIFIED), None)

    @property
    def left_to_python(self) -> Candidate | None:
        """What is verified as well and repairs nothing."""
        others = (one for one in self.candidates if not one.fix.repairs)
        return next((one for one in others if one.proof.status is Status.VERIFIED), None)


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
