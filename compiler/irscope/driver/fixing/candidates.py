"""What was tried for a finding, and what can be applied together."""

from __future__ import annotations

import os

from irscope.driver.trials.proving import Proof, Status
from irscope.fixing.places import path_in_library
from irscope.fixing.texts import applied, diff_of
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
        return "\n".join(diff_of(self.before, applied(self.before, self.edits), self.name)) + "\n"


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


def patch_file(tried: Tried, patch: Patch) -> str:
    """The text of a patch file: a subject and a text for the pull request, what to do until then, and the diff."""
    line = min((edit.range.start.line for edit in patch.edits), default=1)
    checks = "".join(f"- {check}\n" for check in patch.proof.checks)
    hints = tried.finding.hints or ("Call it outside of the compiled code.",)
    if tried.verified is not None:
        hints = (f"{tried.verified.title} (`irscope fix` applies it in your file).",)
    workaround = "\n".join(f"- {hint}" for hint in hints)
    return (
        f"Subject: [PATCH] {patch.title}: no graph break in {os.path.basename(patch.name)}\n\n"
        f"`torch.compile` breaks the graph at line {line} of `{patch.name}`:\n{tried.finding.message}\n\n"
        f"With this change the graph is not broken there, and the results are the same.\n{patch.caveat}\n\n"
        f"Compared with the original without compile:\n{checks}\n"
        f"Until a release has it:\n{workaround}\n---\n{patch.diff}"
    )
