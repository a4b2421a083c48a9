"""Tries all candidates of a script's findings: alone, and in a chain where one leads to the next break."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from irscope.driver.fixing.candidates import Candidate, Patch, Tried
from irscope.driver.trials.proving import Proof, Prover, Status, Trial, are_alike
from irscope.fixing.library_to_python import caveat_of, plain_functions
from irscope.fixing.places import in_library
from irscope.fixing.proposals import chained, proposals, together
from irscope.fixing.texts import applied, edits_between
from irscope.fixing.workarounds import as_patches, workarounds
from irscope.protocol import Finding, Fix, FixMethod
from irscope.vocabulary.units import count

_LONGEST_CHAIN = 5
_MOST_CANDIDATES = 6
"""How many candidates of one finding are tried."""

_SHARE_OF_SINGLES = 0.75
"""The share of the time that trials of one fix get; the rest is for those that show which fixes go together."""

_MOST_JOINED = 3
"""Pairs of a fix of what fixed a size, and one that makes the size dynamic from the start."""


class Trying:
    """Tries until a time is over.

    Args:
        seconds: After which no other trial begins; those of single fixes end earlier.
        on_try: Called before each trial with what is tried.
        with_rules: Whether rules are asked for candidates, beside those that the findings carry.
        patches: Whether changes of installed libraries are tried, too; each trial is then a fresh process.
    """

    def __init__(
        self,
        prover: Prover,
        seconds: float,
        on_try: Callable[[str], None] = lambda what: None,
        with_rules: bool = True,
        patches: bool = False,
    ) -> None:
        now = time.monotonic()
        self.prover, self.on_try = prover, on_try
        self._until, self._singles_until = now + seconds, now + _SHARE_OF_SINGLES * seconds
        self._with_rules, self._patched = with_rules, patches
        self._libraries: dict[str, str] = {}

    @property
    def is_over(self) -> bool:
        """Whether the time for single fixes is over."""
        return time.monotonic() > self._singles_until

    @property
    def has_ended(self) -> bool:
        """Whether all of the time is over."""
        return time.monotonic() > self._until

    def finding(self, finding: Finding) -> Tried:
        """The candidates of a finding, each proven by itself; after a verified one without a caveat no other is tried."""
        candidates: list[Candidate] = []
        for fix in self._fixes(finding, {}):
            candidates.append(self._candidate(finding, fix, fix.file or finding.file))
            if candidates[-1].proof.status is Status.VERIFIED:
                break
        order = list(Status)
        candidates.sort(key=lambda one: (not one.fix.repairs, order.index(one.proof.status)))
        tried = Tried(finding, tuple(candidates))
        return dataclasses.replace(tried, patches=tuple(self._patches(tried)))

    def _patches(self, tried: Tried) -> Iterator[Patch]:
        """Changes of the library in which a finding lies, up to the first that is verified: first what a verified
        workaround puts in the place of the library's functions."""
        finding, best = tried.finding, tried.verified
        there = in_library(finding) if self._patched else None
        if there is None:
            return
        try:
            text = self.prover.text_of(there.file)
            before = self.prover.text_of(finding.file)
        except OSError:
            return
        fixes = self._proposed(there, text)[:_MOST_CANDIDATES]
        attempts = [(fix, {there.file: applied(text, fix.edits)}) for fix in fixes]
        if best is not None and best.file == finding.file:
            changed = as_patches(before, applied(before, best.fix.edits), {there.file: text, **self._libraries})
            attempts = [(_of_library(best.fix), changed)] if changed else attempts
        for fix, texts in attempts:
            if self.is_over:
                return
            self.on_try(f"{finding.code} in {there.file}: {fix.title}")
            proof, _ = self.prover.prove(texts, finding)
            for path, new in texts.items():
                old = self.prover.text_of(path)
                yield Patch(Fix(fix.title, fix.caveat, edits_between(old, new)), path, proof, old)
            if proof.status is Status.VERIFIED:
                return

    def _fixes(self, finding: Finding, texts: Mapping[str, str]) -> list[Fix]:
        """The candidates of a finding that was found in texts, the best first; each changed text once.

        Last are functions of a library that are left to Python, beyond the number of the others.
        """
        try:
            text = texts.get(finding.file) or self.prover.text_of(finding.file)
        except OSError:
            return list(finding.fixes)
        proposed = self._proposed(finding, text)
        # The other forms of a change of the finding's own come first.
        forms = ([*(form for form in proposed if form.identity == own.identity), own] for own in finding.fixes)
        order = [*itertools.chain.from_iterable(forms)]
        of_causes = () if texts else self._of_causes(finding, text)
        here = {fix.identity: fix for fix in reversed((*order, *proposed)) if fix.file in ("", finding.file)}
        pairs = ((cause, fix) for cause in of_causes for fix in reversed(here.values()))
        joined = [chained(pair, (*pair[0].edits, *pair[1].edits)) for pair in itertools.islice(pairs, _MOST_JOINED)]
        fixes: dict[object, Fix] = {}
        for fix in (*of_causes, *joined, *order, *proposed, *self._workarounds(finding, text)):
            with contextlib.suppress(ValueError):
                is_here = fix.file in ("", finding.file)
                fixes.setdefault(applied(text, fix.edits) if is_here else (fix.file, fix.edits), fix)
        original = self.prover.original
        compiles = original.compiles if original is not None and not texts else ()
        best_first = sorted(fixes.values(), key=lambda fix: not fix.repairs)[:_MOST_CANDIDATES]
        return [*best_first, *plain_functions(finding, text, compiles, self.prover.text_of)]

    def _proposed(self, finding: Finding, text: str) -> Sequence[Fix]:
        return proposals(finding, text) if self._with_rules else ()

    def _of_causes(self, finding: Finding, text: str) -> list[Fix]:
        """Changes of what may have fixed the size for which something was compiled again."""
        if self.prover.original is None or finding.code != "recompile-size":
            return []
        findings = self.prover.original.findings
        causes = [one for one in findings if one.kind == "specialization" and one.file == finding.file]
        fixes = ((*self._proposed(cause, text), *self._workarounds(cause, text)) for cause in causes[:_MOST_CANDIDATES])
        return [*itertools.chain.from_iterable(fixes)]

    def _workarounds(self, finding: Finding, text: str) -> Iterator[Fix]:
        """Changes of the user's text for a break in a library."""
        there = in_library(finding) if self._with_rules else None
        with contextlib.suppress(OSError):
            if there is not None:
                library = self._libraries.setdefault(there.file, self.prover.text_of(there.file))
                yield from workarounds(there, text, library)

    def _candidate(self, finding: Finding, fix: Fix, file: str) -> Candidate:
        if self.is_over:
            return Candidate(fix, file, Proof(Status.UNPROVEN, "There was no time left to try it."))
        self.on_try(f"{finding.code}: {fix.title}")
        try:
            before = self.prover.text_of(file)
            text = applied(before, fix.edits)
            proof, trial = self.prover.prove({file: text}, finding)
        except (OSError, ValueError) as error:
            return Candidate(fix, file, Proof(Status.UNPROVEN, f"It could not be applied: {error}."))
        if fix.method is FixMethod.LIBRARY_TO_PYTHON:
            text, proof, trial = self._more_plain(finding, file, text, proof, trial)
            fix = dataclasses.replace(fix, caveat=caveat_of(text), edits=edits_between(before, text))
        if proof.status is Status.UNPROVEN and proof.adds:
            chain = self._chain(finding, file, text, proof)
            if chain is not None:
                text, proof, more = chain
                fix = chained([fix, *more], edits_between(before, text))
        fix, proof = what_is_compiled(finding, fix, proof, before, text)
        return Candidate(fix, file, proof)

    def _more_plain(
        self, finding: Finding, file: str, text: str, proof: Proof, trial: Trial
    ) -> tuple[str, Proof, Trial]:
        """Leaves more functions to Python: those of a finding that comes, or that is still there, since one finding may
        be of several functions."""
        for _ in range(_LONGEST_CHAIN):
            alike = [one for one in trial.findings if are_alike(one, dataclasses.replace(finding, file=file))]
            left = proof.adds if proof.has_removed(finding) else (*alike, *proof.adds)
            found = [fix for one in left for fix in plain_functions(one, text, trial.compiles, self.prover.text_of)]
            changed = applied(text, found[0].edits) if found else text
            if proof.status is Status.VERIFIED or changed == text or self.is_over:
                break
            self.on_try(f"then {found[0].title}")
            text = changed
            proof, trial = self.prover.prove({file: text}, finding)
        return text, proof, trial

    def _chain(self, finding: Finding, file: str, text: str, proof: Proof) -> tuple[str, Proof, list[Fix]] | None:
        """Fixes what comes after a fix, and what comes after that; None if that leads nowhere."""
        more, between = list[Fix](), [text]
        while proof.adds and len(more) < _LONGEST_CHAIN:
            fixes = next(filter(None, (self.fixes_in(one, file, text) for one in proof.adds)), [])
            step = self._step(finding, file, text, fixes)
            if step is None:
                return None
            text, proof, fix = step
            more.append(fix)
            if proof.status is Status.VERIFIED:
                for before in between:
                    if proof.status is Status.VERIFIED:
                        proof = self.prover.both_sides(proof, {file: before}, {file: text})
                return text, proof, more
            between.append(text)
        return None

    def fixes_in(self, finding: Finding, file: str, text: str) -> list[Fix]:
        """The candidates of a finding that was found in a changed text of a file, for that file."""
        return [fix for fix in self._fixes(finding, {file: text}) if (fix.file or finding.file) == file]

    def _step(self, finding: Finding, file: str, text: str, fixes: Sequence[Fix]) -> tuple[str, Proof, Fix] | None:
        """The fix that is verified, or else the first that leads to another finding."""
        best: tuple[str, Proof, Fix] | None = None
        for fix in fixes:
            if self.is_over:
                break
            self.on_try(f"then {fix.title}")
            try:
                changed = applied(text, fix.edits)
            except ValueError:
                continue
            proof, _ = self.prover.prove({file: changed}, finding)
            if proof.status is Status.VERIFIED:
                return changed, proof, fix
            if proof.status is Status.UNPROVEN and proof.adds and best is None:
                best = (changed, proof, fix)
        return best


def what_is_compiled(finding: Finding, fix: Fix, proof: Proof, before: str, text: str) -> tuple[Fix, Proof]:
    """A fix of a graph break that says how many operations are not compiled with it, and is not verified if most are not."""
    # A loop that is not unrolled has fewer operations, too.  Nothing counts the bodies of torch.cond and while_loop.
    is_counted = not any(name in text and name not in before for name in (".cond(", "while_loop("))
    if proof.status is Status.VERIFIED and proof.gain is not None and finding.kind == "graph-break" and is_counted:
        had, has = proof.gain.operations
        lost = f"Not compiled any more: {had - has} of {count(had, 'operation')}." if has < had else ""
        if fix.repairs and has < had / 2:  # then it moves the work, and not what breaks it
            proof = proof.but(Status.UNPROVEN, lost)
        fix = dataclasses.replace(fix, caveat=together([fix.caveat, lost]))
    return fix, proof


def _of_library(fix: Fix) -> Fix:
    """What a fix of the user's file does to a library, of whose functions it makes copies."""
    steps = fix.steps or (fix,)
    return next((step.of_library for step in steps if step.of_library is not None), fix)
