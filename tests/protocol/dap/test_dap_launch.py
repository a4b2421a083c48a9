"""Launching scripts under the debug adapter: what they print, how they end, and one real compile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dap_client import Client
from support import Instant, ends, passed_at_this_load, write

COMPILED = """\
import torch


def block(x, w):
    h = x @ w
    return torch.relu(h) * 2


@torch.compile
def step(x, w):
    y = block(x, w)
    print("broke")
    return y + 1


step(torch.ones(4, 8), torch.ones(8, 16))
"""


def launch(client: Client, script: Path, **arguments: object) -> None:
    client.initialize(supportsProgressReporting=True)
    client.ask("launch", program=str(script), store=str(script.parent / "runs.db"), **arguments)
    client.ask("configurationDone")


def printed(client: Client, category: str) -> str:
    bodies = [event["body"] for event in client.events if event["event"] == "output"]
    return "".join(body["output"] for body in bodies if body["category"] == category)


def test_a_real_compile_from_the_users_line_to_the_kernel(client: Client, tmp_path: Path) -> None:
    script = write(tmp_path, COMPILED)
    client.initialize(supportsProgressReporting=True)
    client.ask("launch", program=str(script), store=str(tmp_path / "runs.db"), args=["--fast"], stopOn="none")
    [pending] = client.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[{"line": 6}])["breakpoints"]
    assert not pending["verified"]
    client.ask("setExceptionBreakpoints", filters=["graph-break"])
    client.ask("configurationDone")
    assert client.event("progressStart")["cancellable"]
    assert "while the script runs" in client.refused("stackTrace", threadId=1)
    client.event("progressEnd")
    assert client.event("breakpoint")["breakpoint"]["verified"]
    assert client.event("stopped")["reason"] == "breakpoint"
    assert printed(client, "stdout") == "broke\n"
    assert (client.top()["source"]["path"], client.top()["line"]) == (str(script), 6)
    assert client.ask("threads")["threads"][0]["name"].startswith("0/0 step")
    stages = []
    for _ in range(12):
        client.move("stepIn")
        stages.append(client.stack()[0]["source"]["name"])
        if stages[-1].endswith(".cpp"):
            break
    assert stages[:2] == ["script.py", "0/0 dynamo-graph.py"]  # the instruction that made the node, then the node
    assert stages[-1].startswith("0/0 kernel/cpp_fused_")
    assert {"0/0 inference-graph.py", "0/0 post-grad-graph.py", "0/0 output-code.py"} <= set(stages)
    stack = client.stack()
    assert len(stack) >= 7
    functions = [(frame["name"].partition(":")[0], frame["line"]) for frame in stack[-2:]]
    assert functions == [("block", 6), ("step", 11)]
    assert stack[-2]["endColumn"] > stack[-2]["column"] > 1
    assert client.evaluate("kernel.language") == "cpp"
    # The breakpoint stops in every stage; the graph break is a stop of its own.
    client.ask("setBreakpoints", source={"path": str(script)}, breakpoints=[])
    stop = client.move("reverseContinue")
    assert stop["reason"] == "exception"
    assert client.top()["line"] == 12
    assert client.ask("exceptionInfo", threadId=1)["details"]["typeName"] == "graph-break"
    # At the instruction, with what was on Dynamo's stack.
    assert client.evaluate("stack[-1].value") == "'broke'"
    assert client.evaluate("y.shape") == "(2) [4, 16]"
    assert client.evaluate("step.outcome") == "graph-break"
    client.ask("terminate")
    assert client.event("exited")["exitCode"] == 0
    client.event("terminated")
    assert client.disconnect() == 0
    assert client.stray == b""
    with Client() as again:
        launch(again, script, args=["--fast"])
        assert again.event("stopped")["reason"] == "entry"
        assert "Replaying run " in printed(again, "console") and printed(again, "stdout") == ""
    script.write_text("import torch\nprint('other')\n")
    with Client() as other:
        launch(other, script, args=["--fast"])
        other.event("output", lambda body: "other" in body["output"])


@pytest.mark.nightly
def test_a_replayed_run_is_run_by_a_restart_and_by_other_arguments(client: Client, tmp_path: Path) -> None:
    script = write(tmp_path, COMPILED)
    launch(client, script)
    client.event("stopped")
    client.ask("terminate")
    with Client() as again:
        launch(again, script)
        again.event("output", lambda body: "Replaying run" in body["output"])
        again.event("stopped")
        again.ask("restart")
        again.event("output", lambda body: "broke" in body["output"])
        again.ask("terminate")
    with Client() as other:
        launch(other, script, args=["--slow"])
        other.event("output", lambda body: "broke" in body["output"])
        assert "Replaying" not in printed(other, "console")
        other.ask("terminate")


def test_a_script_that_compiles_nothing_ends_the_session(client: Client, tmp_path: Path) -> None:
    """Its output, in pieces on both streams, is output of the session and never part of the protocol."""
    source = """
    import os, sys
    print("Content-Length: 3\\r\\n\\r\\nout", os.environ["IRSCOPE_X"], sys.argv[1:], os.getcwd())
    print("err", file=sys.stderr)
    os.write(1, b"raw\\n")
    sys.exit(3)
    """
    (tmp_path / "work").mkdir()
    script = write(tmp_path, source)
    launch(client, script, env={"IRSCOPE_X": "yes", "GONE": None}, args=["a b", "--c"], cwd=str(tmp_path / "work"))
    assert client.event("exited")["exitCode"] == 3
    client.event("terminated")
    out = printed(client, "stdout").replace("\r", "")
    assert "out yes ['a b', '--c'] " + os.path.realpath(tmp_path / "work") in out
    assert out.endswith("raw\n")
    assert "err\n" in printed(client, "stderr")
    assert "Nothing was compiled" in printed(client, "important")
    assert client.stray == b""
    assert client.disconnect() == 0


def test_output_is_bounded(client: Client, tmp_path: Path) -> None:
    launch(client, write(tmp_path, "for _ in range(60): print('x' * 200_000)"))
    client.event("terminated")
    assert 4_000_000 < len(printed(client, "stdout")) <= 4 * 1024 * 1024
    assert "the rest is not shown here" in printed(client, "console")


@pytest.mark.parametrize("how", ["terminate", "disconnect", "cancel", "end of input", "signal"])
def test_a_script_that_runs_forever_is_stopped(client: Client, tmp_path: Path, how: str) -> None:
    source = f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nprint('up', flush=True)\ntime.sleep(600)"
    launch(client, write(tmp_path, source))
    client.event("output", lambda body: "up" in body["output"])
    assert "can be stopped (terminate), but not paused" in client.refused("pause", threadId=1)
    assert client.ask("threads") == {"threads": []}
    began = Instant()
    if how == "terminate":
        client.ask("terminate")
        client.event("terminated")
    elif how == "cancel":
        progress = next(event["body"]["progressId"] for event in client.events if event["event"] == "progressStart")
        client.ask("cancel", progressId=progress)
        client.event("terminated")
    if how == "end of input":
        assert client.process.stdin
        client.process.stdin.close()
        assert client.process.wait(60) == 0
    elif how == "signal":
        client.process.terminate()
        assert client.process.wait(60) == 0
    else:
        assert client.disconnect() == 0
    assert passed_at_this_load(began) < 10
    assert ends(
        int((tmp_path / "pid").read_text()), 2.0
    )  # its parent may be gone before it, and then another one waits for it


def test_a_restart_runs_the_script_again(client: Client, tmp_path: Path) -> None:
    launch(client, write(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(600)"))
    client.event("output", lambda body: "up" in body["output"])
    (tmp_path / "script.py").write_text("print('again')")
    client.ask("restart")
    client.event("output", lambda body: "again" in body["output"])
    client.event("terminated")


def test_run_without_debugging(client: Client, tmp_path: Path) -> None:
    launch(client, write(tmp_path, "print('ran')"), noDebug=True)
    client.event("terminated")
    assert printed(client, "stdout") == "ran\n"
    assert not [event for event in client.events if event["event"] == "stopped"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"program": "none.py"}, "File not found"),
        ({"program": ""}, "must be the path of a Python script"),
        ({}, "'program' is missing"),
        ({"program": __file__, "cwd": "/no/such"}, "Working folder not found"),
        ({"program": __file__, "pipeline": "other"}, "Unknown pipeline: 'other'. Known: inductor"),
        ({"program": __file__, "stopOn": "rain"}, "'stopOn' must be of"),
        ({"program": __file__, "args": "x"}, "'args' must be a list"),
        ({"program": __file__, "env": {"A=": "1"}}, "names of variables"),
        ({"program": __file__, "budgetSeconds": -1}, "a number of seconds"),
        ({"program": "a\0b"}, "must be the path"),
    ],
)
def test_what_cannot_be_launched_is_said(client: Client, arguments: dict[str, object], says: str) -> None:
    client.initialize()
    assert says in client.refused("launch", **arguments)
    client.refused("launch", program="still.py")  # the session waits for another try


def test_an_interpreter_that_is_none_ends_the_session_with_a_reason(client: Client, tmp_path: Path) -> None:
    launch(client, write(tmp_path, "print(1)"), python="/bin/true")
    client.event("terminated")
    assert "/bin/true is not a Python that irscope can use" in printed(client, "stderr")


TWICE = """\
import os, time
import torch


@torch.compile
def first(x):
    return torch.relu(x) * 2


@torch.compile
def second(x):
    return x.sin() + 1


first(torch.ones(4, 8))
for _ in range(2000):
    if os.path.exists("go"):
        break
    time.sleep(0.05)
second(torch.ones(4, 8))
"""


SKIPPED_FIRST = """\
import torch


def skipped(x):
    for _ in range(2):
        torch._dynamo.graph_break()
        x = first(x)
    return x


"""


def test_a_session_begins_at_a_function_that_gets_no_graph(client: Client, tmp_path: Path) -> None:
    text = SKIPPED_FIRST + TWICE.replace("first(torch", "torch.compile(skipped)(torch")
    launch(client, write(tmp_path, text), cwd=str(tmp_path), stopOn="entry")
    assert client.event("stopped")["reason"] == "entry"
    assert "The script still runs" in printed(client, "console")
    assert client.top()["name"] == "skipped"


def test_a_session_begins_while_the_script_runs_and_gets_what_comes_later(client: Client, tmp_path: Path) -> None:
    script = write(tmp_path, TWICE)
    launch(client, script, cwd=str(tmp_path), stopOn="entry")
    assert client.event("stopped")["reason"] == "entry"
    assert "The script still runs" in printed(client, "console")
    assert [thread["name"] for thread in client.ask("threads")["threads"]] == ["0/0 first (script.py:5)"]
    assert client.move("next")["reason"] == "step"
    line = client.top()["line"]
    while not (stop := client.move("continue"))["description"].startswith("The end"):
        pass
    assert stop["description"] == "The end of the run so far: the script still runs"
    (tmp_path / "go").touch()
    client.event("progressEnd")
    client.move("stepBack")
    assert [thread["name"] for thread in client.ask("threads")["threads"]] == [
        "0/0 first (script.py:5)",
        "1/0 second (script.py:10)",
    ]
    assert line == 7
    assert client.move("continue", thread=2)["description"] == "The end of the run"
    client.ask("continue", threadId=2)
    assert client.event("exited")["exitCode"] == 0
