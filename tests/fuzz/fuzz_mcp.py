"""Calls for `irscope mcp`, which may not run code: valid ones by the tools' schemas, spoiled ones, and broken lines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from dap_runs import traced_run
from garble import Garbler
from judge import Judge, nothing_left, until
from raw import RawAgent

_OTHERS = (
    "ping",
    "tools/list",
    "resources/list",
    "resources/read",
    "completion/complete",
    "logging/setLevel",
    "initialize",
)
_MOST_SECONDS = 30.0
"""Of a batch: each call is a command in its own process."""


def fuzz(seconds: float, random: Random, folder: Path) -> int:
    """Sends calls for so long to one server; returns how many.  Raises FuzzError."""
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    model = traced_run(folder / "runs.db", folder)
    garbler = Garbler(
        random, {"place": [f"{model}:{line}" for line in range(9)], "stage": ["0/0/forward-graph"], "run": [""]}
    )
    env = {**os.environ, "IRSCOPE_FUZZ": str(folder), "TMPDIR": str(temporary)}
    with (folder / "log").open("wb") as log:
        raw = RawAgent(folder / "runs.db", cwd=folder, stderr=log, env=env)
        try:
            raw.begin()
            tools = raw.ask("tools", "tools/list")["result"]["tools"]
            sent = _speak(raw, tools, garbler, Judge(raw.process.pid, folder), until(seconds))
            assert raw.process.stdin
            raw.process.stdin.close()
            raw.wait(10)
        finally:
            raw.close()
    nothing_left(f"IRSCOPE_FUZZ={folder}", temporary)
    return sent


def _speak(raw: RawAgent, tools: list[Any], garbler: Garbler, judge: Judge, ends: Callable[[], bool]) -> int:
    sent = 0
    while not ends():
        for _ in range(4):
            body = json.dumps(_message(tools, garbler, sent)).encode("utf-8", "surrogatepass")
            if not garbler.random.randrange(20):
                body = garbler.scratched(body).replace(b"\n", b" ")
            judge.owes(body)
            judge.note(body)
            raw.write(raw.frame(body))
            sent += 1
        asked = judge.asks()
        raw.ask(f"after {sent}", "ping")
        judge.answered(asked)
        while judge.owed:
            for message in raw.seen:
                judge.answers(message.get("id"))
            raw.seen.clear()
            if judge.owed and asked.over(_MOST_SECONDS):
                judge.fail(f"no answer to {[*judge.owed.values()][:10]}")
            time.sleep(0.02)
            raw.ask("again", "ping")
    return sent


def _message(tools: list[Any], garbler: Garbler, number: int) -> Any:
    id: Any = garbler.random.choice((number, number, number, f"\ud800{number}"))
    if garbler.random.randrange(4):
        tool = garbler.random.choice(tools)
        method, params = "tools/call", {"name": tool["name"], "arguments": garbler.of_schema(tool["inputSchema"], {})}
    else:
        method, params = garbler.random.choice(_OTHERS), garbler.anything()
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    share = garbler.random.choice((0.0, 0.02, 0.1))
    return garbler.spoiled(message, share) if share else message
