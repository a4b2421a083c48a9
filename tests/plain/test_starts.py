"""Whose the time of a start is, and how starts are shown side by side."""

import sys
import time
from collections.abc import Sequence

import pytest
from irscope.cli.starting import start_lines
from irscope.cli.text import Paint
from irscope.driver import starts as driver
from irscope.driver.starts import Start
from irscope.internals.start_times import _OF_EVENT, PARTS, _Clock


def test_each_moment_is_of_the_innermost_part() -> None:
    clock = _Clock()
    clock.begin("dynamo", "dynamo")
    clock.around("import", "imports", time.sleep)(0.05)
    clock.begin("unknown", "")
    time.sleep(0.02)
    clock.end("dynamo")  # and what is open in it
    clock.end("unknown")
    before = clock.seconds["dynamo"]
    time.sleep(0.01)
    clock.close()
    assert clock.seconds["imports"] >= 0.05
    assert clock.seconds["dynamo"] == before >= 0.02
    assert clock.seconds["script"] >= 0.01


def test_each_event_has_a_part_that_has_a_name() -> None:
    assert {part for _, part in _OF_EVENT} < PARTS.keys()


def test_starts_are_shown_side_by_side() -> None:
    cold = Start("cold", {"imports": 3.0, "kernels": 20.0, "graphs": 0.0}, ())
    warm = Start("warm", {"imports": 3.5, "kernels": 1.0, "graphs": 0.0}, ("phases of a compile",))
    lines = start_lines([cold, warm], Paint(sys.stdout))
    assert [line.split() for line in lines] == [
        ["cold", "warm", "saved"],
        ["imports", "3.00", "s", "3.50", "s"],
        ["C++", "and", "Triton", "compilers", "20.00", "s", "1.00", "s", "19.00", "s"],
        ["from", "process", "begin", "to", "the", "end", "23.00", "s", "4.50", "s", "18.50", "s"],
        ["not", "told", "apart:", "phases", "of", "a", "compile"],
    ]


def test_the_script_that_loads_an_artifact_begins_first_and_is_shown_last(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def start(name: str, python: str, command: Sequence[str], *_: object) -> Start:
        begun.append((name, *command))
        return Start(name, {}, ())

    monkeypatch.setattr(driver, "_start", start)
    found = driver.starts("python", "bert.py", ["2"], None, lambda _: None, ["serve.py", "--fast"])
    assert begun[0] == ("artifact", "serve.py", "--fast")
    assert begun[1:] == [(name, "bert.py", "2") for name in ("cold", "warm", "Mega-Cache")]
    assert [one.name for one in found] == ["cold", "warm", "Mega-Cache", "artifact"]
    assert [one.name for one in driver.starts("python", "bert.py", [], None, lambda _: None)] == [
        "cold",
        "warm",
        "Mega-Cache",
    ]
