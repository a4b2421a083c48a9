"""What pipelines that take a whole program share, without torch."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.capture.programs import Program, ProgramCapture, older_objects_kept
from irscope.capture.run_book import RunBook
from irscope.protocol import Compile, CompileSeen, Lane, Message, RunRequest


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
