"""What a finding costs, worked out from the compiles of its run."""

from __future__ import annotations

import dataclasses

from facts import a_compile, a_finding, a_range
from irscope.protocol import Compile, Cost, Related, Resumed
from irscope.store.costs import cost_words, with_costs, with_measured

FILE = "/home/me/model.py"


def resume(function: str, line: int, seconds: float, graph_ops: int = 3, file: str = FILE, id: str = "1/0") -> Compile:
    name = f"torch_dynamo_resume_in_{function}_at_{line}"
    return a_compile(id=id, function=name, file=file, seconds=seconds, graph_ops=graph_ops)


def test_a_recompilation_costs_the_compiles_that_it_brought_about() -> None:
    compiles = [a_compile(id=f"0/{n}", seconds=n + 0.5, graph_ops=n) for n in range(4)]
    findings = [
        a_finding(kind="recompilation", compiles=("0/1", "0/3", "9/9")),
        a_finding(kind="recompilation", compiles=("0/0",)),
    ]
    assert [f.cost for f in with_costs(findings, compiles)] == [Cost(5.0, 2), Cost(0.5, 0)]


def test_a_graph_break_costs_what_goes_on_behind_it() -> None:
    compiles = [
        a_compile(id="0/0", function="forward", file=FILE),
        resume("forward", 6, 1.0, id="1/0"),
        resume("forward", 6, 0.25, graph_ops=0, id="1/1"),
        resume("forward", 8, 4.0, id="2/0"),  # another break's
        resume("forward", 6, 8.0, file="/home/me/other.py", id="3/0"),
        resume("backward", 6, 16.0, id="4/0"),
    ]
    (finding,) = with_costs([a_finding(compiles=("0/0",), related=())], compiles)
    assert finding.cost == Cost(1.25, 1)


def test_a_break_in_a_helper_goes_on_in_its_caller() -> None:
    compiles = [a_compile(id="0/0", function="forward", file=FILE), resume("forward", 20, 2.0)]
    helper = a_finding(
        file="/home/me/helper.py", compiles=("0/0",), related=(Related(FILE, a_range(20), "called from forward"),)
    )
    assert with_costs([helper], compiles)[0].cost == Cost(2.0, 1)


def test_a_break_behind_another_break() -> None:
    compiles = [resume("forward", 6, 1.0, id="1/0"), resume("forward", 9, 2.0, id="2/0")]
    (finding,) = with_costs([a_finding(range=a_range(9, 0, 9, 4), compiles=("1/0",), related=())], compiles)
    assert finding.cost == Cost(2.0, 1)


def test_with_nested_graph_breaks_each_costs_what_goes_on_after_it() -> None:
    """All that goes on is compiled as a resume function of the outermost."""
    helper = "/home/me/helper.py"
    compiles = [
        a_compile(id="0/0", function="outer", file=FILE),
        dataclasses.replace(resume("outer", 21, 1.0, id="1/0"), resumed=Resumed("inner", helper, 8)),
        dataclasses.replace(resume("outer", 21, 2.0, id="2/0"), resumed=Resumed("middle", FILE, 15)),
    ]
    assert [compile.title for compile in compiles[1:]] == ["inner, after line 8", "middle, after line 15"]
    outer, middle = Related(FILE, a_range(21), "called in outer"), Related(FILE, a_range(14), "called in middle")
    findings = [
        a_finding(file=helper, range=a_range(8, 0, 8, 4), compiles=("0/0",), related=(outer, middle)),
        a_finding(file=FILE, range=a_range(15, 0, 15, 4), compiles=("1/0",), related=(outer,)),
    ]
    assert [finding.cost for finding in with_costs(findings, compiles)] == [Cost(1.0, 1), Cost(2.0, 1)]


def test_other_kinds_cost_nothing() -> None:
    assert with_costs([a_finding(kind="compile-error", cost=Cost(9.0, 9))], [a_compile()])[0].cost == Cost(0.0, 0)


def test_what_is_long_to_compile_says_how_long_it_took() -> None:
    compiles = [a_compile(id="0/0", seconds=234.0), a_compile(id="1/0", seconds=6.0)]
    loop = a_finding(kind="unrolled-loop", code="unrolled-loop", compiles=("0/0",), explanation="Round by round.")
    other = a_finding(kind="host-sync", code="host-sync-item", compiles=("0/0",), explanation="Waits.")
    explained = [finding.explanation for finding in with_costs([loop, other], compiles)]
    assert explained == [
        "Round by round.\nThis was compiled in 3 min 54 s, all of this run in 4 min 0 s.",
        "Waits.",
    ]


def test_a_profile_says_what_a_break_takes_of_a_step() -> None:
    broken, other = a_finding(kind="graph-break"), a_finding(kind="recompilation")
    line = broken.range.start.line
    measured = [{"file": broken.file, "line": line, "code": broken.code, "seconds": 4e-5}]
    elsewhere = [{"file": broken.file, "line": line + 1, "code": broken.code, "seconds": 1.0}]
    found = with_measured([broken, other], {"breaks": [*measured, *elsewhere, *measured]})
    assert [finding.cost.step_seconds for finding in found] == [8e-5, 0.0]
    assert cost_words(found[0].cost)[0] == "at least 80 µs of each step"
    profiles: list[object] = [None, [], {}, {"breaks": 3}, {"breaks": [None, {"seconds": "x"}]}]
    wrong: list[dict[str, object]] = [{"file": []}, {"line": {}}, {"code": None}]
    wrong += [{"seconds": float(value)} for value in ("inf", "nan", "-1")]
    profiles += [{"breaks": [{**measured[0], **each}]} for each in wrong]
    for damaged in profiles:
        assert with_measured([broken], damaged) == (broken,)
