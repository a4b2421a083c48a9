"""The table of limits: the command line's flags and the messages follow from it."""

from __future__ import annotations

import threading

import pytest
from irscope.cli.arguments import parser
from irscope.cli.limits import budget_of_flags
from irscope.cli.main import main
from irscope.cli.numbers import seconds
from irscope.vocabulary.limits import CALLS, LIMITS, MEGABYTES, SECONDS, Budget, Limit, limit_row
from irscope.vocabulary.settings import SETTINGS


def test_flags_of_run() -> None:
    given = ["run", "x.py", "--budget", "1.5", "--memory-budget", "2", "--output-budget", "0.5", "--steady-calls", "8"]
    assert budget_of_flags(parser().parse_args(given)) == Budget(
        seconds=1.5, memory=2_000_000, output=500_000, steady_calls=8
    )
    assert budget_of_flags(parser().parse_args(["run", "x.py"])) == Budget()
    assert budget_of_flags(parser().parse_args(["run", "x.py", "--steady-calls", "0"])) == Budget()


def test_flags_of_value_runs() -> None:
    for command in ("values", "diverge"):
        assert budget_of_flags(parser().parse_args([command, "x.py", "--budget", "3"])) == Budget(3.0)


def test_each_limit_has_a_flag_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["run", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    for row in LIMITS.values():
        assert f"{row.flag} {row.unit.metavar} {row.help}" in told


@pytest.mark.parametrize("amount", ["nan", "inf", "-1", "0", "much", ""])
def test_amounts_that_are_invalid(amount: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["run", "x.py", f"--memory-budget={amount}"])
    assert "megabytes" in capsys.readouterr().err


def test_each_limit_of_an_outcome_can_be_set() -> None:
    assert {row.limit for row in LIMITS.values()} == set(Limit)
    assert limit_row(Limit.SECONDS).where == (
        "--budget (settings irscope.run.budgetSeconds and irscope.run.deepBudgetSeconds)"
    )


def test_each_flag_that_a_setting_names_exists(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["run", "--help"])
    told = capsys.readouterr().out
    flags = [row.flag for row in SETTINGS.values() if row.flag]
    assert len(flags) >= 6
    for flag in flags:
        assert f"  {flag} " in told or f"  {flag}\n" in told, flag


@pytest.mark.parametrize("text", ["9" * 20, "9" * 5000, "-1", "0", "1e3", "nan", "²", ""])
def test_a_whole_number_out_of_bounds_is_refused_with_a_sentence(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["list", f"--limit={text}"])
    assert "Invalid number of runs" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["nan", "-1", "-1e308", "soon", ""])
def test_a_time_that_is_none_is_refused_with_a_sentence(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["diff", f"--seconds={text}"], ["fix", "x.py", f"--seconds={text}"]):
        with pytest.raises(SystemExit, match="2"):
            main(command)
        assert "Invalid number of seconds" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1e308", "inf", "1" + "0" * 400])
def test_a_time_that_is_longer_than_anybody_waits_can_be_waited_for(text: str) -> None:
    assert seconds(text) < threading.TIMEOUT_MAX
    for unit in (SECONDS, MEGABYTES, CALLS):
        amount = unit.in_budget(float(text))
        assert amount is not None and amount < 2**63
