"""Tries a change of a script: is the finding gone, did none come, and does the script compute the same?

Nothing is written into the user's files: the changed text is an overlay of a run, as the editor's unsaved text is.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from irscope.comparing.texts import LineMatch
from irscope.driver.driver import RunSpec, execute
from irscope.driver.trials.gains import operations
from irscope.driver.trials.output import written
from irscope.fixing.places import in_library, is_of_library
from irscope.fixing.workarounds import as_patches
from irscope.protocol import (
    Compile,
    CompileSeen,
    Finding,
    FindingSeen,
    FoundEvidence,
    Lane,
    Message,
    NotHeldBack,
    Outcome,
    OutcomeKind,
    ScriptEnded,
    causes_only,
    from_json,
)
from irscope.runner.evidence import ANSWER, REFERENCE
from irscope.runner.leaves import DISTURBANCES
from irscope.store.store import Store
from irscope.system import scratch
from irscope.usercode.caught_errors import caught_otherwise
from irscope.usercode.left_out import left_out
from irscope.usercode.reading import read_bounded
from irscope.usercode.source import decode_source
from irscope.usercode.user_files import is_package_file
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count
from irscope.worker.client import Worker

_MOST_OUTPUT = 1 << 20
_MOST_BYTES = 1 << 20


class Status(str, enum.Enum):
    """What the trial of a change has shown."""

    VERIFIED = "verified"
    UNPROVEN = "unproven"
    DISPROVEN = "disproven"


@dataclass(frozen=True)
class Gain:
    """Graphs, seconds of compile time, and compiled operations, of the original and of the changed script, in the fast lane."""

    graphs: tuple[int, int]
    seconds: tuple[float, float]
    operations: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Proof:
    """What a trial came to, what was compared in it, and what it could do to the outside."""

    status: Status
    reason: str
    removes: tuple[Finding, ...] = ()
    adds: tuple[Finding, ...] = ()
    checks: tuple[str, ...] = ()
    gain: Gain | None = None
    not_held_back: tuple[NotHeldBack, ...] = ()

    def but(self, status: Status, reason: str) -> Proof:
        """The same with another conclusion."""
        return dataclasses.replace(self, status=status, reason=reason)

    def unless(self, reason: str) -> Proof:
        """The same, but not verified if there is a reason."""
        return self.but(Status.UNPROVEN, reason) if reason and self.status is Status.VERIFIED else self

    def has_removed(self, *findings: Finding) -> bool:
        """Whether findings are gone with the change."""
        gone = {removed.cause for removed in self.removes}
        return all(finding.cause in gone for finding in findings)


@dataclass(frozen=True)
class Trial:
    """One run of the script: what it found, printed and computed."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    compiles: tuple[Compile, ...]
    written: tuple[list[str], list[str]]
    """The lines of the output and of the log, as they are compared."""
    evidence: FoundEvidence | None

    @property
    def graphs(self) -> int:
        """Graphs with at least one operation."""
        return sum(compile.graph_ops > 0 for compile in self.compiles)


class Prover:
    """Runs a script as it is and changed.  A context manager, with a private folder.

    Args:
        spec: What is run; its lane and limits are set here, but for the limit of time.
        worker: As `execute` has it.
        cancel: Set by another thread to stop.
        has_run: Whether the user has run the script already: then the original, too, is run without harm
            (`RunRequest.trial`).
        aot: Whether AOTAutograd compiles the graphs.
        lane: Of the compiled runs.
    """

    def __init__(
        self,
        spec: RunSpec,
        worker: Worker | None = None,
        cancel: threading.Event | None = None,
        *,
        has_run: bool = False,
        aot: bool = True,
        lane: Lane = Lane.FAST,
    ) -> None:
        self._has_run, self._lanes = has_run, (lane, Lane.FAST)
        self._spec = dataclasses.replace(spec, lane=Lane.FAST, symbolic_trace=False, aot=aot)
        self._worker, self._cancel = worker, cancel
        self._folder, self._beside = tempfile.mkdtemp(prefix="irscope-fix-"), ThreadPoolExecutor(2)
        self._texts: dict[str, str] = {}
        self.original: Trial | None = None
        self.eager: Trial | None = None

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *_: object) -> None:
        self._beside.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    def begin(self) -> Trial:
        """Runs the original, compiled and without compile; returns what the compiled run found.

        Both at once if both are trials; else all trials begin with the files that the compiled run leaves.
        """
        original = self._beside.submit(self.run, {}, trial=self._has_run)
        if not self._has_run:
            original.result()
        self.eager = self.run({}, without_compile=True)
        self.original = original.result()
        return self.original

    def text_of(self, path: str) -> str:
        """The text of a file of the user's as the original has it, whatever happens to the file meanwhile.  Raises OSError."""
        if (overlay := self._spec.overlays.get(path)) is not None:
            return overlay
        if path not in self._texts:
            self._texts[path] = decode_source(read_bounded(path))
        return self._texts[path]

    def prove(
        self,
        texts: Mapping[str, str],
        finding: Finding | None,
        may_come: Callable[[Finding], bool] = lambda finding: False,
    ) -> tuple[Proof, Trial]:
        """Runs the script with other texts of files, by absolute path, in place of the original ones.

        What is verified that way runs once more without compile: a text that only compiled code can run is not a fix.

        Args:
            finding: What must be gone; None for a change that is not for a finding.
            may_come: Whether another finding may come.
        """
        assert self.original is not None and self.eager is not None
        if lost := not_run(self.eager) or self._left_out(texts):
            return Proof(Status.UNPROVEN, lost), self.original
        trial = self.run(texts)
        matches = {path: LineMatch(self.text_of(path), text) for path, text in texts.items()}
        seen = dataclasses.replace(trial, findings=tuple(one for one in trial.findings if not may_come(one)))
        proof = _decided(self.original, self.eager, seen, finding, matches)
        if proof.status is Status.VERIFIED:
            proof = _also_without_compile(proof, self.eager, self.run(texts, without_compile=True))
        others = next(filter(None, (caught_otherwise(self.text_of(path), text) for path, text in texts.items())), "")
        return proof.unless(_one_sided(self.eager, matches)).unless(others), trial

    def both_sides(self, proof: Proof, before: Mapping[str, str], texts: Mapping[str, str]) -> Proof:
        """A proof of texts that were made from changed ones, unless they replace a decision that always went one way.

        Only what asks a tensor is seen.  A fix may make a number a tensor, so the original's run cannot know of it.
        """
        matches = {path: LineMatch(text, texts[path]) for path, text in before.items() if path in texts}
        return proof.unless(_one_sided(self.run(before, without_compile=True), matches))

    def _left_out(self, texts: Mapping[str, str]) -> str:
        """Which effect texts leave out, also in copies of a library's functions: no run can show that it is not missed."""
        for path, text in texts.items():
            before = self.text_of(path)
            libraries = {file: known for file, known in self._texts.items() if is_of_library(file)}
            pairs = [(before, text)]
            pairs += [(libraries[file], changed) for file, changed in as_patches(before, text, libraries).items()]
            if lost := next(filter(None, (left_out(*pair) for pair in pairs)), ""):
                return lost
        return ""

    def run(self, texts: Mapping[str, str], without_compile: bool = False, trial: bool = True) -> Trial:
        """Runs the script with other texts of files; what it computes is compared with the original without compile.

        Args:
            trial: Whether it is run without harm.
        """
        folder = tempfile.mkdtemp(dir=self._folder)
        known = os.path.join(self._folder, REFERENCE)
        is_original, is_reference = not texts and not without_compile, not texts and without_compile
        if os.path.exists(known):
            os.symlink(known, os.path.join(folder, REFERENCE))
        overlays = {**self._spec.overlays, **texts}
        # A worker may have imported a library before it can have another text.
        worker = None if any(is_package_file(path) for path in texts) else self._worker
        spec = dataclasses.replace(self._spec, overlays=overlays, without_compile=without_compile, evidence=folder)
        spec = dataclasses.replace(spec, trial=trial, lane=self._lanes[without_compile])
        findings: dict[object, Finding] = {}
        compiles: dict[str, Compile] = {}
        ended, printed = [False], {"stdout": bytearray(), "stderr": bytearray()}

        def on_message(message: Message) -> None:
            ended[0] = ended[0] or isinstance(message, ScriptEnded)
            if not ended[0] and isinstance(message, FindingSeen):
                findings[message.finding.cause] = message.finding
            elif not ended[0] and isinstance(message, CompileSeen):
                compiles[message.compile.id] = message.compile

        def on_bytes(stream: str, data: bytes) -> None:
            if len(printed[stream]) < _MOST_OUTPUT:
                printed[stream].extend(data)

        with Store(os.path.join(folder, "runs.db")) as store:
            run, outcome = execute(
                spec, store, on_message=on_message, on_bytes=on_bytes, cancel=self._cancel, worker=worker
            )
            if is_original:
                self._texts.update(store.sources(run))
        evidence = _answer(os.path.join(folder, ANSWER))
        if is_reference and os.path.exists(os.path.join(folder, REFERENCE)):
            os.replace(os.path.join(folder, REFERENCE), known)
        self._beside.submit(scratch.leave, folder)  # now: it removes what is in the folder
        lines = written(*(data.decode("utf-8", "replace") for data in printed.values()))
        return Trial(outcome, tuple(causes_only(list(findings.values()))), tuple(compiles.values()), lines, evidence)


def _answer(path: str) -> FoundEvidence | None:
    try:
        with open(path, encoding="utf-8") as file:
            return from_json(FoundEvidence, json.loads(file.read(_MOST_BYTES)))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _decided(
    original: Trial, eager: Trial, trial: Trial, finding: Finding | None, matches: Mapping[str, LineMatch]
) -> Proof:
    """What follows from a trial; ``finding`` is what must be gone."""

    def same(old: Finding, new: Finding) -> bool:
        return are_alike(old, new) and _same_line(old, new, matches) and _same_cause(old, new, matches)

    removes = tuple(old for old in original.findings if not any(same(old, new) for new in trial.findings))
    adds = tuple(new for new in trial.findings if not any(same(old, new) for old in original.findings))
    seconds = (sum(c.seconds for c in original.compiles), sum(c.seconds for c in trial.compiles))
    gain = Gain((original.graphs, trial.graphs), seconds, (operations(original.compiles), operations(trial.compiles)))
    proof = compared(eager, trial)
    checks = (*proof.checks, _LANE) if proof.checks else ()
    proof = dataclasses.replace(proof, removes=removes, adds=adds, gain=gain, checks=checks)
    return next((proof.but(*objection) for objection in _objections(proof, original, eager, trial, finding)), proof)


def _objections(
    proof: Proof, original: Trial, eager: Trial, trial: Trial, finding: Finding | None
) -> Iterator[tuple[Status, str]]:
    """What is against a proof that the numbers alone give, with what follows from that."""
    if why := not_run(trial):
        yield Status.UNPROVEN, why
    elif trial.outcome.kind in _OWN_FAILURES and eager.outcome.kind is OutcomeKind.COMPLETED:
        yield Status.DISPROVEN, f"The script fails with it: {trial.outcome.message}"
    elif trial.outcome.kind is not OutcomeKind.COMPLETED:
        yield Status.UNPROVEN, f"The run did not end well: {trial.outcome.message}"
    if finding is not None and not proof.has_removed(finding):
        yield Status.DISPROVEN, "The finding is still there."
    for new in proof.adds if proof.status is not Status.DISPROVEN else ():
        yield Status.UNPROVEN, f"Another finding comes: {new.code} at line {new.range.start.line}. {new.message}"
    if proof.status is Status.VERIFIED and not trial.graphs:
        yield Status.UNPROVEN, "Nothing is compiled with it."
    written = zip(("prints", "logs"), original.written, eager.written, trial.written, strict=True)
    for what, before, without, now in written if proof.status is Status.VERIFIED else ():
        if before == without != now:
            yield Status.UNPROVEN, f"The script {what} something else, or in another order."


def not_run(trial: Trial) -> str:
    """Why a trial was not run: it would have done harm, or its process could not start; empty if it was."""
    return trial.outcome.message if trial.outcome.kind is OutcomeKind.ENVIRONMENT_ERROR else ""


_LANE = "graphs compiled by AOTAutograd, as in the full pipeline; if the script's own backend does not use it, by that"


def are_alike(old: Finding, new: Finding) -> bool:
    """Whether two findings are of one sort, in one file."""
    return (old.kind, old.code, old.file) == (new.kind, new.code, new.file)


def _same_line(old: Finding, new: Finding, matches: Mapping[str, LineMatch]) -> bool:
    match = matches.get(old.file)
    line, other = old.range.start.line, new.range.start.line
    return line == other if match is None else match.same(line, other)


def _same_cause(old: Finding, new: Finding, matches: Mapping[str, LineMatch]) -> bool:
    """Whether two findings lie at the same line of a library, if they lie in one: below one call of the user's there
    may be several, and the second is found when the first is gone."""
    first, second = in_library(old), in_library(new)
    if first is None or second is None:
        return first is second
    return first.file == second.file and _same_line(first, second, matches)


def _also_without_compile(proof: Proof, eager: Trial, trial: Trial) -> Proof:
    """The proof, with what the changed script does without compile."""
    if trial.outcome.kind is not OutcomeKind.COMPLETED:
        status = Status.DISPROVEN if trial.outcome.kind in _OWN_FAILURES else Status.UNPROVEN
        return proof.but(status, f"Without compile the script fails with it: {trial.outcome.message}")
    evidence = trial.evidence or FoundEvidence()
    # Compiled code may give zeros, too, so only runs without compile can be asked.
    zeroed = [f"{name} gets a gradient of zeros, which an optimizer may act on." for name in evidence.zeroed]
    plain = compared(eager, trial).unless("".join(zeroed[:1]))
    if plain.status is not Status.VERIFIED:
        return proof.but(plain.status, f"Without compile: {plain.reason}")
    checks = [*proof.checks, "the same of the changed script without compile"]
    if evidence.copied:
        checks.append(f"but {evidence.copied[0]} is a new tensor now, where it had the memory of an input")
    return dataclasses.replace(proof, checks=tuple(checks))


def _one_sided(eager: Trial, matches: Mapping[str, LineMatch]) -> str:
    """Why it is not known what a change does: a decision that it replaces always went the same way.  Else empty."""
    for decision in eager.evidence.one_sided if eager.evidence is not None else ():
        match = matches.get(decision.file)
        if match is not None and not match.stays(decision.line):
            place = f"line {decision.line} of {os.path.basename(decision.file)}"
            return f"What {place} asks is {'true' if decision.answer else 'false'} on all inputs that were tried."
    return ""


_OWN_FAILURES = (OutcomeKind.SCRIPT_ERROR, OutcomeKind.CRASHED)


def compared(eager: Trial, trial: Trial) -> Proof:
    """What was compared, and what follows from it alone."""
    found = trial.evidence or FoundEvidence(problem="the run left no evidence")
    if eager.outcome.kind is not OutcomeKind.COMPLETED:
        return Proof(Status.UNPROVEN, f"The script does not end well without compile: {eager.outcome.message}")
    if found.problem:
        return Proof(Status.UNPROVEN, f"Nothing was compared: {found.problem}.")
    programs = f"{count(found.tensors, 'tensor')} of {count(found.programs, 'compiled program')}"
    free = ", ".join(what.value.replace("-", " ") for what in found.not_held_back)
    checks = {
        f"{programs}, on the run's inputs and {len(DISTURBANCES) - 1} others made from them": True,
        count(found.gradients, "gradient"): found.gradients,
        f"{found.failed} calls that raise an error in both": found.failed,
        f"{found.opaque} other results, of which only the type was compared": found.opaque,
        f"{count(found.clocks, 'kept number')} that a clock gives: not compared": found.clocks,
        f"but the system does not keep code other than Python from {free}": found.not_held_back,
    }
    seen = tuple(check for check, is_there in checks.items() if is_there)
    proof = Proof(Status.VERIFIED, "", checks=seen, not_held_back=found.not_held_back)
    unstable = (*(eager.evidence.unstable if eager.evidence is not None else ()), *found.unstable)
    if unstable:
        return proof.but(Status.UNPROVEN, f"{unstable[0]} gives other numbers from call to call.")
    if found.differences:
        return proof.but(Status.DISPROVEN, f"The results differ: {found.differences[0]}.")
    if found.types:
        return proof.but(Status.UNPROVEN, f"The types of results differ: {found.types[0]}.")
    return proof if found.tensors else proof.but(Status.UNPROVEN, "The compiled programs give nothing to compare.")
