"""Requests for the debug adapter: valid ones by the protocol's schema, spoiled ones, and broken frames."""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from dap_client import ADAPTER
from dap_runs import traced_run
from dap_schema import problem_of, schema
from garble import Garbler
from judge import Judge, nothing_left, until
from raw import Raw

# They end the adapter, or the session; a life ends with one of them.
_LAST = ("terminate", "disconnect")
_BATCH = 8
_LIFE_SECONDS = 5.0
_LEARNED = {
    "variablesReference": "variablesReference", "id": "frameId", "sourceReference": "sourceReference", "path": "path",
    "name": "name", "evaluateName": "expression", "dataId": "dataId", "instructionReference": "instructionReference",
    "memoryReference": "memoryReference", "instructionPointerReference": "instructionReference", "moduleId": "moduleId",
}  # fmt: skip
_TARGETS = {"gotoTargets": "targetId", "stepInTargets": "targetId"}


def fuzz(seconds: float, random: Random, folder: Path) -> int:
    """Sends requests for so long, to one adapter after the other; returns how many.  Raises FuzzError."""
    sent, over = 0, until(seconds)
    for life in itertools.count():
        sent += _life(random, folder / str(life))
        if over():
            return sent
    raise AssertionError


def _life(random: Random, folder: Path) -> int:
    """One adapter, from its start to its end."""
    temporary, store = folder / "temporary", folder / "runs.db"
    temporary.mkdir(parents=True)
    model = traced_run(store, folder)
    script = folder / "script.py"
    script.write_text("print('x')\n")
    garbler = Garbler(random, _known(model, str(script), str(store)))
    env = {**os.environ, "IRSCOPE_FUZZ": str(folder), "TMPDIR": str(temporary), "IRSCOPE_STORE": str(store)}
    with (folder / "log").open("wb") as log:
        raw = Raw(ADAPTER, stderr=log, env=env)
        try:
            judge = Judge(raw.process.pid, folder)
            for number, (command, arguments) in enumerate(_beginning(random, str(store), str(script))):
                raw.write(_frame(_request(number, command, arguments)))
            sent = _speak(raw, garbler, judge, until(_LIFE_SECONDS))
            for command in _LAST[random.randrange(2) :]:
                raw.write(_frame(_request(9, command, {})))
            raw.wait(10)
        finally:
            raw.close()
    Judge(0, folder).said((folder / "log").read_text(errors="replace"))
    nothing_left(f"IRSCOPE_FUZZ={folder}", temporary)
    return sent


def _known(*files: str) -> dict[str, list[Any]]:
    return {
        "path": [*files], "threadId": [1, 1, 2], "frameId": [1, 2, 3], "variablesReference": [1, 2, 3], "line": [*range(30)],
        "count": [0, 1, 20], "start": [0, 1, 20], "instructionCount": [1, 20, 1000], "instructionOffset": [-20, 0, 20],
        "context": ["watch", "hover", "repl", "clipboard"], "granularity": ["statement", "line", "instruction"],
        "expression": ["x", "y.shape", "dtype", "1 + 1", "h @ w", "(" * 200, "'" * 99, "x[" * 50, "9**9**9", "'a' * 10**9"],
        "filters": ["graph-break", "recompilation"], "bytes": [0, 16, 10**6],
    }  # fmt: skip


def _beginning(random: Random, store: str, script: str) -> list[tuple[str, dict[str, Any]]]:
    """Of a session that looks at a stored run, mostly; else of one that runs a script."""
    if random.random() < 0.9:
        begin = ("attach", {"store": store, "stopOn": random.choice(["entry", "stage", "pass"])})
    else:
        begin = ("launch", {"program": script, "store": store, "python": sys.executable})
    return [("initialize", {"adapterID": "irscope"}), begin, ("configurationDone", {})]


def _speak(raw: Raw, garbler: Garbler, judge: Judge, over: Callable[[], bool]) -> int:
    sent = 10
    commands: dict[int, str] = {}
    while not over():
        for _ in range(_BATCH):
            command = garbler.random.choice(_commands())
            arguments = garbler.of_schema(
                schema()["definitions"].get(_arguments_of(command), {}), schema()["definitions"]
            )
            share = garbler.random.choice((0.0, 0.0, 0.02, 0.1))
            message: Any = _request(sent, command, arguments)
            message = garbler.spoiled(message, share) if share else message
            data = _broken(garbler, judge, message)
            judge.note(data)
            raw.write(data)
            if not share:
                commands[sent] = command
            sent += 1
        asked = judge.asks()
        raw.write(_frame(_request(sent, "threads", {})))
        raw.until(lambda message, seq=sent: message.get("request_seq") == seq and message["command"] == "threads")  # type: ignore[misc]
        judge.answered(asked)
        sent += 1
        _look_at(raw.seen, commands, garbler, judge)
        raw.seen.clear()
        if judge.owed:  # one after the other, so that those before the last are answered
            judge.fail(f"no answer to {[*judge.owed.values()][:10]}")
    return sent


def _look_at(messages: list[dict[str, Any]], commands: dict[int, str], garbler: Garbler, judge: Judge) -> None:
    """What came holds what the schema says, and tells what can be asked for."""
    for message in messages:
        judge.answers(message.get("request_seq"))
        command = commands.get(message.get("request_seq", -1), "")
        if message["type"] == "event" or command == message.get("command"):
            if problem := problem_of(message, command):
                judge.fail(f"{problem} in {str(message)[:1000]}")
        body = message.get("body")
        garbler.learn(body, _LEARNED)
        if command in _TARGETS and isinstance(body, dict):
            garbler.learn(body.get("targets"), {"id": _TARGETS[command]})


def _request(seq: int, command: str, arguments: Any) -> dict[str, Any]:
    return {"seq": seq, "type": "request", "command": command, "arguments": arguments}


def _frame(message: Any) -> bytes:
    body = json.dumps(message).encode("utf-8", "surrogatepass")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _broken(garbler: Garbler, judge: Judge, message: Any) -> bytes:
    """The frame of a message, sometimes with a body that is no JSON."""
    body = json.dumps(message).encode("utf-8", "surrogatepass")
    if not garbler.random.randrange(40):
        body = garbler.scratched(body)
    judge.owes(body, "seq")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


@functools.cache
def _commands() -> list[str]:
    names = [name for name in schema()["definitions"] if name.endswith("Request") and name != "Request"]
    found = [name[:1].lower() + name[1:].removesuffix("Request") for name in names]
    return [name for name in found if name not in _LAST]


def _arguments_of(command: str) -> str:
    return f"{command[:1].upper()}{command[1:]}Arguments"
