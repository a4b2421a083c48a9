"""Tries what may pay: each candidate beside the script as it is, by turns; then what pays is checked, combined and measured again.

All of it are trials: nothing is written into the user's files, and the changed texts are overlays of runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field

from irscope.driver.driver import RunSpec
from irscope.driver.fixing.combining import combined
from irscope.driver.fixing.trying import Trying
from irscope.driver.profiling import NotMeasured, profiled
from irscope.driver.rounds import Measured, Turns, seconds_of, why_not_timed
from irscope.driver.trials.proving import Prover, Status, Trial, compared, not_run
from irscope.driver.tuning.candidates import CANDIDATES, Candidate, Facts, candidates_for
from irscope.driver.tuning.deciding import Gain, gain_of, payback
from irscope.profiling.noise import Spread, spread_of
from irscope.protocol import Lane, Report
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count

ROUNDS = 18
"""As `irscope.driver.break_trials` has them, and for the same reason."""
_AT_ONCE = 2
"""How many candidates wait beside the script for their turns: each holds memory."""
_SHARE_OF_SINGLES = 0.6
_PROFILED_CALLS, _MOST_KERNELS = 10, 3
_CHECKED_STEPS = 4
_SAME_DRAWS = {"torch._inductor.config.fallback_random": "True"}
"""Compiled code draws other random numbers than eager code: where results are compared, both draw the same."""
NO_TIME = "There was no time left to try it."
FIXES = "fixes"
_NAMES = [candidate.name for candidate in CANDIDATES]


@dataclass(frozen=True)
class Row:
    """One change with what was measured and checked.

    Args:
        name, group, numerics: As a candidate has them.
        texts: The changed files, by absolute path.
        parts: The candidates that make it.
        gain: None if it was not measured; ``why`` says why.
        compile_seconds: Of the changed script.
        steps_to_pay_back: As `payback` has it.
        memory: Bytes that the device, or without one the process, held at most, of the script as it is and with the change.
        status: Of the check of its results; None if it was not checked, since it does not pay.
    """

    name: str
    group: str
    texts: dict[str, str]
    parts: tuple[Candidate, ...] = ()
    numerics: str = ""
    gain: Gain | None = None
    why: str = ""
    compile_seconds: float = 0.0
    steps_to_pay_back: int | None = None
    memory: tuple[int, int] = (0, 0)
    status: Status | None = None
    reason: str = ""
    checks: tuple[str, ...] = ()

    @property
    def pays(self) -> bool:
        """Whether it is faster by more than noise, and its results are the same within the tolerance."""
        return self.gain is not None and self.gain.is_faster and self.status is Status.VERIFIED


@dataclass
class Tuned:
    """The answer.

    Args:
        before: Texts of the changed files as they are.
        best: What was proven and measured again as a whole; None if nothing pays.
        rows: All that was tried, the best first.
        problem: Why nothing was tried; empty if it was.
        ended_early: Why not all was tried: an interrupt, or the time.
    """

    before: dict[str, str] = field(default_factory=dict)
    step: Spread | None = None
    compile_seconds: float = 0.0
    facts: Facts = field(default_factory=Facts)
    best: Row | None = None
    rows: list[Row] = field(default_factory=list)
    problem: str = ""
    ended_early: str = ""
    notes: list[str] = field(default_factory=list)
    consists: list[tuple[str, float]] = field(default_factory=list)
    """Where nothing pays: the kernels that take most, with their part of a call of what is compiled."""


def tuned(
    spec: RunSpec,
    seconds: float,
    say: Callable[[str], None] = lambda what: None,
    cancel: threading.Event | None = None,
    only: Collection[str] = (),
) -> Tuned:
    """What pays in a script.  After an interrupt, or when the time is over, it is what is known by then.

    Args:
        seconds: No process of a trial runs longer than that from now.
        only: Names of the candidates that are tried, and `FIXES`; empty: all.

    Raises LookupError for a name that no candidate has.
    """
    if unknown := set(only) - {FIXES, *(one.name for one in CANDIDATES)}:
        known = ", ".join([FIXES, *(one.name for one in CANDIDATES)])
        raise LookupError(f"No candidate is called {min(unknown)}. There are: {known}.")
    stop, answer = cancel or threading.Event(), Tuned()
    timer = threading.Timer(seconds, stop.set)
    timer.daemon = True
    timer.start()
    try:
        with tempfile.TemporaryDirectory(prefix="irscope-tune-") as folder:
            _Tuning(spec, seconds, say, stop, answer, folder, only).fill()
    except KeyboardInterrupt:
        answer.ended_early = "It was interrupted."
    finally:
        if not timer.is_alive() and not answer.ended_early:
            answer.ended_early = f"The time of {seconds:g} s was over (--budget)."
        timer.cancel()
    answer.rows.sort(key=_order)
    return answer


def _order(row: Row) -> tuple[bool, float]:
    return not row.pays, -row.gain.saved.median if row.gain is not None else float("inf")


class _Tuning:
    """Fills in an answer, in its order: singles, checks, the combination, which is proven and measured as a whole."""

    def __init__(
        self,
        spec: RunSpec,
        seconds: float,
        say: Callable[[str], None],
        stop: threading.Event,
        answer: Tuned,
        folder: str,
        only: Collection[str],
    ) -> None:
        self._only = only
        self._say, self._stop, self._answer, self._folder = say, stop, answer, folder
        self._singles_until = time.monotonic() + _SHARE_OF_SINGLES * seconds
        self._spec = dataclasses.replace(
            spec, lane=Lane.DEEP, symbolic_trace=False, trial=True, steps=_CHECKED_STEPS
        )  # fmt: skip
        self._script = os.path.abspath(os.path.join(spec.cwd or "", spec.script))
        self._base_report: Report | None = None
        self._stores = 0
        self._provers = contextlib.ExitStack()
        self._reference: Prover | None = None
        self._eager: Trial | None = None

    def fill(self) -> None:
        """Raises KeyboardInterrupt; what was found by then is in the answer."""
        answer = self._answer
        with self._turns() as turns:
            base = turns.start(self._spec, "running the script as it is")
            if base.programs is None:
                turns.end(0)  # then it is known why
            if why := why_not_timed(base):
                answer.problem = why
                return
            report = self._report(turns, base)
            self._base_report, answer.compile_seconds = report, _compile_seconds(report)
            answer.facts = _facts(base, report)
            rows = self._singles()
            for at in range(0, len(rows), _AT_ONCE):
                self._measure(turns, base, rows[at : at + _AT_ONCE])
            answer.step = spread_of(seconds_of(base))
        with self._provers:
            for row in [row for row in answer.rows if row.gain is not None and row.gain.is_faster]:
                answer.rows[answer.rows.index(row)] = self._checked(row)
            self._combine()
        if answer.best is None and not self._stop.is_set():
            self._profile()

    def _turns(self) -> Turns:
        self._stores += 1
        folder = os.path.join(self._folder, str(self._stores))
        os.mkdir(folder)
        return Turns(os.path.join(self._folder, f"{self._stores}.db"), folder, on_step=self._say, cancel=self._stop)

    def _report(self, turns: Turns, one: Measured) -> Report:
        with Store(turns.store) as store:
            return store.report(one.run)

    # --- singles ------------------------------------------------------------------------------------------------------

    def _singles(self) -> list[Row]:
        """The changes that can be tried, as rows without a measurement."""
        has_findings = self._base_report is not None and self._base_report.findings
        rows = [self._fixes()] if has_findings and FIXES in (self._only or (FIXES,)) else []
        text = self._text()
        for candidate in candidates_for(self._answer.facts):
            if self._only and candidate.name not in self._only:
                continue
            if changed := candidate.text(text, self._answer.facts):
                texts = {self._script: changed}
                rows.append(Row(candidate.name, candidate.group, texts, (candidate,), candidate.numerics))
        return [row for row in rows if row is not None]

    def _text(self) -> str:
        with Prover(self._spec) as prover:
            text = prover.text_of(self._script)
        self._answer.before[self._script] = text
        return text

    def _fixes(self) -> Row | None:
        """All verified fixes together."""
        with Prover(self._spec, None, self._stop, has_run=True) as prover:
            self._say("trying fixes")
            original = prover.begin()
            if not_run(original):
                return None
            seconds = max(0.0, self._singles_until - time.monotonic()) / 2
            trying = Trying(prover, seconds, lambda what: self._say(f"trying {what}"), with_rules=False)
            together = combined(trying, [trying.finding(finding) for finding in original.findings])
            for path in together.texts:
                self._answer.before[path] = prover.text_of(path)
        name = f"verified {FIXES} ({count(len(together.fixed), 'finding')})"
        return Row(name, FIXES, dict(together.texts)) if together.texts else None

    def _measure(self, turns: Turns, base: Measured, rows: Sequence[Row]) -> None:
        """Rows in turns with the script as it is; they are in the answer then."""
        if self._stop.is_set() or time.monotonic() > self._singles_until:
            self._answer.rows += [dataclasses.replace(row, why=NO_TIME) for row in rows]
            return
        first = len(turns.found)
        found = [turns.start(self._changed(row.texts), f"trying {row.name}") for row in rows]
        begin = len(base.rounds)
        turns.time(ROUNDS)
        turns.end(first)
        for row, one in zip(rows, found, strict=True):
            self._answer.rows.append(self._row(turns, row, base, one, begin))

    def _row(self, turns: Turns, row: Row, base: Measured, one: Measured, begin: int = 0) -> Row:
        gain = gain_of(seconds_of(base)[begin:], seconds_of(one))
        seconds = _compile_seconds(self._report(turns, one)) if one.run else 0.0
        why = (
            ""
            if gain is not None
            else why_not_timed(one) or "Too few rounds were timed: the script ended, or the time was over."
        )
        back = None if gain is None else payback(self._answer.compile_seconds, seconds, gain.saved.median)
        memory = _memory(base), _memory(one)
        return dataclasses.replace(
            row, gain=gain, why=why, compile_seconds=seconds, steps_to_pay_back=back, memory=memory
        )  # fmt: skip

    def _changed(self, texts: dict[str, str]) -> RunSpec:
        return dataclasses.replace(self._spec, overlays={**self._spec.overlays, **texts})

    # --- what pays ----------------------------------------------------------------------------------------------------

    def _checked(self, row: Row) -> Row:
        """Whether the first steps compute the same as without compile, with gradients, on the run's inputs and on others."""
        if self._stop.is_set():
            return _unchecked(row)
        self._say(f"checking {row.name}")
        moves = any(part.moves_compile for part in row.parts)
        if moves:
            with self._prover(self._changed(row.texts)) as prover:
                proof = compared(prover.run({}, without_compile=True), prover.run({}))
        else:
            self._reference = self._reference or self._provers.enter_context(self._prover(self._spec))
            self._eager = self._eager or self._reference.run({}, without_compile=True)
            proof = compared(self._eager, self._reference.run(row.texts))
        if self._stop.is_set():  # what was cut off says nothing
            return _unchecked(row)
        checks = (*proof.checks, *(["the same text without compile"] if moves else []))
        return dataclasses.replace(row, status=proof.status, reason=proof.reason, checks=checks)

    def _prover(self, spec: RunSpec) -> Prover:
        spec = dataclasses.replace(spec, settings=_SAME_DRAWS)
        return Prover(spec, None, self._stop, has_run=True, lane=Lane.DEEP)

    def _combine(self) -> None:
        """The best row, and with it, one by one, what makes it faster still; then the whole is proven and measured again."""
        ranked = sorted((row for row in self._answer.rows if row.pays and not row.numerics), key=_order)
        if not ranked:
            return
        best = ranked[0]
        for row in ranked[1:]:
            if (both := self._together(best, row)) is not None and not self._stop.is_set():
                with self._turns() as turns:
                    one, two = (turns.start(self._changed(each.texts), f"trying {each.name}") for each in (best, both))
                    turns.time(ROUNDS)
                gain = gain_of(seconds_of(one), seconds_of(two))
                best = both if gain is not None and gain.is_faster else best
        if len(best.parts) > 1 or best.group not in {row.group for row in ranked}:
            best = self._checked(best)
        with self._turns() as turns:
            base = turns.start(self._spec, "running the script as it is once more")
            again = turns.start(self._changed(best.texts), f"measuring {best.name} once more")
            turns.time(ROUNDS)
            best = self._row(turns, best, base, again)
        if best.pays:
            self._answer.best = best
        elif best.gain is not None:
            self._answer.notes.append(
                f"{best.name} was faster once, and not when it was measured again or checked as a whole."
            )

    def _profile(self) -> None:
        """What a call of what is compiled consists of."""
        self._say("profiling the script as it is")
        spec = dataclasses.replace(self._spec, profile=_PROFILED_CALLS)
        with Store(os.path.join(self._folder, "profile.db")) as store, contextlib.suppress(NotMeasured):
            _, _, found = profiled(spec, store, on_output=lambda stream, text: None, cancel=self._stop)
            kernels = sorted(found.kernels, key=lambda kernel: kernel.seconds, reverse=True)[:_MOST_KERNELS]
            self._answer.consists = [(kernel.name, kernel.seconds / found.step_seconds) for kernel in kernels]

    def _together(self, first: Row, second: Row) -> Row | None:
        """Two changes in one; None if they exclude each other."""
        groups = {part.group for part in first.parts} | {first.group}
        if second.group in groups or any(part.name.startswith("disable") for part in (*first.parts, *second.parts)):
            return None
        fixes = next((row for row in (first, second) if row.group.startswith(FIXES)), None)
        texts = dict(fixes.texts) if fixes is not None and not fixes.parts else {}
        if fixes is not None and fixes.parts:
            texts = dict(next(row.texts for row in self._answer.rows if row.group == FIXES))
        parts = tuple(sorted((*first.parts, *second.parts), key=lambda part: _NAMES.index(part.name)))
        text = texts.get(self._script, self._answer.before[self._script])
        for part in parts:
            text = part.text(text, self._answer.facts)
            if not text:
                return None
        group = FIXES if fixes is not None else "combination"
        return Row(f"{first.name} + {second.name}", group, {**texts, self._script: text}, parts)


def _unchecked(row: Row) -> Row:
    return dataclasses.replace(row, status=Status.UNPROVEN, reason="There was no time left to check its results.")


def _compile_seconds(report: Report) -> float:
    return sum(compile.seconds for compile in report.compiles)


def _memory(one: Measured) -> int:
    held = (program.get("memory") for row in one.rounds for program in row)
    return max((each for each in held if isinstance(each, int)), default=0)


def _facts(base: Measured, report: Report) -> Facts:
    """What the process told, which is not trusted, and what its run shows."""
    told = (base.programs or [{}])[0]
    kinds = {finding.kind for finding in report.findings}
    return Facts(
        device=str(told.get("device", "cpu"))[:20],
        grad=told.get("grad") is True,
        convolutions=told.get("convolutions") is True,
        blocks=tuple(_paths(told.get("blocks"))),
        compiled_again="recompilation" in kinds,
        breaks="graph-break" in kinds,
    )


def _paths(value: object) -> Iterable[str]:
    """Paths of modules that can be written into a text: names with dots between them."""
    for path in value if isinstance(value, list) else ():
        if isinstance(path, str) and all(name.isidentifier() for name in path.split(".")):
            yield path
