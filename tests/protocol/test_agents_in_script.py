"""`debug(script=True)` of `irscope mcp`: debugpy in a script that runs, and what its lines were compiled to in a stored run."""

from __future__ import annotations

import asyncio
import os
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from dap_runs import small_run
from irscope.system.processes import children_of
from irscope_server.agents.answers import Answer, ToolFailure
from irscope_server.agents.commands import Commands
from irscope_server.agents.tools import Tools
from support import Instant, late

SCRIPT = """\
import sys


def called(number):
    twice = number * 2
    text = f"<{twice}>"
    return text


for number in range(3):
    if number == 5:
        called(number)
    print("seen", number, sys.argv[1:])
called(1)
if len(sys.argv) > 2:
    raise ValueError(sys.argv[2])
"""
"""Line 12 is never reached; 6 and 7 of `small_run` have a kernel."""
ENDLESS = "import time\nprint('begins', flush=True)\nwhile True:\n    time.sleep(0.05)\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    monkeypatch.chdir(tmp_path)
    small_run(tmp_path / "runs.db", tmp_path)
    (tmp_path / "model.py").write_text(SCRIPT)
    (tmp_path / "endless.py").write_text(ENDLESS)
    return Tools(Commands(str(tmp_path / "runs.db"), sys.executable, allow_run=True))


def debugged(tools: Tools, program: str = "model.py", **arguments: Any) -> Answer:
    return asyncio.run(tools.debug(program=program, script=True, **arguments))


def test_a_script_is_stepped_through_beside_its_compilation(tools: Tools) -> None:
    said = debugged(
        tools, breakpoints=["model.py:5", "model.py:13 if number == 2"], steps=["continue", "next"], args=["a"],
        evaluate=["number + 40", "nothing"],
    )  # fmt: skip
    lines = said.text.split("\n")
    assert lines[:3] == [
        "breakpoint: <module> at model.py:13",
        "continue: breakpoint: called at model.py:5",
        "next: step: called at model.py:6",
    ]
    assert "number + 40 = 41" in lines and "  twice = 2" in lines
    assert any(line.startswith("nothing = (not evaluated) NameError") for line in lines)
    assert "  seen 1 ['a']" in lines
    assert said.note == "The script ran up to the last stop, and was ended there."
    at = lines.index(f"model.py:6 in the compiles of run {said.ids['run']}:")
    assert lines[at + 1].startswith("  kernel cpp_fused_add_mul_relu_0")
    assert f'debug(run="{said.ids["run"]}", breakpoints=["model.py:6"])' in said.text


def test_a_line_that_compiled_code_ran_for_is_told(tools: Tools) -> None:
    """The script ends without it; line 7 has a kernel in the stored run, and 12 has none."""
    answer = debugged(tools, breakpoints=["model.py:12"])
    said = answer.text
    assert said.startswith("the end of the script\n") and answer.note == "The script ran to its end."
    assert "breakpoint model.py:12: not reached." in said and "without_compile=True" not in said
    (Path.cwd() / "model.py").write_text(
        "print(1)\nif len('') > 1:\n    a = 1\n    b = 1\n    c = 1\n    d = 1\n    e = 1\n"
    )
    said = debugged(tools, breakpoints=["model.py:7"]).text
    assert "breakpoint model.py:7: not reached. Compiled code ran in place of this line; with without_compile" in said
    assert "without_compile" not in debugged(tools, breakpoints=["model.py:7"], without_compile=True).text


def test_a_value_of_several_lines_is_one_line(tools: Tools) -> None:
    (Path.cwd() / "model.py").write_text(
        "class Grid:\n    def __repr__(self):\n        return 'grid([1,\\n   2])\\n  other = 3'\n\n\ngrid = Grid()\nprint(1)\n"
    )
    said = debugged(tools, breakpoints=["model.py:7"]).text.split("\n")
    assert "  grid = grid([1, 2]) other = 3" in said, said


def test_it_stops_where_the_script_fails(tools: Tools) -> None:
    said = debugged(tools, breakpoints=["nowhere"], args=["a", "why"]).text
    assert "at model.py:16" in said.split("\n")[0] and "why" in said, said


def test_it_stops_at_exceptions_that_are_caught_too(tools: Tools) -> None:
    (Path.cwd() / "model.py").write_text("try:\n    {}['a']\nexcept KeyError:\n    pass\n")
    said = debugged(tools, breakpoints=["raised"]).text
    assert said.split("\n")[0].endswith("at model.py:2") and "'a'" in said, said


def test_without_breakpoints_it_stops_at_the_first_line(tools: Tools) -> None:
    said = debugged(tools, breakpoints=["model.py:2"]).text.split("\n")
    assert said[:2] == ["breakpoint model.py:2: moved to line 1", "breakpoint: <module> at model.py:1"]
    said = debugged(tools, steps=["next"]).text.split("\n")
    assert said[0].endswith("at model.py:1") and said[1].startswith("next: ")


def test_it_is_ended_by_its_limit_and_by_a_cancel(tools: Tools) -> None:
    before = children_of(os.getpid())  # those of other tests in this process
    with pytest.raises(ToolFailure, match="ended after 2 s"):
        debugged(tools, "endless.py", breakpoints=["endless.py:4 if False"], seconds=2)
    assert set(children_of(os.getpid())) <= set(before)
    assert not _runs("endless.py")

    async def taken_back() -> None:
        call = asyncio.create_task(
            tools.debug(program="endless.py", script=True, breakpoints=["endless.py:4 if False"])
        )
        begun = Instant()
        while not _runs("endless.py") and not late(begun, 20):
            await asyncio.sleep(0.05)
        assert _runs("endless.py"), "the script has begun"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(taken_back())
    assert not _runs("endless.py")


def _runs(script: str) -> bool:
    """Whether a process of this user runs a script of this folder."""
    path = str(Path.cwd() / script).encode()
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path in each.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_an_interpreter_without_debugpy_is_named(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    (tmp_path / "a.py").write_text("")
    (tmp_path / "debugpy.py").write_text("raise SystemExit(7)  # a file of the working folder is not taken for it")
    python = str(tmp_path / "bare" / "bin" / "python")
    for path, words in ((python, f"{python} -m pip install debugpy"), (str(tmp_path / "no"), "cannot be started")):
        commands = Commands(str(tmp_path / "runs.db"), path, allow_run=True)
        with pytest.raises(ToolFailure, match=words):
            asyncio.run(Tools(commands).debug(program=str(tmp_path / "a.py"), script=True))
