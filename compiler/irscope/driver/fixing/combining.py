"""One change with as many verified repairs as go together, proven as a whole."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Sequence

from irscope.driver.fixing.candidates import Candidate, Together, Tried
from irscope.driver.fixing.trying import Trying, what_is_compiled
from irscope.driver.trials.proving import Proof, Prover, Status, are_alike
from irscope.fixing.texts import applied, joined_lines
from irscope.protocol import Edit, Finding

Repaired = tuple[Finding, Candidate]
"""A finding and its best verified repair."""


def combined(trying: Trying, tried: Sequence[Tried]) -> Together:
    """First all repairs at once; else one by one, and then what is left, again.

    Edits of two repairs may overlap, as where both write the same line.  What is left of them is proposed again on the
    text with the others.
    """
    repaired = [(one.finding, best) for one in tried if (best := one.verified) is not None]
    made = _at_once(trying, repaired) or one_by_one(trying, repaired)
    for one in tried:
        # What leads to another finding by itself may not do so with the others.
        if made.texts and one.finding not in made.fixed and (one.verified or any(c.proof.adds for c in one.candidates)):
            made = _again(trying, made, one.finding)
    return made


def _at_once(trying: Trying, repaired: Sequence[Repaired]) -> Together | None:
    """All repairs that are needed, if they are verified together."""
    texts = _texts(trying.prover, [best for _, best in _needed(repaired)])
    if len(repaired) < 2 or not texts or trying.has_ended:
        return None
    trying.on_try("all fixes together")
    proof, _ = trying.prover.prove(texts, repaired[0][0])
    findings = tuple(finding for finding, _ in repaired)
    verified = proof.status is Status.VERIFIED and proof.has_removed(*findings)
    return Together(texts, proof, findings) if verified else None


def one_by_one(trying: Trying, repaired: Sequence[Repaired]) -> Together:
    """Each repair that is verified with those before it."""
    made, chosen = Together({}, None, ()), list[Candidate]()
    for finding, best in repaired:
        if made.proof is not None and made.proof.has_removed(finding):
            made = _with(made, made.texts, made.proof, finding)  # two may write the same function
            continue
        texts, proof, why = _texts(trying.prover, [*chosen, best]), best.proof, ""
        if not texts:
            why = "It changes the same lines as another fix."
        elif made.texts and texts != made.texts and trying.has_ended:
            why = "There was no time left to try it with the others."
        elif made.texts and texts != made.texts:
            trying.on_try("the next of the fixes together")
            proof, _ = trying.prover.prove(texts, finding)
            if proof.status is not Status.VERIFIED:
                why = f"With the others it is {proof.status.value}. {proof.reason}"
        if why:
            made = dataclasses.replace(made, left_out=(*made.left_out, (finding, why)))
        else:
            made = _with(made, texts, proof, finding)
            chosen.append(best)
    return made


def _again(trying: Trying, made: Together, finding: Finding) -> Together:
    """With a repair that is proposed for a finding as it is in the changed text; as it was if none is verified."""
    if made.proof is not None and made.proof.has_removed(finding):
        return _with(made, made.texts, made.proof, finding)
    text = made.texts.get(finding.file)
    if text is None or trying.has_ended:
        return made
    _, trial = trying.prover.prove(made.texts, made.fixed[0])
    left = [now for now in trial.findings if are_alike(now, finding)]
    fixes = (fix for now in left for fix in trying.fixes_in(now, finding.file, text) if fix.repairs)
    for fix in itertools.takewhile(lambda _: not trying.has_ended, fixes):
        trying.on_try(f"with the others: {fix.title}")
        with contextlib.suppress(ValueError):
            texts = {**made.texts, finding.file: applied(text, fix.edits)}
            proof, _ = trying.prover.prove(texts, finding)
            if proof.status is Status.VERIFIED:
                proof = trying.prover.both_sides(proof, made.texts, texts)
            _, proof = what_is_compiled(finding, fix, proof, text, texts[finding.file])
            if proof.status is Status.VERIFIED and proof.has_removed(*made.fixed):
                return _with(made, texts, proof, finding)
    return made


def _texts(prover: Prover, candidates: Sequence[Candidate]) -> dict[str, str]:
    """The files with the changes of candidates; none if they cannot all be applied."""
    edits: dict[str, list[Edit]] = {}
    for candidate in candidates:
        own = edits.setdefault(candidate.file, [])
        own += [edit for edit in candidate.fix.edits if edit not in own]
    try:
        return {path: applied(prover.text_of(path), joined_lines(own)) for path, own in edits.items()}
    except (OSError, ValueError):
        return {}


def _with(made: Together, texts: dict[str, str], proof: Proof, finding: Finding) -> Together:
    left_out = tuple(one for one in made.left_out if one[0] != finding)
    return Together(texts, proof, (*made.fixed, finding), left_out)


def _needed(repaired: Sequence[Repaired]) -> list[Repaired]:
    """The fixes without those of findings that another of them removes."""
    needed = list[Repaired]()
    for finding, best in repaired:
        if not any(other.proof.has_removed(finding) for _, other in needed):
            needed.append((finding, best))
    return needed
