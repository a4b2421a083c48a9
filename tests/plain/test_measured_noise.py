"""Repetitions: their spread, what is claimed of two sides, and how that is said; regions as the run's process tells them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from irscope.driver.profiling import program_of
from irscope.profiling.compared_words import program_words, region_words
from irscope.profiling.noise import Spread, is_clear, spread_of
from irscope.profiling.profile import MeasuredProgram
from irscope.profiling.regions import regions_of
from irscope.protocol import Compile, CompileOutcome, Outcome, OutcomeKind, Report


def around(seconds: float, part: float = 0.01) -> list[float]:
    return [seconds * (1 + part * (n % 7 - 3)) for n in range(60)]


def test_quartiles_of_calls() -> None:
    assert spread_of([1, 2, 3]) is None and spread_of([]) is None
    assert spread_of([5, 1, 2, 4, 3]) == Spread(2, 3, 4, 5)
    assert Spread(1e-5, 2e-5, 3e-5, 9).words == "20 µs (quartiles 10 µs to 30 µs)"


def test_two_sides_differ_only_above_the_noise() -> None:
    assert is_clear(around(1e-3), around(2e-3)) is True
    assert is_clear(around(1e-3), around(1.01e-3)) is False, "1 % is less than what two processes differ by"
    assert is_clear([*around(0.5e-3)[:30], *around(2e-3)[:30]], around(1.3e-3)) is False, "the groups overlap"
    assert is_clear(around(1e-3), [1e-3] * 5) is None


def program(compiled: list[float], eager: list[float], **more: Any) -> MeasuredProgram:
    facts = {"function": "f", "file": "f.py", "line": 3, "plain_seconds": min(compiled), "eager_seconds": min(eager)}
    return replace(program_of(facts | {"samples": compiled, "eager_samples": eager}), **more)


def test_what_is_said_of_a_program() -> None:
    fast = program(around(1e-3), around(2e-3), compile_seconds=10.0)
    assert fast.paid_back_calls is not None and "2 times as fast" in program_words(fast)
    assert "quartiles" in program_words(fast) and "paid back after" in program_words(fast)
    slow = program(around(2e-3), around(1e-3), compile_seconds=10.0)
    assert slow.paid_back_calls is None and "2 times as slow" in program_words(slow)
    assert "which no call pays back" in program_words(slow)
    same = program(around(1e-3), around(1.02e-3), compile_seconds=10.0)
    assert same.paid_back_calls is None, "what is within the noise saves nothing"
    assert "no difference above the noise; compiling took 10.0 s" in program_words(same)
    assert "times as" not in program_words(same) and "pay" not in program_words(same)
    old = MeasuredProgram("f", "f.py", 1, None, 1e-3, False, eager_seconds=2e-3)
    assert program_words(old) == "forward: 1 ms; without compile 2 ms: too few repetitions to say which is faster"
    assert program_words(replace(old, why_not="It failed.")) == "not measured: It failed."


def report(*compiles: Compile) -> Report:
    return Report(1, "r", "f.py", None, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0), compiles, (), (), ())


def test_regions_are_joined_to_their_compiles_and_are_not_trusted() -> None:
    rows: Any = [
        {"compile": "0/0", "why_not": "", "backward": True, "samples": around(1e-3), "eager_samples": around(3e-3)},
        {"compile": "7/0", "why_not": "RuntimeError: no"},
        5, {"compile": [], "samples": "x", "eager_samples": [None, -1, float("inf"), "1"]},
    ]  # fmt: skip
    compiled = Compile("0/0#1", "f", "/w/f.py", 3, CompileOutcome.COMPILED, 0, 3, 4.0)
    found = regions_of(rows, report(replace(compiled, id="0/0", seconds=6.0), compiled))
    assert [(one.compile, one.line, one.backward, one.compile_seconds) for one in found] == [
        ("0/0", 3, True, 10.0), ("7/0", 0, False, None), ("[]", 0, False, None),
    ]  # fmt: skip
    assert found[0].is_clear and found[0].paid_back_calls == 5000
    assert "3 times as fast" in region_words(found[0]) and "forward and backward" in region_words(found[0])
    assert region_words(found[1]) == "not measured: RuntimeError: no"
    assert region_words(found[2]) == "not measured: too few calls" and found[2].paid_back_calls is None
    assert regions_of(None, report()) == regions_of({}, report()) == ()
