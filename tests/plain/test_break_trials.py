"""What a step takes without a break: of trials and rounds by hand."""

from __future__ import annotations

from typing import Any

import pytest
from facts import a_finding
from irscope.driver import break_trials
from irscope.driver.break_trials import breaks_removed
from irscope.driver.driver import RunSpec
from irscope.driver.fixing.candidates import Candidate
from irscope.driver.rounds import Measured
from irscope.driver.trials.proving import Proof, Status
from irscope.profiling.break_words import BreakCost, RecompileCost
from irscope.profiling.profile import CudaGraphs, Profile
from irscope.protocol import Compile, CompileOutcome, Finding, Fix, Outcome, OutcomeKind, Position, Range, Report

SPEC = RunSpec(script="/w/a.py", args=(), profile=10)
FIX = Candidate(Fix("Move it", "It prints later.", ()), "/w/a.py", Proof(Status.VERIFIED, ""))


def a_cost(line: int) -> BreakCost:
    return BreakCost("/w/a.py", line, "GB1", 1e-5, 0.0, 1e-5, 0.0)


def a_profile(breaks: list[BreakCost], recompiled: tuple[RecompileCost, ...] = ()) -> Profile:
    return Profile(
        "r", 1, 0.0, 1e-4, 0.0, (), (), (), CudaGraphs(0, 0), breaks=tuple(breaks), recompiled=recompiled
    )  # fmt: skip


def a_report(findings: list[Finding], *compiles: str) -> Report:
    rows = (Compile(id, "f", "/w/a.py", 3, CompileOutcome.COMPILED, 0, 3, 1.0) for id in compiles)
    return Report(
        1, "r", "/w/a.py", None, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0), tuple(rows), tuple(findings), (), ()
    )  # fmt: skip


def rounds(seconds: float | None, second: float | None = 0.0) -> list[list[dict[str, Any]]]:
    """Of two programs, with some noise."""

    def one(n: int) -> list[dict[str, Any]]:
        first = None if seconds is None else seconds * (1 + 0.002 * (n % 5))
        return [{"seconds": first}, {"seconds": second}]

    return [one(n) for n in range(18)]


def tried(
    monkeypatch: pytest.MonkeyPatch, fixes: dict[int, Any], sides: list[Measured], breaks: list[BreakCost]
) -> tuple[list[Any], list[RunSpec]]:
    specs: list[RunSpec] = []

    def measured(given: list[RunSpec], *_: Any, **__: Any) -> list[Measured]:
        specs.extend(given)
        return sides

    found = {("/w/a.py", line, "GB1"): fix for line, fix in fixes.items()}
    monkeypatch.setattr(break_trials, "measured", measured)
    monkeypatch.setattr(break_trials, "_verified", lambda *_: found)
    profile = breaks_removed(SPEC, a_profile(breaks), a_report([]))
    return [one.removed for one in profile.breaks], specs


def test_the_script_without_the_break_is_timed_beside_the_script_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [Measured(SPEC, rounds=rounds(1e-4, 1e-5)), Measured(SPEC, rounds=rounds(0.8e-4, 1e-5))]
    [one, other, gone], specs = tried(
        monkeypatch,
        {7: (FIX, "changed"), 9: "No fix is known that removes it."},
        sides,
        [a_cost(7), a_cost(9), a_cost(11)],
    )
    assert [spec.overlays for spec in specs] == [{}, {"/w/a.py": "changed"}]
    assert all(spec.profile == 0 and not spec.rounds for spec in specs), "it is timed as `irscope compare` does"
    assert one.is_clear and one.saved.median == pytest.approx(2.01e-5, rel=0.01)
    assert one.words.startswith("without it (Move it), forward alone: 110 µs → 90.3 µs, −20.1 µs (quartiles −20")
    assert (one.caveat, one.before.calls) == ("It prints later.", 18)
    assert other.words == "not measured without it: No fix is known that removes it."
    assert "did not come again" in gone.why_not
    assert a_cost(7).words == "at least 10 µs of a step by the gaps around it (guards 10 µs)"


def test_nothing_is_claimed_below_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [Measured(SPEC, rounds=rounds(1e-4)), Measured(SPEC, rounds=rounds(0.99e-4))]
    [one], _ = tried(monkeypatch, {7: (FIX, "changed")}, sides, [a_cost(7)])
    assert one.is_clear is False and one.words.endswith("forward alone: no difference above the noise")


@pytest.mark.parametrize(
    ("side", "why"),
    [
        (Measured(SPEC, problem="The run did not start."), "The run did not start."),
        (Measured(SPEC, programs=[{"why_no_seconds": "TypeError: no"}], rounds=rounds(None)), "TypeError: no"),
        (Measured(SPEC, rounds=rounds(1e-4)[:2]), "The two have too few rounds."),
    ],
)  # fmt: skip
def test_why_it_could_not_be_timed(monkeypatch: pytest.MonkeyPatch, side: Measured, why: str) -> None:
    [one], _ = tried(monkeypatch, {7: (FIX, "t")}, [Measured(SPEC, rounds=rounds(1e-4)), side], [a_cost(7)])
    assert (one.saved, one.title, one.why_not) == (None, "Move it", why)


def test_only_the_dearest_breaks_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found, specs = tried(monkeypatch, {}, [], [a_cost(line) for line in range(6)])
    assert [one.why_not for one in found[4:]] == ["Others are dearer."] * 2 and not specs, "without a fix nothing runs"


def test_a_recompilation_is_measured_by_the_fix_of_its_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[RunSpec] = []

    def measured(given: list[RunSpec], *_: Any, **__: Any) -> list[Measured]:
        specs.extend(given)
        return [Measured(SPEC, rounds=rounds(1e-4)), Measured(SPEC, rounds=rounds(2e-4))]

    asked: list[set[Any]] = []

    def verified(_: RunSpec, places: set[Any], __: object) -> dict[Any, Any]:
        asked.append(places)
        return {("/w/a.py", 4, "GB9"): (FIX, "dynamic")}

    monkeypatch.setattr(break_trials, "measured", measured)
    monkeypatch.setattr(break_trials, "_verified", verified)
    where = Range(Position(4, 0), Position(4, 5))
    told = a_finding(kind="recompilation", code="GB9", file="/w/a.py", range=where, compiles=("0/1", "1/1"))
    f, other = RecompileCost("f", "/w/a.py", 3, 2, 1.0, 1e-6), RecompileCost("g", "/w/a.py", 30, 2, 1.0, 1e-6)
    found = breaks_removed(SPEC, a_profile([], (f, other)), a_report([told], "0/0", "0/1", "2/0"))
    mine, without = (one.removed for one in found.recompiled)
    assert asked == [{("/w/a.py", 4, "GB9")}] and [one.overlays for one in specs] == [{}, {"/w/a.py": "dynamic"}]
    assert mine is not None and mine.is_clear and mine.saved is not None
    assert mine.saved.median == pytest.approx(-1e-4, rel=0.02), "the fix makes a call slower, and that is said"
    assert "; without it (Move it), forward alone: 100 µs → 201 µs, +100 µs" in found.recompiled[0].words
    assert without is not None and without.why_not == "No finding says why it was compiled again."
