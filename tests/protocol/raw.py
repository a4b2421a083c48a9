"""A server process spoken to in bytes: what no well-behaved client sends."""

from __future__ import annotations

import contextlib
import json
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irscope.system.processes import resident_bytes
from lsp_editor import SERVER
from server_forks import LANGUAGE_SERVER, fork_of
from support import Instant, late


class Raw:
    """Starts a server, without a command a fork (see `server_forks`), and reads what it sends in a thread."""

    def __init__(self, command: list[str] | None = None, **popen: Any) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        forked = None if command else fork_of(LANGUAGE_SERVER)
        self.process = forked or subprocess.Popen(command or SERVER, **{**pipes, **popen})
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.seen: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(ValueError):  # closed meanwhile
            self._read_all()

    def _read_all(self) -> None:
        assert self.process.stdout
        while header := self.process.stdout.readline():
            if match := re.match(rb"Content-Length: (\d+)", header):
                while self.process.stdout.readline().strip():
                    pass
                self.messages.put(json.loads(self.process.stdout.read(int(match[1]))))
        self.messages.put(None)

    def frame(self, body: bytes) -> bytes:
        """A message as it is sent."""
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.write(self.frame(json.dumps(message).encode()))

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, id: Any, method: str, params: Any = None) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.answer(id)

    def answer(self, id: Any) -> dict[str, Any]:
        return self.until(lambda message: "method" not in message and message.get("id") == id)

    def past_answer(self, id: Any) -> dict[str, Any]:
        """As `answer`; it may have been read already."""
        seen = (message for message in self.seen if "method" not in message and message.get("id") == id)
        return next(seen, None) or self.answer(id)

    def memory(self) -> int:
        """Bytes that the server holds (RSS)."""
        return resident_bytes([self.process.pid])

    def until(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = 60.0) -> dict[str, Any]:
        """The next message that fits; the server's own requests are answered with nothing."""
        begun = Instant()
        while True:
            try:
                message = self.messages.get(timeout=1.0)
            except queue.Empty:
                assert not late(begun, seconds), "the server does not say it"
                continue
            assert message is not None, "the server has ended"
            self.seen.append(message)
            if "method" in message and "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
            if wanted(message):
                return message

    def initialize(self, **params: Any) -> dict[str, Any]:
        result = self.ask(0, "initialize", {"processId": None, "rootUri": None, "capabilities": {}, **params})
        self.notify("initialized", {})
        return result

    def open(self, uri: str, text: str) -> None:
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def wait(self, seconds: float = 60.0) -> int:
        begun = Instant()
        while True:
            try:
                return self.process.wait(1.0)
            except subprocess.TimeoutExpired:
                if late(begun, seconds):
                    raise

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


class RawAgent(Raw):
    """`irscope mcp`, which has a message a line."""

    def __init__(self, store: Path, *options: str, **popen: Any) -> None:
        super().__init__([sys.executable, "-m", "irscope", "mcp", f"--store={store}", *options], **popen)

    def frame(self, body: bytes) -> bytes:
        """A message as it is sent; it has no line break."""
        return body + b"\n"

    def _read_all(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def begin(self) -> None:
        """The handshake."""
        client = {"name": "test", "version": "1"}
        self.ask("begin", "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.notify("notifications/initialized", {})

    def call(self, id: Any, tool: str, **arguments: Any) -> None:
        """Sends a call of a tool."""
        self.send(
            {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        )
