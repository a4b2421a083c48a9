"""What pipelines that take a whole program share, without torch."""

from __future__ import annotations

import functools
import gc
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from irscope.capture.programs import Program, ProgramCapture, older_objects_kept
from irscope.capture.run_book import RunBook
from irscope.protocol import Compile, CompileSeen, Lane, Message, RunRequest
from irscope.runner import profiling
from irscope.runner.profiling import Profiling
from irscope.runner.rounds import Measured, Rounds


def test_the_collector_leaves_older_objects_alone_only_during_the_work() -> None:
    gc.unfreeze()
    with pytest.raises(ValueError, match="of the work"), older_objects_kept():
        assert gc.get_freeze_count() > 0
        raise ValueError("of the work")
    assert gc.get_freeze_count() == 0


def test_what_a_script_has_frozen_itself_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with older_objects_kept():
            assert gc.get_freeze_count() == frozen
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


class Interpreted(ProgramCapture):
    """A fake compiler that changes nothing."""

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        return program


CALLED = """\
def double(x):
    return 2 * x

first, second = take(double), None
second = take(double)
for _ in range(2):
    first(1)
assert first(2) == 4
second(3)
"""


def test_each_line_that_calls_a_program_leads_to_it_and_the_line_that_compiles_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(nn=SimpleNamespace(Module=type)))
    told: list[Message] = []
    capture = Interpreted(RunBook(RunRequest("r", "script.py", (), Lane.DEEP, "store.db"), told.append))
    exec(compile(CALLED, "/home/me/script.py", "exec"), {"take": capture._take})
    last = {message.compile.id: message.compile for message in told if isinstance(message, CompileSeen)}
    called = {
        name: [line.line for line in compile.callers if line.file == "/home/me/script.py"]
        for name, compile in last.items()
    }
    assert called == {"0/0": [7, 4, 8], "1/0": [9, 5]}
    assert {compile.program for compile in last.values()} == {"double"}


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Net(torch.nn.Module):  # type: ignore[misc]
    @decorated
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


@decorated
def add(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def test_what_is_measured_has_the_name_of_what_was_passed_to_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_WARM_SECONDS", 0.0)
    sequential = torch.nn.Sequential(Net())
    for program, name in ((Net(), "Net"), (add, "add"), (sequential, "Sequential"), (Net().forward, "Net")):
        measured = Measured(program, program, (torch.ones(2),), {}, False, False)
        for rounds in (Rounds("", lambda program: ""), Profiling("", lambda program: "", 1, lambda: False, print)):
            facts = rounds._prepared_facts(measured) if isinstance(rounds, Profiling) else rounds._prepared(measured)
            assert facts["function"] == name and not facts.get("why_not")
