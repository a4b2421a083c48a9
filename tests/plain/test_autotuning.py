"""What autotuning tried: kept as data, and as a table with the fastest first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from irscope.cli.main import main
from irscope.internals.tuning_hooks import Choice, Padded, Tuned, option_name
from irscope.pipeline_captures.inductor.autotuning import operator_data, padding_data, stage_text
from irscope.pipelines.inductor import stages
from irscope.protocol import Compile, CompileOutcome, Lane, Outcome, OutcomeKind, StageRef
from irscope.provenance.linked import LinkedLines
from irscope.store.store import Store

STACK = 'File "/w/train.py", line 7, in f\n    y = x @ w\n'
TUNED = Tuned(
    "mm", "mm [64]", "mm_1", STACK, ("float16[64, 64]", "float16[64, 64]"),
    (
        Choice("mm", "ExternKernelCaller", "", 15e-6), Choice("triton_mm_0", "TritonTemplateCaller", "BLOCK_K=32", None),
        Choice("triton_mm_1", "TritonTemplateCaller", "BLOCK_K=64, num_warps=4", 10e-6),
    ),
    ("out of resource: shared memory\nIgnoring this choice.",),
)  # fmt: skip


def test_the_fastest_comes_first_and_a_failure_has_its_reason() -> None:
    data = operator_data(TUNED)
    assert (data["file"], data["line"], data["errors"]) == ("/w/train.py", 7, [])
    assert [(one["name"], one["kind"], one["why_not"]) for one in data["choices"]] == [
        ("triton_mm_1", "template", ""), ("mm", "library", ""), ("triton_mm_0", "template", "out of resource: shared memory"),
    ]  # fmt: skip
    text = stage_text([data])
    assert text.startswith(
        "mm(float16[64, 64], float16[64, 64]) at /w/train.py:7: 3 choices, fastest triton_mm_1 (10 µs), ×1.5 to the next\n"
    )
    assert "BLOCK_K=64, num_warps=4" in text and "failed  out of resource: shared memory" in text


def test_a_failure_that_was_raised_has_its_own_reason() -> None:
    failed = Choice("triton_mm_0", "TritonTemplateCaller", "", None, "RuntimeError: no room\nmore")
    data = operator_data(Tuned("mm", "", "", "", (), (failed,), ("something else",)))
    assert (data["choices"][0]["why_not"], data["chosen"], data["errors"]) == ("RuntimeError: no room", None, [])


def test_a_padding_is_one_of_the_operators() -> None:
    timed = padding_data(Padded("mm", "(7, 7)", "mm_1", STACK, (3e-6, 2e-6), True))
    before = padding_data(Padded("mm", "(7, 7)", "", "", None, False))
    assert (timed["file"], timed["line"], timed["chosen"], before["chosen"]) == ("/w/train.py", 7, 1, 0)
    blocks = stage_text([operator_data(TUNED), timed, before]).split("\n\n")
    assert blocks[0].startswith("mm(") and "padded  " in blocks[1]
    assert blocks[1].split("\n")[0] == "padding of mm at /w/train.py:7: 2 choices, padded (2 µs)"
    assert blocks[2] == "padding of mm: 2 choices, as it is (decided before, in Inductor's cache)\n"


def test_an_operator_is_found_from_the_line_of_the_user(tmp_path: Path) -> None:
    other = replace(TUNED, operator="addmm", stack=STACK.replace("line 7", "line 9"))
    operators = [operator_data(replace(TUNED, stack="")), operator_data(other), operator_data(TUNED)]
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/w/train.py", (), Lane.DEEP, "")
        store.put_compile(run, Compile("0/0", "f", "/w/train.py", 5, CompileOutcome.COMPILED, 0, 3, 1.0))
        ref = StageRef("0/0/autotuning", stages.AUTOTUNING.name, "plaintext", 0)
        store.put_stage(run, "0/0", ref, stage_text(operators), 1.0, {"operators": operators})
        linked = LinkedLines(store, store.report(run))
        lines = stage_text(operators).split("\n")
        for line, operator in ((9, "addmm("), (7, "mm(")):
            [(stage, found)] = linked.counterparts_of_source("/w/train.py", line, [ref.id]).items()
            assert stage == ref.id and lines[found[0] - 1].startswith(operator) and len(found) == 4
        assert linked.counterparts_of_source("/w/train.py", 8, [ref.id]) == {}
        store.put_stage(run, "0/0", ref, "odd\n\nodd", 1.0, {"operators": [7, {"line": "x", "file": 3}]})
        assert LinkedLines(store, store.report(run)).keys(ref.id) == {}


def test_a_choice_has_the_same_name_in_every_process() -> None:
    assert option_name("triton_mm_17", " BLOCK_K=64 ") == "triton_mm BLOCK_K=64"
    assert option_name("bias_addmm", "") == "bias_addmm"


def test_what_cannot_be_told_apart_is_listed_as_it_was_logged() -> None:
    data = operator_data(Tuned("mm", "", "", "", (), TUNED.choices, ("first", "second")))
    assert data["errors"] == ["first", "second"] and (data["file"], data["line"]) == ("", 0)
    assert "  logged: second\n" in stage_text([data])
    nothing = stage_text([operator_data(Tuned("mm", "", "", "", (), TUNED.choices[1:2], ()))])
    assert nothing.startswith("mm(): 1 choice\n") and "failed" in nothing


def test_the_command_line_prints_all_compiles_or_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run("/w/train.py", (), Lane.DEEP, "")
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    assert main(["show", "--autotuning", "--store", path]) != 0
    assert "max-autotune" in capsys.readouterr().err
    with Store(path) as store:
        store.put_compile(run, Compile("0/0", "f", "/w/train.py", 5, CompileOutcome.COMPILED, 0, 3, 1.0))
        data = {"operators": [operator_data(TUNED)]}
        ref = StageRef("0/0/autotuning", stages.AUTOTUNING.name, "plaintext", 0)
        store.put_stage(run, "0/0", ref, stage_text(data["operators"]), 1.0, data)
    assert main(["show", "--autotuning", "--store", path]) == 0
    assert "fastest triton_mm_1" in capsys.readouterr().out
    assert main(["show", "--autotuning", "--json", "--store", path]) == 0
    [told] = json.loads(capsys.readouterr().out)
    assert told["compile"] == "0/0" and told["choices"][0]["seconds"] == 10e-6


def test_two_runs_say_where_another_choice_won(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run_with(store: Store, *operators: object) -> None:
        run = store.create_run("/w/train.py", (), Lane.DEEP, "")
        store.put_compile(run, Compile("0/0", "f", "/w/train.py", 5, CompileOutcome.COMPILED, 0, 3, 1.0))
        ref = StageRef("0/0/autotuning", stages.AUTOTUNING.name, "plaintext", 0)
        store.put_stage(run, "0/0", ref, "text", 1.0, {"operators": list(operators)})
        store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))

    path = str(tmp_path / "runs.db")
    template, library = replace(TUNED.choices[2], name="triton_mm_9"), TUNED.choices[0]
    now = replace(TUNED, choices=(replace(library, seconds=8e-6), replace(template, seconds=12e-6)))
    with Store(path) as store:
        run_with(store, operator_data(TUNED), operator_data(replace(TUNED, key="mm [32]")), 5, {"key": 3})
        run_with(store, operator_data(now), operator_data(replace(TUNED, key="mm [32]")), {"choices": [1]})
        run_with(store)
    assert main(["diff", "--store", path]) == 0
    assert "Autotuning" not in capsys.readouterr().out, "the newest run tuned nothing"
    with Store(path) as store:
        runs = [one.run for one in store.runs()]
    assert main(["diff", runs[2], runs[1], "--store", path]) == 0
    printed = capsys.readouterr().out
    assert "Autotuning: 1 operator with another choice, 1 with the same" in printed
    assert "before: triton_mm BLOCK_K=64, num_warps=4 (10 µs), the other took ×1.5" in printed
    assert "after:  mm (8 µs), the other took ×1.5" in printed
    assert main(["diff", runs[2], runs[1], "--json", "--store", path]) == 0
    [changed] = json.loads(capsys.readouterr().out)["autotuning"]["changed"]
    assert (changed["line"], changed["after"]["choice"], changed["after"]["other_seconds"]) == (7, "mm", 12e-6)
