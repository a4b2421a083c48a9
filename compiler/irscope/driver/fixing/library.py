"""Breaks in installed libraries: a change of the library is tried, and told as a patch.  It is never written there."""

from __future__ import annotations

import os

from irscope.driver.fixing.proving import Proof
from irscope.fixing.places import path_in_library
from irscope.fixing.texts import applied, diff_of
from irscope.protocol import Edit, Finding
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Patch:
    """A change of a library that was tried."""

    title: str
    caveat: str
    file: str
    before: str
    edits: tuple[Edit, ...]
    proof: Proof

    @property
    def name(self) -> str:
        """The path in the library: ``transformers/models/t5/modeling_t5.py``."""
        return path_in_library(self.file)

    @property
    def diff(self) -> str:
        """The change as ``git apply`` takes it, in the folder that holds the package."""
        return "\n".join(diff_of(self.before, applied(self.before, self.edits), self.name)) + "\n"


def patch_file(finding: Finding, patch: Patch, workaround: str) -> str:
    """The text of a patch file: a subject and a text for the pull request, what to do until then, and the diff."""
    line = min((edit.range.start.line for edit in patch.edits), default=1)
    checks = "".join(f"- {check}\n" for check in patch.proof.checks)
    return (
        f"Subject: [PATCH] {patch.title}: no graph break in {os.path.basename(patch.name)}\n\n"
        f"`torch.compile` breaks the graph at line {line} of `{patch.name}`:\n{finding.message}\n\n"
        f"With this change the graph is not broken there, and the results are the same.\n{patch.caveat}\n\n"
        f"Compared with the original without compile:\n{checks}\n"
        f"Until a release has it:\n{workaround}\n---\n{patch.diff}"
    )


def workaround_of(finding: Finding, verified_title: str) -> str:
    """What the user can do on their side, in words."""
    if verified_title:
        return f"- {verified_title} (`irscope fix` applies it in your file)."
    return "\n".join(f"- {hint}" for hint in finding.hints) or "- Call it outside of the compiled code."
