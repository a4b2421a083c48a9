"""What graph breaks and recompilations take in a step: by hand, and of a recording."""

from __future__ import annotations

import dataclasses
import gzip
import io
from pathlib import Path

import pytest
from facts import a_finding
from irscope.cli.measured import profile_lines
from irscope.cli.text import Paint
from irscope.driver.opened_profile import opened
from irscope.profiling.break_costs import breaks_of, recompiled_of
from irscope.profiling.timeline import Kind
from irscope.protocol import (
    Compile,
    CompileOutcome,
    Finding,
    Outcome,
    OutcomeKind,
    Position,
    Range,
    Report,
    Resumed,
)
from irscope.store.store import Store

RECORDED = Path(__file__).parent / "profiles"
FILE = "/w/a.py"


def a_compile(id: str, function: str = "f", line: int = 3, seconds: float = 2.0) -> Compile:
    return Compile(id, function, FILE, line, CompileOutcome.COMPILED, 0, 3, seconds)


def a_break(line: int, *compiles: str, end: int | None = None) -> Finding:
    where = Range(Position(line, 0), Position(end or line, 5))
    return a_finding(file=FILE, range=where, compiles=compiles)


def a_report(compiles: list[Compile], findings: list[Finding]) -> Report:
    return Report(
        1, "r", FILE, None, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0), tuple(compiles), tuple(findings), (), ()
    )


def test_with_nested_graph_breaks_what_goes_on_is_not_of_the_line_of_the_outermost() -> None:
    resumes = dataclasses.replace(
        a_compile("1/0", "torch_dynamo_resume_in_f_at_7", 7), resumed=Resumed("inner", FILE, 20)
    )
    around = {("1/0", Kind.GUARDS): 1.0}
    for line, seconds in ((20, [1.0]), (7, [])):
        report = a_report([a_compile("0/0"), resumes], [a_break(line, "0/0")])
        assert [one.seconds for one in breaks_of(report, around, {})] == seconds


def test_a_break_costs_its_operators_and_the_way_into_what_goes_on() -> None:
    compiles = [
        a_compile("0/0"), a_compile("1/0", "torch_dynamo_resume_in_f_at_7", 7), a_compile("1/1#2", "torch_dynamo_resume_in_f_at_7", 7),
        a_compile("2/0", "torch_dynamo_resume_in_g_at_7", 7), a_compile("3/0", "torch_dynamo_resume_in_torch_dynamo_resume_in_f_at_7_at_9", 9),
    ]  # fmt: skip
    around = {
        ("0/0", Kind.EAGER): 5.0, ("0/0", Kind.GUARDS): 100.0, ("1/0", Kind.GUARDS): 1.0, ("1/1", Kind.GUARDS): 0.5,
        ("1/0", Kind.PYTHON): 2.0, ("1/0", Kind.RUNTIME): 3.0, ("2/0", Kind.GUARDS): 50.0, ("3/0", Kind.GUARDS): 7.0,
    }  # fmt: skip
    found = breaks_of(a_report(compiles, [a_break(6, "0/0", end=7), a_break(9, "1/0"), a_break(20, "5/0")]), around, {})
    assert [(one.line, one.eager_seconds, one.guard_seconds, one.entry_seconds, one.seconds) for one in found] == [
        (6, 5.0, 1.5, 5.0, 11.5), (9, 0.0, 7.0, 0.0, 7.0),
    ]  # fmt: skip


def test_two_compiles_that_break_at_one_place_go_on_in_the_same() -> None:
    compiles = [a_compile("0/0"), a_compile("0/1"), a_compile("1/0", "torch_dynamo_resume_in_f_at_7", 7)]
    around = {("0/0", Kind.EAGER): 1.0, ("0/1", Kind.EAGER): 2.0, ("1/0", Kind.GUARDS): 4.0}
    [found] = breaks_of(a_report(compiles, [a_break(7, "0/0", "0/1")]), around, {})
    assert (found.seconds, found.eager_seconds, found.guard_seconds, found.spread) == (7.0, 3.0, 4.0, None)


def test_the_spread_of_a_break_is_that_of_its_sum_over_the_steps() -> None:
    compiles = [a_compile("0/0"), a_compile("1/0", "torch_dynamo_resume_in_f_at_7", 7)]
    around = {("0/0", Kind.EAGER): 2.0, ("1/0", Kind.GUARDS): 3.0}
    steps = {("0/0", Kind.EAGER): {0: 1.0, 1: 2.0, 2: 3.0, 3: 2.0}, ("1/0", Kind.GUARDS): {0: 3.0, 1: 3.0, 2: 3.0, 3: 3.0},
             ("9/0", Kind.GUARDS): {0: 99.0}}  # fmt: skip
    [found] = breaks_of(a_report(compiles, [a_break(7, "0/0")]), around, steps)
    assert found.spread is not None and (found.spread.low, found.spread.median, found.spread.high) == (4.75, 5.0, 5.25)
    assert "quartiles 4.8 s to 5.3 s" in found.words or "quartiles" in found.words


def test_recompilations_cost_their_compiles_and_guards() -> None:
    compiles = [a_compile("0/0", seconds=9.0), a_compile("0/1"), a_compile("0/2"), a_compile("1/0"), a_compile("1/0#2")]
    [found] = recompiled_of(a_report(compiles, []), {("0/0", Kind.GUARDS): 1.0, ("0/2", Kind.GUARDS): 2.0})
    assert (found.function, found.compiles, found.compile_seconds, found.guard_seconds) == ("f", 3, 4.0, 3.0)
    [newer] = recompiled_of(a_report(compiles, []), {("0/7", Kind.GUARDS): 1.0})
    assert newer.guard_seconds == 1.0, "the search is the frame's, whichever compile it finds"
    [never] = recompiled_of(a_report(compiles, []), {})
    assert never.words == "compiled 3 times: recompiling took 4.0 s"


def test_breaks_of_a_recording_have_costs(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / "break.db.gz").read_bytes()))
    with Store(str(path)) as store:
        found = opened(str(RECORDED / "break.json.gz"), store, store.find_run())
    assert [one.line for one in found.breaks] == [20, 22] and found.recompiled == ()
    guards = {one.where.rpartition(":")[2]: one.seconds for one in found.gaps if one.kind == "guards"}
    assert [one.guard_seconds for one in found.breaks] == pytest.approx([guards["20"], guards["22"]])
    assert 0 < sum(one.seconds for one in found.breaks) < found.step_seconds
    text = profile_lines(found, Paint(io.StringIO()))
    [line] = [line for line in text if line.startswith("Graph break (break.py:20)")]
    assert line.endswith(
        ": at least 38.4 µs of a step by the gaps around it (guards 7.29 µs, entering the next graph 31.1 µs)"
    )
