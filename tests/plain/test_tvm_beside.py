"""What TVM's functions are made into in a fork, without TVM: the fork, the bounds, and the words."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.pipeline_captures.tvm import beside, tir_passes
from irscope.pipeline_captures.tvm.beside import Beside, NotDoneError
from irscope.pipeline_captures.tvm.cuda import reason_of
from irscope.pipeline_captures.tvm.tir_passes import versions_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")


def test_a_fork_gives_what_it_worked_out_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> Any:
        os.write(1, b"noise")
        return {"of": os.getpid(), "much": "x" * 300_000}

    found = Beside(work).result()
    assert found["of"] != os.getpid()
    assert len(found["much"]) == 300_000
    assert capfd.readouterr().out == ""


def test_a_crash_or_an_error_in_the_fork_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for work in (lambda: os.kill(os.getpid(), signal.SIGSEGV), lambda: 1 / 0):
        with pytest.raises(NotDoneError, match="crashed"):
            Beside(work).result()
    monkeypatch.setattr(beside, "_SECONDS", 0.2)
    with pytest.raises(NotDoneError, match="longer than"):
        Beside(signal.pause).result()


class Function(str):
    """A function of TIR, which is its text."""

    def same_as(self, other: object) -> bool:
        """Whether they are one object."""
        return self is other

    def script(self) -> str:
        """Its text."""
        return str(self)


@dataclass(frozen=True)
class Name:
    """The name of a function in a module."""

    name_hint: str


def _module(**functions: str) -> Any:
    return SimpleNamespace(functions={Name(name): Function(text) for name, text in functions.items()})


def test_versions_are_bounded_and_only_of_passes_that_changed_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tvm_ffi", SimpleNamespace(structural_equal=lambda one, other: one == other))
    functions = {"f": Function("a"), "g": Function("a")}
    passed = [
        ("tirx.First", _module(f="b", g="a")),
        ("s_tir.Second", _module(f="b", g="c")),
        ("tirx.Pack", _module(f="d", g="c", other="x")),
    ]
    found, left_out = versions_of(functions, passed, "tirx.Pack")
    assert [(one.function, one.passed, one.is_packed, one.text) for one in found] == [
        ("f", "First", False, "b"),
        ("f", "Pack", True, "d"),
        ("g", "Second", False, "c"),
    ]
    assert left_out == []
    monkeypatch.setattr(tir_passes, "_MOST", 2)
    found, left_out = versions_of(functions, passed, "tirx.Pack")
    assert ([one.function for one in found], left_out) == (["f", "f"], ["g"])


def test_the_reason_is_the_line_that_says_it() -> None:
    assert reason_of("at a.cc:3\n  RuntimeError: Memory verification failed\n  more") == (
        "RuntimeError: Memory verification failed"
    )
    assert reason_of("") == "TVM gives no reason"
