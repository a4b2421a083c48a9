"""A small client of the Debug Adapter Protocol: a process, a reader thread, and methods that wait.

It holds each message of the adapter's against the protocol's schema.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from dap_schema import problem_of
from server_forks import DEBUG_ADAPTER, ServerFork, fork_of

ADAPTER = [sys.executable, "-m", "irscope_server.dap"]
WAIT_SECONDS = 120.0

Message = dict[str, Any]


def _start(command: list[str], env: Mapping[str, str]) -> subprocess.Popen[bytes] | ServerFork:
    if command == ADAPTER and (forked := fork_of(DEBUG_ADAPTER, env)):
        return forked
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


class Client:
    """Starts an adapter and speaks to it; ``with`` ends it."""

    def __init__(self, command: list[str] = ADAPTER, env: Mapping[str, str] | None = None) -> None:
        self.process = _start(command, {**os.environ, **(env or {})})
        self.stray = b""
        """What stood on standard output and was no protocol."""
        self.events: list[Message] = []
        self.stderr = b""
        self._arrived: queue.Queue[Message | None] = queue.Queue()
        self._answers: dict[int, Message] = {}
        self._waiting: list[Message] = []
        self._seq = itertools.count(1)
        self._commands: dict[int, str] = {}
        for work in (self._read, self._drain):
            threading.Thread(target=work, daemon=True).start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout
        while header := self.process.stdout.readline():
            if match := re.match(rb"Content-Length: (\d+)\r\n", header):
                self.process.stdout.readline()
                self._arrived.put(json.loads(self.process.stdout.read(int(match[1]))))
            else:
                self.stray += header
        self._arrived.put(None)

    def _drain(self) -> None:
        assert self.process.stderr
        while piece := self.process.stderr.read1(65536):  # type: ignore[attr-defined]
            self.stderr = (self.stderr + piece)[-100_000:]

    # --- speaking -----------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_raw(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def send(self, command: str, arguments: Any = None, **more: Any) -> int:
        seq = next(self._seq)
        self._commands[seq] = command
        self.send_raw({"seq": seq, "type": "request", "command": command, "arguments": arguments, **more})
        return seq

    def answer(self, seq: int) -> Message:
        """The whole response to a request."""
        while seq not in self._answers:
            self._take(time.monotonic() + WAIT_SECONDS)
        return self._answers.pop(seq)

    def ask(self, command: str, **arguments: Any) -> Message:
        """The body of the answer; the request has to succeed."""
        response = self.answer(self.send(command, arguments))
        assert response["success"], response
        assert response["command"] == command
        return response.get("body") or {}

    def refused(self, command: str, **arguments: Any) -> str:
        """The sentence of a request that has to fail."""
        response = self.answer(self.send(command, arguments))
        assert not response["success"], response
        error = response["body"]["error"]
        assert error["variables"]["sentence"] == response["message"]
        return str(response["message"])

    def event(self, name: str, fits: Callable[[Message], bool] = lambda body: True) -> Message:
        """The body of the next event of a name that fits; each is given once."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            for message in self._waiting:
                if message["event"] == name and fits(message.get("body") or {}):
                    self._waiting.remove(message)
                    return message.get("body") or {}
            self._take(deadline)

    def _take(self, deadline: float) -> None:
        message = self._arrived.get(timeout=max(0.01, deadline - time.monotonic()))
        assert message is not None, f"the adapter has ended: {self.stderr.decode(errors='replace')[-2000:]}"
        problem = problem_of(message, self._commands.get(message.get("request_seq", 0), ""))
        assert not problem, f"{problem} in {str(message)[:2000]}"
        if message["type"] == "response":
            self._answers[message["request_seq"]] = message
        else:
            self.events.append(message)
            self._waiting.append(message)

    # --- sessions -----------------------------------------------------------------------------------------------------

    def initialize(self, **arguments: Any) -> Message:
        body = self.ask("initialize", adapterID="irscope", **arguments)
        self.event("initialized")
        return body

    def attach(self, store: str, *, filters: list[str] | None = None, **arguments: Any) -> Message:
        """Initializes, attaches to the newest run and waits for the first stop; its body."""
        self.initialize()
        self.ask("attach", store=store, **arguments)
        self.ask("setExceptionBreakpoints", filters=filters or [])
        self.ask("configurationDone")
        return self.event("stopped")

    def move(self, command: str, thread: int = 1, **arguments: Any) -> Message:
        """A step or a search, and the stop that it leads to."""
        self.ask(command, threadId=thread, **arguments)
        return self.event("stopped")

    def stack(self, thread: int = 1) -> list[Message]:
        return list(self.ask("stackTrace", threadId=thread)["stackFrames"])

    def top(self, thread: int = 1) -> Message:
        return dict(self.ask("stackTrace", threadId=thread, levels=1)["stackFrames"][0])

    def evaluate(self, expression: str, thread: int = 1, context: str = "watch") -> str:
        frame = self.top(thread)["id"]
        return str(self.ask("evaluate", expression=expression, frameId=frame, context=context)["result"])

    def variables(self, reference: int, **page: Any) -> list[Message]:
        return list(self.ask("variables", variablesReference=reference, **page)["variables"])

    def scopes(self, thread: int = 1) -> dict[str, Message]:
        return {scope["name"]: scope for scope in self.ask("scopes", frameId=self.top(thread)["id"])["scopes"]}

    def disconnect(self) -> int:
        """Says goodbye; the process's exit code."""
        self.ask("disconnect")
        return self.process.wait(60)


def where(client: Client, thread: int = 1) -> tuple[str, int]:
    """Stage (or file) and line of the top frame."""
    top = client.top(thread)
    return top["source"]["name"].removeprefix("0/0 "), top["line"]


def until_stage(client: Client, name: str, line: int) -> None:
    """Goes to a line of a stage."""
    source = next(each for each in client.ask("loadedSources")["sources"] if each["name"] == f"0/0 {name}")
    targets = client.ask("gotoTargets", source=source, line=line)["targets"]
    client.ask("goto", threadId=1, targetId=targets[0]["id"])
    assert client.event("stopped")["reason"] == "goto"
