"""How a run went, in a sentence, and what is to be dealt with first."""

from __future__ import annotations

import dataclasses

from facts import a_compile, a_finding, an_outcome
from irscope.cli.report import document
from irscope.findings.standing import NEXT, Next, State, label, point, sentence, standing_of
from irscope.protocol import (
    Compile,
    CompileOutcome,
    Cost,
    Finding,
    Fix,
    Outcome,
    OutcomeKind,
    Related,
    Report,
    Severity,
)
from irscope_server.base.compiled import standing_sentence

ENDED = an_outcome(kind=OutcomeKind.COMPLETED, message="The script ran to its end.")
NORMAL = {"severity": Severity.HINT, "cost": Cost(0.0, 0)}


def report(*findings: Finding, compiles: tuple[Compile, ...] = (), outcome: Outcome = ENDED) -> Report:
    return Report(1, "r1", "/home/me/main.py", "2.13.0", outcome, compiles, findings, (), ())


def compiles(*seconds: float) -> tuple[Compile, ...]:
    """``Net`` and what it was compiled again for."""
    return tuple(
        a_compile(id=f"0/{n}", program="Net", outcome=CompileOutcome.COMPILED, seconds=each)
        for n, each in enumerate(seconds)
    )


def again(number: int, line: int, seconds: float, **changes: object) -> Finding:
    """A recompilation, at a line, that brought about one compile."""
    made = a_finding(
        kind="recompilation", message="`size` changed. It will again.", compiles=(f"0/{number}",),
        cost=Cost(seconds, 1), **changes,
    )  # fmt: skip
    where = made.range
    return a_finding(**{**vars(made), "range": type(where)(type(where.start)(line, 0), type(where.end)(line, 4))})


def test_what_costs_most_is_first_and_each_compile_is_counted_once() -> None:
    found = (again(1, 3, 2.0), again(2, 7, 30.0), again(2, 8, 30.0))
    standing = standing_of(report(*found, compiles=compiles(5.0, 2.0, 30.0)))
    assert [finding.range.start.line for finding in standing.causes] == [7, 8, 3]
    assert (standing.state, standing.seconds, standing.compile_seconds) == (State.CAUSES, 32.0, 37.0)
    assert sentence(standing) == "3 causes cost 32.0 of 37.0 s of compile time. First: `size` changed (model.py:7)."
    assert label(standing) == "3 causes cost 32.0 of 37.0 s"
    assert (
        point(standing, found[0].file)[1] == "see first: line 7"
        and point(standing, "main.py")[1] == "see first: model.py:7"
    )
    fix = Fix("Move it", "It prints later.", ())
    fixed = standing_of(report(*(dataclasses.replace(each, fixes=(fix,)) for each in found), compiles=compiles(5.0)))
    assert point(fixed, found[0].file)[1] == "fix first: line 7"


def test_what_was_measured_comes_before_what_was_compiled() -> None:
    slow = again(2, 7, 30.0)
    measured = dataclasses.replace(again(1, 3, 2.0), cost=Cost(2.0, 1, 6e-5))
    standing = standing_of(report(slow, measured, compiles=compiles(5.0, 2.0, 30.0)))
    assert standing.causes == (measured, slow)
    timed = standing_of(dataclasses.replace(report(slow, measured, compiles=compiles(5.0)), step_seconds=3e-4))
    assert label(timed) == "2 causes cost 60 of 300 µs a step"
    assert sentence(standing).startswith(
        "2 causes cost at least 60 µs of each step and 32.0 of 37.0 s of compile time. First:"
    )


def test_a_hint_that_costs_much_is_a_cause_and_one_that_costs_little_is_not() -> None:
    heavy = again(1, 3, 2.0, severity=Severity.HINT)
    assert standing_of(report(heavy, compiles=compiles(5.0, 2.0))).causes == (heavy,)
    light = again(1, 3, 0.1, severity=Severity.HINT)
    assert standing_of(report(light, compiles=compiles(500.0, 0.1))).state is State.CLEAN


def test_a_break_that_costs_little_is_told_from_none() -> None:
    light = again(1, 3, 0.1, severity=Severity.HINT)
    cheap = dataclasses.replace(light, kind="graph-break")
    assert label(standing_of(report(cheap, compiles=compiles(500.0, 0.1)))) == "no costly breaks"
    assert label(standing_of(report(light, compiles=compiles(500.0, 0.1)))) == "no breaks"


def test_some_compiles_of_a_run_have_only_their_own_causes() -> None:
    first, other = again(0, 3, 2.0), again(1, 7, 30.0)
    whole = report(first, other, compiles=compiles(2.0, 30.0))
    standing = standing_of(whole, whole.compiles[:1])
    assert (standing.causes, standing.seconds, standing.compile_seconds) == ((first,), 2.0, 2.0)
    assert len(standing_of(whole).causes) == 2


def test_what_follows_from_another_finding_is_no_cause_of_its_own() -> None:
    first, second = again(1, 3, 2.0), again(2, 7, 30.0)
    follows = dataclasses.replace(second, follows=Related(first.file, first.range, "the cause"))
    standing = standing_of(report(first, follows, compiles=compiles(5.0, 2.0, 30.0)))
    assert (standing.causes, standing.recompilations) == ((first,), 2)


def test_nothing_stops_the_compiler() -> None:
    standing = standing_of(report(compiles=compiles(5.0)))
    said = "Net: one graph, no graph breaks, no recompilations. Nothing stops the compiler here."
    assert (sentence(standing, "ended"), label(standing)) == (said, "no breaks")
    assert sentence(standing, "", {Next.FIX: "Fix it.", Next.PROFILE: "Profile it."}) == f"{said} Profile it."
    assert point(standing, "main.py") == ("no breaks", "next: profile it")
    profiled = standing_of(dataclasses.replace(report(compiles=compiles(5.0)), step_seconds=4.2e-3))
    assert sentence(profiled, "", {Next.PROFILE: "Profile it."}) == f"A step takes 4.2 ms. {said}"
    assert point(profiled, "main.py") == ("4.2 ms a step, no breaks",)
    normal = standing_of(report(a_finding(**NORMAL), compiles=compiles(5.0)))
    said = "1 graph break, no recompilations, each with less than 5 % of the compile time. Nothing else stops the compiler here."
    assert said in sentence(normal)


def test_a_function_that_runs_as_python_is_not_passed_over() -> None:
    skipped = a_compile(id="1/0", function="helper", outcome=CompileOutcome.SKIPPED, seconds=0.0)
    standing = standing_of(report(compiles=(*compiles(5.0), skipped)))
    assert sentence(standing).endswith("no recompilations. 1 function runs as plain Python.") and standing.next is None
    assert point(standing, "main.py") == ("no breaks", "1 function runs as plain Python")
    alone = standing_of(report(compiles=(skipped,)))
    assert (alone.state, label(alone)) == (State.NOTHING, "nothing compiled")
    assert sentence(alone, "It ended.") == "It ended. 1 function runs as plain Python."


def test_a_run_that_did_not_come_to_its_end_says_so_first() -> None:
    cancelled = an_outcome(kind=OutcomeKind.CANCELLED, message="It was cancelled.")
    standing = standing_of(report(compiles=compiles(5.0), outcome=cancelled))
    assert sentence(standing, "It was cancelled.").startswith("It was cancelled. Net: one graph")
    assert "up to there" in sentence(standing, "It was cancelled.") and standing.next is None
    failed = standing_of(
        report(again(1, 3, 2.0), compiles=compiles(5.0, 2.0), outcome=an_outcome(message="ValueError: 3"))
    )
    assert (failed.state, label(failed)) == (State.FAILED, "the script failed")
    unfit = standing_of(report(outcome=an_outcome(kind=OutcomeKind.ENVIRONMENT_ERROR, message="No torch.")))
    assert (unfit.state, label(unfit)) == (State.FAILED, "could not be run"), "that is not the script's failure"
    assert sentence(failed, "ValueError: 3").startswith("ValueError: 3. 1 cause costs 2.0 of 7.0 s")
    itself = standing_of(report(a_finding(message="ValueError: 3"), outcome=an_outcome(message="ValueError: 3")))
    assert sentence(itself, "ValueError: 3") == "ValueError: 3."


def test_minutes_have_their_units() -> None:
    standing = standing_of(report(again(1, 3, 72.0), compiles=compiles(31.0, 72.0)))
    assert label(standing) == "1 cause costs 1 min 12 s of 1 min 43 s"
    standing = standing_of(report(again(1, 3, 42.0), compiles=compiles(31.0, 42.0)))
    assert label(standing) == "1 cause costs 42.0 s of 1 min 13 s"


def test_data_says_what_is_next_as_the_editor_does() -> None:
    whole = report(compiles=compiles(5.0))
    assert document(whole)["standing"]["sentence"] == standing_sentence(whole)
    assert standing_sentence(whole).endswith(NEXT[Next.PROFILE])


def test_nothing_was_compiled() -> None:
    standing = standing_of(report())
    assert (standing.state, sentence(standing, "Nothing was compiled.")) == (State.NOTHING, "Nothing was compiled.")
