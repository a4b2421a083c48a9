"""What `irscope tune` decides: noise, payback, what each candidate makes of a text, and what goes together."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from irscope.cli.tuning import _lines
from irscope.driver.driver import RunSpec
from irscope.driver.rounds import Measured
from irscope.driver.trials.proving import Prover, Status, Trial
from irscope.driver.tuning.candidates import CANDIDATES, Facts, candidates_for
from irscope.driver.tuning.deciding import gain_of, payback
from irscope.driver.tuning.tuning import FIXES, Row, Tuned, _facts, _order, _Tuning
from irscope.protocol import Outcome, OutcomeKind, Report

_SCRIPT = """\
import torch

model = Model()
optimizer = torch.optim.Adam(model.parameters())
model = torch.compile(model, dynamic=True)
"""
_REPORT = Report(1, "", "", None, Outcome(OutcomeKind.COMPLETED, 0, "", 0.0), (), (), (), ())
_ALL = Facts("cuda", grad=True, convolutions=True, blocks=("encoder.layers",), compiled_again=True)


def _text(name: str, text: str = _SCRIPT, facts: Facts = _ALL) -> str:
    return next(one for one in CANDIDATES if one.name == name).text(text, facts)


# --- noise and payback --------------------------------------------------------------------------------------------------


def test_a_gain_above_the_noise_is_faster() -> None:
    before = [1.0 + 0.01 * (n % 3) for n in range(18)]
    gain = gain_of(before, [0.8 * each for each in before])
    assert gain is not None
    assert gain.is_faster
    assert gain.parts[0] == pytest.approx(0.2, abs=0.01)


def test_a_loss_above_the_noise_is_clear_and_not_faster() -> None:
    gain = gain_of([1.0] * 18, [1.3] * 18)
    assert gain is not None
    assert gain.is_clear
    assert not gain.is_faster


def test_a_gain_below_the_difference_of_two_processes_is_noise() -> None:
    gain = gain_of([1.0] * 18, [0.98] * 18)
    assert gain is not None
    assert not gain.is_clear


def test_rounds_that_overlap_are_noise() -> None:
    before = [1.0, 1.6, 0.9, 1.5, 1.1, 1.4] * 3
    gain = gain_of(before, [each - 0.05 for each in reversed(before)])
    assert gain is not None
    assert not gain.is_clear


def test_quartiles_on_both_sides_of_zero_are_noise() -> None:
    """The groups of rounds differ, and yet a third of the pairs say the opposite."""
    before, after = [1.0, 1.0, 1.0] * 6, [0.9, 0.9, 1.5] * 6
    gain = gain_of(before, after)
    assert gain is not None
    assert gain.saved.low < 0 < gain.saved.high
    assert not gain.is_clear


def test_too_few_rounds_say_nothing() -> None:
    assert gain_of([1.0] * 5, [0.5] * 5) is None


def test_rounds_without_a_partner_do_not_count() -> None:
    gain = gain_of([1.0] * 18, [0.5] * 12)
    assert gain is not None
    assert gain.before.calls == 12


def test_compile_time_is_paid_back_by_steps() -> None:
    assert payback(10.0, 12.0, 0.3) == 7
    assert payback(10.0, 9.0, 0.3) == 0
    assert payback(10.0, 12.0, -0.3) is None


# --- texts --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("dynamic=False", "model = torch.compile(model, dynamic=False)"),
        ("disable=True", "model = torch.compile(model, dynamic=True, disable=True)"),
        ("mode=reduce-overhead", 'model = torch.compile(model, dynamic=True, mode="reduce-overhead")'),
        ("compile each block", "for block in model.encoder.layers:\n    block.compile(dynamic=True)\n"),
        ("channels_last", "model = model.to(memory_format=torch.channels_last)\nmodel = torch.compile("),
        ("compile the optimizer's step", "optimizer.step = torch.compile(optimizer.step)\n"),
        ("freezing", "torch._inductor.config.freezing = True\n"),
        ("float32 matmul precision high", 'torch.set_float32_matmul_precision("high")\n'),
    ],
)
def test_candidates_change_the_text_where_it_compiles(name: str, line: str) -> None:
    changed = _text(name)
    assert line in changed
    compile(changed, "changed", "exec")


def test_blocks_of_a_module_with_another_name_keep_that_name() -> None:
    text = "import torch\nfast = torch.compile(net)\n"
    assert _text("compile each block", text).endswith("    block.compile()\nfast = net\n")


def test_what_the_script_has_already_is_no_candidate() -> None:
    assert _text("dynamic=True") == ""
    assert _text("float32 matmul precision high", f'{_SCRIPT}torch.set_float32_matmul_precision("high")\n') == ""


@pytest.mark.parametrize("text", ["print(1)\n", "import torch\nf = torch.compile(**options)\n", "def f(:\n"])
def test_a_text_that_cannot_be_changed_gives_no_candidate(text: str) -> None:
    assert _text("dynamic=False", text) == ""


def test_candidates_are_for_the_scripts_in_which_they_can_pay() -> None:
    names = {one.name for one in candidates_for(Facts())}
    assert "freezing" in names
    assert not names & {"channels_last", "compile each block", "mode=reduce-overhead", "compile the optimizer's step"}


# --- rows ---------------------------------------------------------------------------------------------------------------


def _row(name: str, after: float, status: Status | None = Status.VERIFIED, **more: object) -> Row:
    return Row(name, name, {}, gain=gain_of([1.0] * 18, [after] * 18), status=status, **more)  # type: ignore[arg-type]


def test_the_best_is_first_and_what_does_not_pay_is_last() -> None:
    rows = [_row("slow", 1.4, None), _row("some", 0.9), _row("wrong", 0.2, Status.DISPROVEN), _row("most", 0.5)]
    assert [row.name for row in sorted(rows, key=_order)] == ["most", "some", "wrong", "slow"]


@pytest.fixture
def tuning(tmp_path: Path) -> _Tuning:
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    answer = Tuned(facts=_ALL)
    made = _Tuning(RunSpec(str(script)), 10.0, lambda what: None, threading.Event(), answer, str(tmp_path), ())
    answer.rows = made._singles()
    return made


def _single(tuning: _Tuning, name: str) -> Row:
    return next(row for row in tuning._answer.rows if row.name == name)


def test_two_changes_of_one_text_are_one_change(tuning: _Tuning) -> None:
    both = tuning._together(_single(tuning, "dynamic=False"), _single(tuning, "compile the optimizer's step"))
    assert both is not None
    (text,) = both.texts.values()
    assert "dynamic=False" in text
    assert "optimizer.step = torch.compile(optimizer.step)" in text
    again = tuning._together(both, _single(tuning, "channels_last"))
    assert again is not None
    assert len(again.parts) == 3


def test_changes_that_exclude_each_other_are_not_combined(tuning: _Tuning) -> None:
    first = _single(tuning, "mode=reduce-overhead")
    assert tuning._together(first, _single(tuning, "mode=max-autotune-no-cudagraphs")) is None
    assert tuning._together(_single(tuning, "dynamic=False"), _single(tuning, "disable=True")) is None


def test_a_candidate_goes_on_top_of_the_fixes(tuning: _Tuning) -> None:
    fixed = f"{_SCRIPT}# fixed\n"
    row = Row("verified fixes (1 finding)", FIXES, {tuning._script: fixed})
    tuning._answer.rows.append(row)
    both = tuning._together(row, _single(tuning, "dynamic=False"))
    assert both is not None
    assert "# fixed" in both.texts[tuning._script]
    assert "dynamic=False" in both.texts[tuning._script]
    three = tuning._together(both, _single(tuning, "channels_last"))
    assert three is not None
    assert "# fixed" in three.texts[tuning._script]


def test_a_check_that_was_cut_off_says_nothing(tuning: _Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Prover, *_: object, **__: object) -> Trial:
        tuning._stop.set()
        return Trial(Outcome(OutcomeKind.CANCELLED, None, "The run was cancelled.", 1.0), (), (), ([], []), None)

    monkeypatch.setattr(Prover, "run", run)
    row = tuning._checked(_row("some", 0.5, None))
    assert (row.status, row.reason) == (Status.UNPROVEN, "There was no time left to check its results.")


def test_nothing_pays_is_not_said_of_what_was_not_checked(tuning: _Tuning) -> None:
    told = {
        status: next(_lines(Tuned(rows=[_row("some", 0.5, status), _row("other", 1.4, None)])))
        for status in (Status.UNPROVEN, Status.DISPROVEN)
    }
    assert set(told.values()) == {"What is faster below was not proven to compute the same."}
    assert next(_lines(Tuned(rows=[_row("other", 1.4, None)]))) == "Nothing pays here."


def test_paths_of_blocks_that_are_no_names_are_not_written() -> None:
    told = Measured(RunSpec("x"), programs=[{"blocks": ["a; import os", 3, "m.0", "layers"], "device": 5}])
    assert _facts(told, _REPORT).blocks == ("layers",)
