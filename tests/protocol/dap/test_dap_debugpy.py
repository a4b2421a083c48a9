"""A script under debugpy and its compilation under irscope, side by side: neither notices the other."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from dap_client import Client
from irscope.driver.debuggers import without_debugger
from support import write

SCRIPT = """\
import sys
import torch


def block(x, w):
    h = x @ w
    return torch.relu(h) * 2  # @compiled


@torch.compile(backend="aot_eager")
def step(x, w):
    return block(x, w) + 1


for size in (4, 6):
    total = step(torch.ones(size, 8), torch.ones(8, 16)).sum()
    print(size, total.item())  # @python
breakpoint()  # under irscope there is no debugger to call
print("traced:", sys.gettrace() is not None, "pydevd" in sys.modules, file=sys.stderr)
"""
PRINTED = "4 1088.0\n6 1632.0\n"


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.split("\n"), 1) if f"# @{mark}" in line)


def printed(client: Client, category: str) -> str:
    bodies = [event["body"] for event in client.events if event["event"] == "output"]
    return "".join(body["output"] for body in bodies if body.get("category") == category).replace("\r", "")


@pytest.mark.nightly  # test_agents_in_script has both debuggers, too
def test_both_stop_at_their_breakpoints_and_print_the_same(tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT)
    from_a_debugger = {
        "PYDEVD_USE_FRAME_EVAL": "YES", "PYTHONBREAKPOINT": "debugpy.breakpoint", "DEBUGPY_RUNNING": "true",
    }  # fmt: skip
    with (
        Client([sys.executable, "-m", "debugpy.adapter"], {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}) as python,
        Client(env=from_a_debugger) as compilation,
    ):
        python.ask("initialize", adapterID="debugpy", clientID="test")
        launching = python.send("launch", {"program": str(script), "console": "internalConsole", "env": {"PYTHONBREAKPOINT": "0"}})  # fmt: skip
        python.event("initialized")
        python.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[{"line": line_of("python")}])
        python.send("configurationDone")

        compilation.initialize()
        compilation.ask("launch", program=str(script), store=str(tmp_path / "runs.db"), stopOn="none")
        source = {"path": str(script)}
        compilation.ask("setBreakpoints", source=source, breakpoints=[{"line": line_of("compiled")}])
        compilation.ask("configurationDone")

        # The Python session stands in the script, with a tensor, ...
        stop = python.event("stopped")
        assert stop["reason"] == "breakpoint"
        thread = stop["threadId"]
        [frame] = python.ask("stackTrace", threadId=thread, levels=1)["stackFrames"]
        assert frame["line"] == line_of("python")
        assert python.ask("evaluate", expression="float(total)", frameId=frame["id"])["result"] == "1088.0"
        assert python.answer(launching)["success"]
        # ... while the other one stands in the compile, in its source and in Dynamo's walk over it.
        assert compilation.event("stopped")["reason"] == "breakpoint"
        assert compilation.top()["line"] == line_of("compiled")
        compilation.move("continue")
        assert compilation.top()["name"].startswith("block: LOAD_GLOBAL torch")
        assert compilation.stack()[1]["name"].startswith("step: CALL")

        for _ in range(2):  # the second time at its line, then where the script itself calls the debugger
            python.ask("continue", threadId=thread)
            python.event("stopped")
        python.ask("continue", threadId=thread)
        assert python.event("exited")["exitCode"] == 0
        python.event("terminated")
        compilation.ask("terminate")
        assert compilation.event("exited")["exitCode"] == 0
        compilation.event("terminated")
        assert printed(python, "stdout") == printed(compilation, "stdout") == PRINTED
        # The run of irscope is traced by nothing that its adapter had in its environment.
        assert "traced: False False" in printed(compilation, "stderr")
        assert compilation.disconnect() == 0
        python.ask("disconnect")


def test_what_is_left_of_a_debuggers_environment() -> None:
    folder = os.pathsep.join(["/mine", "/x/_vendored/pydevd/pydev_sitecustomize", "/x/_vendored/pydevd"])
    given = {
        "PATH": "/bin", "PYTHONPATH": folder, "PYDEVD_LOAD_VALUES_ASYNC": "True", "DEBUGPY_RUNNING": "true",
        "VSCODE_DEBUGPY_ADAPTER_ENDPOINTS": "/x", "PYTHONBREAKPOINT": "debugpy.breakpoint",
    }  # fmt: skip
    assert without_debugger(given) == {"PATH": "/bin", "PYTHONPATH": "/mine", "PYTHONBREAKPOINT": "0"}
    own = {"PYTHONBREAKPOINT": "ipdb.set_trace", "PYTHONPATH": "/pydevds", "MY_PYDEVD_": "1"}
    assert without_debugger(own) == own
