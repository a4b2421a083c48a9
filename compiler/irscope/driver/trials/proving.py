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
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from irscope.driver.driver import RunSpec, execute
from irscope.driver.trials.errors import caught_otherwise
from irscope.driver.trials.gains import operations
from irscope.driver.trials.output import written
from irscope.fixing.places import in_library, is_of_library
from irscope.fixing.texts import LineMatch
from irscope.fixing.workarounds import as_patches
from irscope.protocol import (
    Compile,
    CompileSeen,
    Finding,
    FindingSeen,
    FoundEvidence,
    Lane,
    Message,
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
    """What a trial came to: why it is not verified, which findings went and came, and what was compared."""

    status: Status
    reason: str
    removes: tuple[Finding, ...] = ()
    adds: tuple[Finding, ...] = ()
    checks: tuple[str, ...] = ()
    gain: Gain | None = None

    def but(self, status: Status, reason: str) -> Proof:
        """The same with another conclusion."""
        return dataclasses.replace(self, status=status, reason=reason)

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


@dataclass(frozen=True)
class DynamoComparison:
    """What Dynamo alone makes of a script, compared with the script without compile.

    Parameters
    ----------
    checks
        What was compared.
    difference
        What differs, in words; empty if nothing does.  ``file`` and ``line``: where that program is written.
    why_not
        Why it could not be compared.
    """

    checks: tuple[str, ...] = ()
    difference: str = ""
    file: str = ""
    line: int = 0
    why_not: str = ""


class Prover:
    """Runs a script as it is and changed.  A context manager, with a private folder.

    Parameters
    ----------
    spec
        What is run; its lane and limits are set here, but for the limit of time.
    worker
        As `execute` has it.
    cancel
        Set by another thread to stop.
    has_run
        Whether the user has run the script already: then the original, too, is run without harm (`RunRequest.trial`).
    """

    def __init__(
        self,
        spec: RunSpec,
        worker: Worker | None = None,
        cancel: threading.Event | None = None,
        *,
        has_run: bool = False,
    ) -> None:
        self._has_run = has_run
        self._spec = dataclasses.replace(spec, lane=Lane.FAST, symbolic_trace=False, aot=True)
        self._worker, self._cancel = worker, cancel
        self._folder, self._beside = tempfile.mkdtemp(prefix="irscope-fix-"), ThreadPoolExecutor(2)
        self._texts: dict[str, str] = {}
        self.original: Trial | None = None
        self.eager: Trial | None = None
        self.trials = 0

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *_: object) -> None:
        self._beside.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    def begin(self) -> Trial:
        """Runs the original, compiled and without compile; returns what the compiled run found.

        Both at once if both are trials; else all trials begin with the files that the compiled run leaves.
        """
        original = self._beside.submit(self._run, {}, compare=False, texts_as_run=self._texts, trial=self._has_run)
        if not self._has_run:
            original.result()
        self.eager = self._run({}, without_compile=True, reference=True)
        self.original = original.result()
        return self.original

    def compare_dynamo(self) -> DynamoComparison:
        """Runs the script without compile, and compiled with eager mode running Dynamo's graphs: what differs, Dynamo has
        made."""
        self._spec = dataclasses.replace(self._spec, aot=False)
        eager = self._run({}, without_compile=True, reference=True)
        if eager.outcome.kind is not OutcomeKind.COMPLETED:
            return DynamoComparison(why_not=f"Without compile the script does not end well: {eager.outcome.message}")
        trial = self._run({})
        if trial.outcome.kind is not OutcomeKind.COMPLETED:
            return DynamoComparison(why_not=f"The script does not end well: {trial.outcome.message}")
        checks, status, reason = _numbers(eager, trial)
        if status is Status.DISPROVEN and trial.evidence is not None:
            found = trial.evidence
            return DynamoComparison(checks, found.differences[0], found.file, found.line)
        return DynamoComparison(checks, why_not=reason)

    def text_of(self, path: str) -> str:
        """The text of a file of the user's as the original has it, whatever happens to the file meanwhile.  Raises OSError."""
        overlay = self._spec.overlays.get(path)
        if overlay is not None:
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

        Parameters
        ----------
        finding
            What must be gone; None for a change that is not for a finding.
        may_come
            Whether another finding may come.
        """
        assert self.original is not None and self.eager is not None
        if lost := not_run(self.eager) or self._left_out(texts):
            return Proof(Status.UNPROVEN, lost), self.original
        trial = self._run(texts)
        matches = {path: LineMatch(self.text_of(path), text) for path, text in texts.items()}
        seen = dataclasses.replace(trial, findings=tuple(one for one in trial.findings if not may_come(one)))
        proof = _decided(self.original, self.eager, seen, finding, matches)
        if proof.status is Status.VERIFIED:
            proof = _also_without_compile(proof, self.eager, self._run(texts, without_compile=True))
        if proof.status is Status.VERIFIED:
            proof = _with_both_sides(proof, self.eager, matches)
        others = next(filter(None, (caught_otherwise(self.text_of(path), text) for path, text in texts.items())), "")
        if proof.status is Status.VERIFIED and others:
            proof = proof.but(Status.UNPROVEN, others)
        return proof, trial

    def both_sides(self, proof: Proof, before: Mapping[str, str], texts: Mapping[str, str]) -> Proof:
        """A proof of texts that were made from changed ones, unless they replace a decision that always went one way.

        Only what asks a tensor is seen.  A fix may make a number a tensor, so the original's run cannot know of it.
        """
        matches = {path: LineMatch(text, texts[path]) for path, text in before.items() if path in texts}
        return _with_both_sides(proof, self._run(before, without_compile=True), matches)

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

    def _run(
        self,
        texts: Mapping[str, str],
        without_compile: bool = False,
        reference: bool = False,
        compare: bool = True,
        texts_as_run: dict[str, str] | None = None,
        trial: bool = True,
    ) -> Trial:
        self.trials += 1
        folder = tempfile.mkdtemp(dir=self._folder)
        known = os.path.join(self._folder, REFERENCE)
        if compare and not reference and os.path.exists(known):
            os.symlink(known, os.path.join(folder, REFERENCE))
        overlays = {**self._spec.overlays, **texts}
        # A worker may have imported a library before it can have another text.
        worker = None if any(is_package_file(path) for path in texts) else self._worker
        spec = dataclasses.replace(self._spec, overlays=overlays, without_compile=without_compile)
        spec = dataclasses.replace(spec, evidence=folder, trial=trial)
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
            if texts_as_run is not None:
                texts_as_run.update(store.sources(run))
        self._beside.submit(scratch.leave, folder)
        if reference and os.path.exists(os.path.join(folder, REFERENCE)):
            os.replace(os.path.join(folder, REFERENCE), known)
        found = tuple(causes_only(list(findings.values())))
        lines = written(*(data.decode("utf-8", "replace") for data in printed.values()))
        return Trial(outcome, found, tuple(compiles.values()), lines, _answer(os.path.join(folder, ANSWER)))


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
        if (old.kind, old.code, old.file) != (new.kind, new.code, new.file):
            return False
        return _same_line(old, new, matches) and _same_cause(old, new, matches)

    removes = tuple(old for old in original.findings if not any(same(old, new) for new in trial.findings))
    adds = tuple(new for new in trial.findings if not any(same(old, new) for old in original.findings))
    seconds = (sum(c.seconds for c in original.compiles), sum(c.seconds for c in trial.compiles))
    compiled = (operations(original.compiles), operations(trial.compiles))
    gain = Gain((original.graphs, trial.graphs), seconds, compiled)
    checks, status, reason = _numbers(eager, trial)
    proof = Proof(status, reason, removes, adds, (*checks, _LANE) if checks else (), gain)
    if why := not_run(trial):
        return proof.but(Status.UNPROVEN, why)
    if trial.outcome.kind is not OutcomeKind.COMPLETED:
        if eager.outcome.kind is OutcomeKind.COMPLETED and trial.outcome.kind in _OWN_FAILURES:
            return proof.but(Status.DISPROVEN, f"The script fails with it: {trial.outcome.message}")
        return proof.but(Status.UNPROVEN, f"The run did not end well: {trial.outcome.message}")
    if finding is not None and not proof.has_removed(finding):
        return proof.but(Status.DISPROVEN, "The finding is still there.")
    if adds and status is not Status.DISPROVEN:
        (code, line, message) = adds[0].code, adds[0].range.start.line, adds[0].message
        return proof.but(Status.UNPROVEN, f"Another finding comes: {code} at line {line}. {message}")
    if status is Status.VERIFIED and not trial.graphs:
        return proof.but(Status.UNPROVEN, "Nothing is compiled with it.")
    for what, before, without, now in zip(
        ("prints", "logs"), original.written, eager.written, trial.written, strict=True
    ):
        if status is Status.VERIFIED and before == without != now:
            return proof.but(Status.UNPROVEN, f"The script {what} something else, or in another order.")
    return proof


def not_run(trial: Trial) -> str:
    """Why a trial was not run: it would have done harm, or its process could not start; empty if it was."""
    return trial.outcome.message if trial.outcome.kind is OutcomeKind.ENVIRONMENT_ERROR else ""


_LANE = "graphs compiled by AOTAutograd, as in the full pipeline; if the script's own back end does not use it, by that"


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
    _, status, reason = _numbers(eager, trial)
    evidence = trial.evidence or FoundEvidence()
    if status is Status.VERIFIED and evidence.zeroed:
        # Compiled code may give zeros, too, so only runs without compile can be asked.
        status, reason = (
            Status.UNPROVEN,
            f"{evidence.zeroed[0]} gets a gradient of zeros, which an optimizer may act on.",
        )
    if status is not Status.VERIFIED:
        return proof.but(status, f"Without compile: {reason}")
    checks = [*proof.checks, "the same of the changed script without compile"]
    if evidence.copied:
        checks.append(f"but {evidence.copied[0]} is a new tensor now, where it had the memory of an input")
    return dataclasses.replace(proof, checks=tuple(checks))


def _with_both_sides(proof: Proof, eager: Trial, matches: Mapping[str, LineMatch]) -> Proof:
    """The proof, unless the change is of a decision that always went the same way: of the other nothing is known."""
    for one in eager.evidence.one_sided if eager.evidence is not None else ():
        match = matches.get(one.file)
        if match is not None and not match.stays(one.line):
            answer = "true" if one.answer else "false"
            place = f"line {one.line} of {os.path.basename(one.file)}"
            return proof.but(Status.UNPROVEN, f"What {place} asks is {answer} on all inputs that were tried.")
    return proof


_OWN_FAILURES = (OutcomeKind.SCRIPT_ERROR, OutcomeKind.CRASHED)


def _numbers(eager: Trial, trial: Trial) -> tuple[tuple[str, ...], Status, str]:
    """What was compared, and what follows from it alone."""
    found = trial.evidence
    if eager.outcome.kind is not OutcomeKind.COMPLETED:
        return (), Status.UNPROVEN, f"The script does not end well without compile: {eager.outcome.message}"
    if found is None or found.problem:
        return (), Status.UNPROVEN, f"Nothing was compared: {found.problem if found else 'the run left no evidence'}."
    others = len(DISTURBANCES) - 1
    programs = f"{count(found.tensors, 'tensor')} of {count(found.programs, 'compiled program')}"
    checks = [f"{programs}, on the run's inputs and {others} others made from them"]
    checks += [count(found.gradients, "gradient")] if found.gradients else []
    checks += [f"{found.failed} calls that raise an error in both"] if found.failed else []
    checks += [f"{found.opaque} other results, of which only the type was compared"] if found.opaque else []
    checks += [f"{count(found.clocks, 'kept number')} that a clock gives: not compared"] if found.clocks else []
    unstable = eager.evidence.unstable if eager.evidence is not None else ()
    if unstable or found.unstable:
        name = (*unstable, *found.unstable)[0]
        return tuple(checks), Status.UNPROVEN, f"{name} gives other numbers from call to call."
    if found.differences:
        return tuple(checks), Status.DISPROVEN, f"The results differ: {found.differences[0]}."
    if found.types:
        return tuple(checks), Status.UNPROVEN, f"The types of results differ: {found.types[0]}."
    if not found.tensors:
        return tuple(checks), Status.UNPROVEN, "The compiled programs give nothing to compare."
    return tuple(checks), Status.VERIFIED, ""
