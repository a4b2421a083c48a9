"""One change with as many verified repairs as go together, proven as a whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from irscope.driver.fixing.candidates import Candidate, Together, Tried
from irscope.driver.fixing.proving import Proof, Prover, Status
from irscope.fixing.texts import applied, without_gaps
from irscope.protocol import Edit, Finding, Fix

Repaired = tuple[Finding, Candidate]
"""A finding and its best verified repair."""


class Combining:
    """Puts repairs together.

    Parameters
    ----------
    on_try
        Called before each trial with what is tried.
    has_ended
        Whether no other trial may begin.
    fixes_in
        The candidates of a finding that was found in a changed text of a file.
    """

    def __init__(
        self,
        prover: Prover,
        on_try: Callable[[str], None],
        has_ended: Callable[[], bool],
        fixes_in: Callable[[Finding, str, str], Sequence[Fix]],
    ) -> None:
        self._prover, self._on_try, self._has_ended, self._fixes_in = prover, on_try, has_ended, fixes_in

    def together(self, tried: Sequence[Tried]) -> Together:
        """First all at once; else one by one, and then what is left, again.

        Edits of two repairs may overlap, as where both write the same line.  What is left of them is proposed again on
        the text with the others.
        """
        repaired = [(one.finding, best) for one in tried if (best := one.verified) is not None]
        texts = self._all_texts(_needed(repaired))
        files = {best.file for _, best in repaired}
        if len(repaired) > 1 and files == texts.keys() and not self._has_ended():
            self._on_try("all fixes together")
            proof, _ = self._prover.prove(texts, repaired[0][0])
            findings = tuple(finding for finding, _ in repaired)
            if proof.status is Status.VERIFIED and proof.has_removed(*findings):
                return Together(texts, proof, findings)
        made = self._one_by_one(repaired)
        for finding, _ in repaired:
            if finding not in made.fixed and made.texts:
                made = _with_gone(made, finding) or self._again(made, finding)
        return made

    def _again(self, made: Together, finding: Finding) -> Together:
        """With a repair that is proposed for a finding as it is in the changed text; as it was if none is verified."""
        text = made.texts.get(finding.file)
        if text is None or self._has_ended():
            return made
        _, trial = self._prover.prove(made.texts, made.fixed[0])
        for now in trial.findings:
            if (now.kind, now.code, now.file) != (finding.kind, finding.code, finding.file):
                continue
            for fix in self._fixes_in(now, finding.file, text):
                if self._has_ended():
                    return made
                if not fix.repairs:
                    continue
                self._on_try(f"with the others: {fix.title}")
                with contextlib.suppress(ValueError):
                    texts = {**made.texts, finding.file: applied(text, fix.edits)}
                    proof, _ = self._prover.prove(texts, finding)
                    if proof.status is Status.VERIFIED:
                        proof = self._prover.both_sides(proof, made.texts, texts)
                    if proof.status is Status.VERIFIED and proof.has_removed(*made.fixed):
                        return _with(made, texts, proof, finding)
        return made

    def _all_texts(self, repaired: Sequence[Repaired]) -> dict[str, str]:
        """The files with all changes; without a file to which they cannot all be applied."""
        edits: dict[str, list[Edit]] = {}
        for _, best in repaired:
            own = edits.setdefault(best.file, [])
            own += [edit for edit in best.edits if edit not in own]
        texts = {}
        for path, all_of_file in edits.items():
            with contextlib.suppress(OSError, ValueError):
                texts[path] = applied(self._prover.text_of(path), without_gaps(all_of_file))
        return texts

    def _one_by_one(self, repaired: Sequence[Repaired]) -> Together:
        texts: dict[str, str] = {}
        edits: dict[str, list[Edit]] = {}
        proof: Proof | None = None
        fixed: list[Finding] = []
        left_out: list[tuple[Finding, str]] = []
        for finding, best in repaired:
            if proof is not None and proof.has_removed(finding):
                fixed.append(finding)  # another fix has removed it: two may write the same function
                continue
            before = edits.get(best.file, [])
            more = [*before, *(edit for edit in best.edits if edit not in before)]
            try:
                changed = {**texts, best.file: applied(self._prover.text_of(best.file), without_gaps(more))}
            except (OSError, ValueError):
                left_out.append((finding, "It changes the same lines as another fix."))
                continue
            whole = best.proof
            if texts and changed != texts:
                if self._has_ended():
                    left_out.append((finding, "There was no time left to try it with the others."))
                    continue
                self._on_try("the next of the fixes together")
                whole, _ = self._prover.prove(changed, finding)
            if whole.status is Status.VERIFIED:
                texts, edits[best.file], proof = changed, more, whole
                fixed.append(finding)
            else:
                left_out.append((finding, f"With the others it is {whole.status.value}. {whole.reason}"))
        return Together(texts, proof, tuple(fixed), tuple(left_out))


def _with(made: Together, texts: dict[str, str], proof: Proof, finding: Finding) -> Together:
    left_out = tuple(one for one in made.left_out if one[0] != finding)
    return Together(texts, proof, (*made.fixed, finding), left_out)


def _with_gone(made: Together, finding: Finding) -> Together | None:
    """With a finding that the fix of another has removed; None if it is still there."""
    if made.proof is None or not made.proof.has_removed(finding):
        return None
    return _with(made, made.texts, made.proof, finding)


def _needed(repaired: Sequence[Repaired]) -> list[Repaired]:
    """The fixes without those of findings that another of them removes."""
    needed = list[Repaired]()
    for finding, best in repaired:
        if not any(other.proof.has_removed(finding) for _, other in needed):
            needed.append((finding, best))
    return needed
