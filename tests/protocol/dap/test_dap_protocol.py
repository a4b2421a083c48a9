"""The protocol itself: every request is answered or refused, and nothing that a client sends ends the adapter."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dap_client import ADAPTER, Client
from dap_runs import small_run, traced_run
from dap_schema import problem_of
from irscope.vocabulary.visible import without_links
from irscope_server.dap.protocol.wire import encode

# Debug Adapter Protocol 1.71, all requests.
SPECIFICATION = [
    "attach",
    "breakpointLocations",
    "cancel",
    "completions",
    "configurationDone",
    "continue",
    "dataBreakpointInfo",
    "disassemble",
    "disconnect",
    "evaluate",
    "exceptionInfo",
    "goto",
    "gotoTargets",
    "initialize",
    "launch",
    "loadedSources",
    "locations",
    "modules",
    "next",
    "pause",
    "readMemory",
    "restart",
    "restartFrame",
    "reverseContinue",
    "runInTerminal",
    "scopes",
    "setBreakpoints",
    "setDataBreakpoints",
    "setExceptionBreakpoints",
    "setExpression",
    "setFunctionBreakpoints",
    "setInstructionBreakpoints",
    "setVariable",
    "source",
    "stackTrace",
    "startDebugging",
    "stepBack",
    "stepIn",
    "stepInTargets",
    "stepOut",
    "terminate",
    "terminateThreads",
    "threads",
    "variables",
    "writeMemory",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("dap")
    small_run(path / "runs.db", path)
    return str(path / "runs.db")


def alive(client: Client) -> bool:
    return client.refused("readMemory") != ""


def test_every_request_of_the_specification_is_answered_or_refused(client: Client, store: str) -> None:
    """What is announced works or says what is wrong with the message; the rest says why it cannot be."""
    from irscope_server.dap.protocol.serve import make_session

    session, _ = make_session(lambda message: None, lambda work: None)
    answered = session.commands()
    capabilities = client.initialize()
    client.ask("attach", store=store)
    client.ask("configurationDone")
    client.event("stopped")
    for command in [each for each in SPECIFICATION if each not in answered]:
        response = client.answer(client.send(command, {}))
        assert not response["success"]
        assert response["body"]["error"]["id"] == 4, f"{command} must be refused with a reason"
        assert "does not know" not in response["message"]
    for command in sorted(answered - {"disconnect", "terminate"}):
        response = client.answer(client.send(command, {}))
        assert response["success"] or response["body"]["error"]["id"] in (2, 3), response
    assert "Unknown request" in client.refused("fly")
    announced = {
        "supportsStepBack": "stepBack", "supportsRestartFrame": "restartFrame", "supportsGotoTargetsRequest": "goto",
        "supportsStepInTargetsRequest": "stepInTargets", "supportsCompletionsRequest": "completions",
        "supportsModulesRequest": "modules", "supportsSetVariable": "setVariable", "supportsSetExpression": "setExpression",
        "supportsRestartRequest": "restart", "supportsExceptionInfoRequest": "exceptionInfo",
        "supportsTerminateRequest": "terminate", "supportsLoadedSourcesRequest": "loadedSources",
        "supportsDataBreakpoints": "setDataBreakpoints", "supportsReadMemoryRequest": "readMemory",
        "supportsWriteMemoryRequest": "writeMemory", "supportsDisassembleRequest": "disassemble",
        "supportsCancelRequest": "cancel", "supportsBreakpointLocationsRequest": "breakpointLocations",
        "supportsInstructionBreakpoints": "setInstructionBreakpoints",
        "supportsFunctionBreakpoints": "setFunctionBreakpoints", "supportsTerminateThreadsRequest": "terminateThreads",
    }  # fmt: skip
    assert {name: capabilities.get(name, False) for name in announced} == {
        name: command in answered for name, command in announced.items()
    }


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (b"Content-Length: 7\r\n\r\nnot jso", "could not be read"),
        (b"Content-Length: 2\r\n\r\n[]", "must be a JSON object"),
        (b"Content-Length: 4\r\n\r\nnull", "must be a JSON object"),
        (b"Content-Length: 4\r\n\r\n\xff\xfe\xff\xfe", "could not be read"),
        (b"nonsense\r\n\r\nContent-Length: 2\r\n\r\n{}", "needs type 'request'"),
        (b"Content-Length: 99999999999\r\n\r\n", "could not be read"),
        (b"Content-Length: 20000\r\n\r\n" + b"[" * 20_000, "could not be read"),
        (b'Content-Length: 22\r\n\r\n{"seq":,"type":"other"', "could not be read"),
        (b'content-length:40\r\nX: y\r\n\r\n{"seq":"1","type":"request","command":7}', "needs type 'request'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_broken_message_is_answered_and_the_next_one_is_read(client: Client, broken: bytes, says: str) -> None:
    client.write(broken)
    response = client.answer(0)
    assert not response["success"]
    assert says in response["message"]
    assert response["body"]["error"]["id"] == 2
    assert alive(client)


@pytest.mark.parametrize(
    "body",
    [
        rb'{"seq": 77, "type": "request", "command": "threads\ud800", "arguments": {"\ud800": "\udfff"}}',
        b'{"seq": 77, "type": "request", "command": "threads\xed\xa0\x80"}',
        b'{"seq": 77, "type": "request", "command": "threads\xff"}',
        b'{"seq": 77, "type": "request", "command": "threads", "arguments": ' + b"[" * 20_000,
        b'{"seq": 77, "type": "request", "command": "threads", "arguments": {"a": ' + b"9" * 5000 + b"}}",
        b'{"seq": 77, "type": "request", "command": "threads"',
    ],
    ids=lambda body: repr(body)[:70],
)
def test_a_request_that_cannot_be_read_is_refused_by_its_number(client: Client, body: bytes) -> None:
    client.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert not client.answer(77)["success"]
    assert alive(client)


def test_requests_out_of_order_are_refused_and_harm_nothing(client: Client, store: str) -> None:
    assert "before initialize" in client.refused("attach", store=store)
    assert "before initialize" in client.refused("setBreakpoints")
    client.ask("cancel")
    client.initialize()
    assert "before launch or attach" in client.refused("threads")
    assert "before launch or attach" in client.refused("initialize")
    client.ask("configurationDone")  # some clients send it before they attach
    assert "already" in client.refused("configurationDone")
    client.ask("attach", store=store)
    client.event("stopped")
    assert "no longer possible" in client.refused("attach", store=store)
    assert "no longer possible" in client.refused("launch", program="x.py")
    assert "Unknown thread: 9" in client.refused("next", threadId=9)
    client.ask("terminate")
    client.event("terminated")
    assert "after its end" in client.refused("stackTrace", threadId=1)
    assert client.disconnect() == 0


WRONG: list[tuple[str, Any, str]] = [
    ("next", {}, "'threadId' is missing"),
    ("next", {"threadId": "1"}, "'threadId' must be an integer, not a string"),
    ("next", {"threadId": True}, "'threadId' must be an integer"),
    ("next", {"threadId": 1.5}, "'threadId' must be an integer"),
    ("next", {"threadId": 1, "granularity": "mile"}, "'granularity' must be"),
    ("next", [], "'arguments' must be an object"),
    ("stackTrace", {"threadId": 1, "levels": -1}, "'levels' must be from 0"),
    ("stackTrace", {"threadId": 10**30}, "'threadId' must be from"),
    ("variables", {"variablesReference": 4711}, "Unknown variablesReference: 4711"),
    ("variables", {"variablesReference": 1, "filter": "odd"}, "'filter' must be"),
    ("source", {"sourceReference": 999}, "Unknown sourceReference: 999"),
    ("source", {}, "'sourceReference' is missing"),
    ("setBreakpoints", {"breakpoints": []}, "needs a path or a sourceReference"),
    ("setBreakpoints", {"source": {"path": "/x"}, "breakpoints": {}}, "'breakpoints' must be a list"),
    ("setBreakpoints", {"source": {"path": "/x"}, "breakpoints": [7]}, "'breakpoints[]' must be an object"),
    ("setBreakpoints", {"source": {"path": "/x"}, "breakpoints": [{}]}, "'line' is missing"),
    ("setExceptionBreakpoints", {"filters": [1]}, "'filters' must hold strings"),
    ("disassemble", {"memoryReference": "zz", "instructionCount": 3}, "not a memory reference"),
    ("disassemble", {"memoryReference": "0x1", "instructionCount": 10**9}, "'instructionCount' must be from"),
    ("stepIn", {"threadId": 1, "targetId": 77}, "Unknown target: 77"),
    ("goto", {"threadId": 1, "targetId": 77}, "Unknown target: 77"),
    ("evaluate", {}, "'expression' is missing"),
    ("scopes", {"frameId": 5}, "Unknown frame: 5"),
]


def test_a_wrong_argument_is_named(client: Client, store: str) -> None:
    client.attach(store)
    for command, arguments, says in WRONG:
        response = client.answer(client.send(command, arguments))
        assert says in response["message"], (command, arguments)
        assert response["body"]["error"]["id"] == 2
    assert client.move("next")["reason"] == "step"


# Other seeds send messages of the same sort.
@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 14), marks=pytest.mark.nightly)])
def test_thousands_of_random_messages(store: str, tmp_path: Path, seeds: range) -> None:
    """Seeded, sessions that are stopped: each request is answered, none by a defect of ours.  Every other one begins in a
    symbolic trace."""
    traced_run(tmp_path / "runs.db", tmp_path)
    worked: set[str] = set()
    for seed in seeds:
        with Client() as client:
            worked |= _random_messages(client, random.Random(seed), str(tmp_path / "runs.db") if seed % 2 else store)
    assert len(worked) >= 27, f"the random messages reach too little: {sorted(worked)}"


def _random_messages(client: Client, rng: random.Random, store: str) -> set[str]:
    """Sends a thousand and returns the commands of those that succeeded."""
    commands = [each for each in SPECIFICATION if each not in ("disconnect", "terminate")] + ["", "fly", "__init__"]
    client.attach(store)
    client.move("stepIn")
    source = client.ask("loadedSources")["sources"][rng.randrange(11)]
    whole: set[int] = set()
    for number in range(1_000_000, 1_001_000):
        command: Any = rng.choice(commands)
        if command == "continue" and rng.random() < 0.8:
            command = "reverseContinue"  # the second one at the end of the run ends the session
        arguments = _plausible(rng, source) if rng.random() < 0.6 else _arguments(rng)
        if number % 10 == 0:
            command, arguments = _about_a_frame(client, rng, command, arguments)
        message = {"seq": number, "type": "request", "command": command, "arguments": arguments}
        if rng.random() < 0.05:
            message[rng.choice(list(message))] = _value(rng)
        else:
            whole.add(number)
        client.send_raw(message)
        if number % 50 == 49:
            client.answer(client.send("readMemory"))  # does not let the pipes fill up
    assert alive(client)
    answers = {number: client.answer(number) for number in whole}
    assert [each["message"] for each in answers.values() if "irscope failed" in each.get("message", "")] == []
    assert [event for event in client.events if "irscope failed" in str(event.get("body"))] == []
    assert b"Traceback" not in client.stderr
    assert client.stray == b""
    assert client.disconnect() == 0
    return {each["command"] for each in answers.values() if each["success"]}


def _about_a_frame(client: Client, rng: random.Random, command: str, arguments: Any) -> tuple[str, Any]:
    """A request on a frame or a variable that is there right now, as long as the session is stopped."""
    response = client.answer(client.send("stackTrace", {"threadId": 1}))
    if not response["success"]:
        return command, arguments
    frame = rng.choice(response["body"]["stackFrames"])["id"]
    scopes = client.ask("scopes", frameId=frame)["scopes"]
    reference = rng.choice(scopes)["variablesReference"] if scopes else 1
    command = rng.choice(["scopes", "variables", "evaluate", "stepInTargets", "restartFrame", "completions"])
    more = {"frameId": frame, "variablesReference": reference, "expression": rng.choice(["stage.name", "node", "x("])}
    return command, {**more, "text": "no", "column": 2, "start": rng.randrange(3), "count": rng.randrange(3)}


def _plausible(rng: random.Random, source: Any) -> Any:
    """Arguments that fit many requests."""
    return {
        "threadId": rng.choice([1, 1, 1, 2]), "frameId": rng.randrange(60), "variablesReference": rng.randrange(60),
        "source": source, "line": rng.randrange(14), "expression": rng.choice(["node", "users > 1", "stage.name", "help"]),
        "text": rng.choice(["no", "stage.", "x"]), "column": rng.randrange(6), "targetId": rng.randrange(20),
        "sourceReference": source.get("sourceReference", 1), "memoryReference": hex(rng.choice([1, 2]) << 32),
        "instructionCount": rng.randrange(20), "breakpoints": [{"line": rng.randrange(14)}] * rng.randrange(3),
    }  # fmt: skip


_NAMES = [
    "threadId",
    "frameId",
    "variablesReference",
    "levels",
    "startFrame",
    "start",
    "count",
    "filter",
    "line",
    "endLine",
    "source",
    "sourceReference",
    "path",
    "breakpoints",
    "lines",
    "name",
    "condition",
    "hitCondition",
    "logMessage",
    "filters",
    "filterOptions",
    "filterId",
    "expression",
    "context",
    "targetId",
    "granularity",
    "singleThread",
    "memoryReference",
    "instructionOffset",
    "instructionCount",
    "offset",
    "text",
    "column",
    "requestId",
    "store",
    "program",
    "args",
    "env",
    "python",
    "stopOn",
    "target",
    "arguments",
    "instructionReference",
    "adapterData",
    "stage",
    "file",
]


def _arguments(rng: random.Random) -> Any:
    if rng.random() < 0.05:
        return _value(rng)
    names = rng.sample(_NAMES, rng.randrange(8))
    return {**{name: _value(rng) for name in names}, **({"threadId": rng.choice([1, 2])} if rng.random() < 0.7 else {})}


def _value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(11 if depth < 3 else 8)
    if kind < 3:
        return rng.choice([0, 1, 2, 3, 5, 11, -1, 2**31, 2**53, 10**40, 1.5, 0x1_0000_0000])
    if kind < 6:
        return rng.choice(
            ["", "node.dtype == torch.float32", "users > 1", "stack[-1]", "locals", "step.ended", "instruction", "aten.*", "0x100000001", "a\0b", "é\ud800", "line", "[",
             "{node.name}", "graph-break", "/x.py", "% 2", "node", "((((", "repl", "named", "*" * 999]
        )  # fmt: skip
    if kind < 8:
        return rng.choice([True, False, None])
    if kind == 8:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(_NAMES): _value(rng, depth + 1) for _ in range(rng.randrange(4))}


def test_random_bytes_end_it_cleanly_or_not_at_all(store: str) -> None:
    rng = random.Random(7)
    with Client() as client:
        for _ in range(200):
            client.write(rng.randbytes(rng.randrange(1, 200)) + b"\r\n\r\n")
        client.write(b"\r\nContent-Length: 2\r\n\r\n[]")
        assert "must be a JSON object" in client.answer(0)["message"]
        assert alive(client)


def test_the_end_of_the_input_ends_it() -> None:
    done = subprocess.run(ADAPTER, input=b"", capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    half = subprocess.run(ADAPTER, input=b"Content-Length: 100\r\n\r\n{", capture_output=True, timeout=30)
    assert (half.returncode, half.stdout) == (0, b"")


def test_a_client_that_closes_its_end_does_no_harm(store: str) -> None:
    with Client() as client:
        client.attach(store)
        assert client.process.stdout
        assert client.process.stdin
        client.send("continue", {"threadId": 1})
        client.process.stdin.close()
        assert client.process.wait(60) == 0


def test_requests_that_were_taken_back(client: Client, store: str) -> None:
    """The one that is not begun is answered as cancelled; the session goes on."""
    client.attach(store)
    taken = 500
    client.send_raw({"seq": 400, "type": "request", "command": "cancel", "arguments": {"requestId": taken}})
    client.send_raw({"seq": taken, "type": "request", "command": "threads"})
    response = client.answer(taken)
    assert (response["success"], response["message"]) == (False, "cancelled")
    assert client.answer(400)["success"]
    assert client.ask("threads")["threads"]


def test_pause_where_nothing_runs(client: Client, store: str) -> None:
    """What is stopped does not stop again."""
    client.attach(store)
    client.ask("pause", threadId=1)
    client.ask("threads")
    assert client.move("next")["reason"] == "step"
    assert [event["event"] for event in client.events].count("stopped") == 2


def test_the_schema_is_looked_at() -> None:
    told = {"seq": 1, "type": "event", "event": "stopped", "body": {"reason": "step", "threadId": 1}}
    assert problem_of(told) == ""
    assert "'one' is not of type 'integer'" in problem_of({**told, "body": {"reason": "step", "threadId": "one"}})
    answer = {"seq": 1, "type": "response", "request_seq": 2, "command": "threads", "success": True, "body": {}}
    assert "'threads' is a required property" in problem_of(answer, "threads")


@pytest.mark.parametrize("python", ["/no/such/python", "no-such-python"])
def test_a_launch_without_an_interpreter_fails(client: Client, tmp_path: Path, python: str) -> None:
    script = tmp_path / "script.py"
    script.write_text("")
    client.initialize()
    assert f"No Python interpreter at {python}" in client.refused("launch", program=str(script), python=python)


def test_what_a_script_named_turns_no_text() -> None:
    """What is shown is written out; what leads somewhere, and what the script prints, stays as it is."""
    evil = "f\u202e\x1b[2J"
    frame = {"name": evil, "source": {"name": evil, "path": evil}, "line": 1}
    written = json.loads(encode({"type": "response", "body": {"stackFrames": [frame]}}).partition(b"\r\n\r\n")[2])
    shown = r"f\u202e\u001b[2J"
    assert written["body"]["stackFrames"] == [{"name": shown, "source": {"name": shown, "path": evil}, "line": 1}]
    printed = {"type": "event", "event": "output", "body": {"category": "stdout", "output": evil}}
    assert json.loads(encode(printed).partition(b"\r\n\r\n")[2]) == printed
    assert without_links("[x](command:quit)\u202e") == r"[x] (command:quit)\u202e"


def test_the_command_line() -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*ADAPTER, *words], capture_output=True, text=True, timeout=30)

    assert "usage: irscope-dap" in run("--help").stdout
    assert run("--version").stdout.startswith("irscope-dap ")
    assert run("--fly").returncode == 2


def test_it_needs_nothing_but_the_standard_library(store: str) -> None:
    """In an interpreter that sees no installed package a whole session goes on."""
    root = Path(__file__).parents[3]
    folders = [str(root / "server"), str(root / "compiler")]
    code = f"import sys; sys.path[:0] = {folders!r}; from irscope_server.dap.__main__ import main; main([])"
    with Client([sys.executable, "-I", "-S", "-c", code]) as client:
        assert client.attach(store)["reason"] == "entry"
        client.move("stepIn")
        client.scopes()
        assert client.disconnect() == 0
