"""How fast the language server is ready, how big it is, and how soon it answers while torch compiles.

    python benchmarks/server.py [--rounds 5] [SCRIPT]

Each round starts a new server, times it to its answer to `initialize`, opens a script, starts a deep run of it and
asks for hovers and lenses until the run has ended.  Then a thousand keystrokes are typed, with a hover and the lenses
after each, while deep runs go on one after the other.  Beside it, in the same round, a server with nothing but pygls in
it is timed to the same answer.  Printed are the medians over the rounds.  The bounds are those of the issue; where
one is missed the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = """\
import torch


@torch.compile
def step(x, w1, w2):
    h = torch.nn.functional.gelu(x @ w1)
    if h.sum() > 1e9:
        print("large")
    return torch.softmax(h @ w2, dim=-1).sum()


for size in (16, 24, 32):
    w1 = torch.randn(size, 64, requires_grad=True)
    w2 = torch.randn(64, size, requires_grad=True)
    step(torch.randn(8, size), w1, w2).backward()
"""

PEER = """\
from lsprotocol import types
from pygls.lsp.server import LanguageServer
server = LanguageServer("peer", "1")
@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params: types.HoverParams): return None
server.start_io()
"""

KEYSTROKES = 1000
REST_SECONDS = 35
BOUNDS = {
    "ready, s": 0.5,
    "resident, MB": 80.0,
    "hover p99, ms": 50.0,
    "lens p99, ms": 50.0,
    "typing p99, ms": 50.0,
    "typing, slowest, ms": 100.0,
}


class Client:
    """The least that speaks to a server: a thread that keeps the time at which each answer came."""

    def __init__(self, command: list[str]) -> None:
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._answers: dict[int, tuple[float, dict[str, Any]]] = {}
        self._arrived = threading.Condition()
        self._last = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        while header := self.process.stdout.readline():
            if match := re.match(rb"Content-Length: (\d+)", header):
                while self.process.stdout.readline().strip():
                    pass
                body = self.process.stdout.read(int(match[1]))
                now = time.perf_counter()
                message = json.loads(body)
                if "method" in message:
                    self.heard(now, message)
                else:
                    with self._arrived:
                        self._answers[message["id"]] = (now, message)
                        self._arrived.notify_all()

    def heard(self, now: float, message: dict[str, Any]) -> None:
        """Called for what the server says by itself."""

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def request(self, method: str, params: Any) -> int:
        self._last += 1
        self.send({"id": self._last, "method": method, "params": params})
        return self._last

    def answered(self, request: int) -> bool:
        return request in self._answers

    def answer(self, request: int) -> tuple[float, dict[str, Any]]:
        """When it came, and what it is."""
        with self._arrived:
            self._arrived.wait_for(lambda: request in self._answers, timeout=600)
            return self._answers[request]

    def timed(self, method: str, params: Any) -> float:
        """Seconds from the request to its answer."""
        begun = time.perf_counter()
        ended, message = self.answer(self.request(method, params))
        assert "error" not in message, message
        return ended - begun

    def initialize(self, options: dict[str, Any]) -> float:
        """Seconds from the start of the process to the answer."""
        params = {"processId": os.getpid(), "rootUri": None, "capabilities": {}, "initializationOptions": options}
        ended, _ = self.answer(self.request("initialize", params))
        self.send({"method": "initialized", "params": {}})
        return ended - self.begun

    def close(self) -> None:
        self.answer(self.request("shutdown", None))
        self.send({"method": "exit"})
        self.process.wait(10)

    def resident(self) -> float:
        """Megabytes of memory of the server's process alone, when it has been idle for a while."""
        time.sleep(REST_SECONDS)
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1000  # type: ignore[index]


@dataclass(frozen=True)
class Round:
    ready: float
    peer: float
    resident: float
    hovers: list[float]
    lenses: list[float]
    typing: list[float]
    """Hovers and lenses after a keystroke each."""
    compile: float


def one_round(script: Path, folder: Path) -> Round:
    peer = Client([sys.executable, "-c", PEER])
    peer_ready = peer.initialize({})
    peer.close()
    server = Client([sys.executable, "-m", "irscope_server"])
    ready = server.initialize({"storePath": str(folder / "runs.db"), "run": {"onSave": "off", "budgetSeconds": 0}})
    uri, text = script.as_uri(), script.read_text()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    server.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
    lines = text.split("\n")
    line = next((number for number, written in enumerate(lines) if written.startswith("def ")), 0)
    begun = time.perf_counter()
    run = server.request("irscope/run", {"uri": uri, "lane": "deep"})
    hovers, lenses = [], []
    while not server.answered(run):
        position = {"line": line, "character": 5}
        hovers.append(server.timed("textDocument/hover", {"textDocument": {"uri": uri}, "position": position}))
        lenses.append(server.timed("textDocument/codeLens", {"textDocument": {"uri": uri}}))
        time.sleep(0.02)
    compile = server.answer(run)[0] - begun
    _, message = server.answer(run)
    assert message["result"]["outcome"] == "completed", message
    typing = type_keys(server, uri, text, line)
    for method in ("irscope/stagesOf", "irscope/runs"):
        server.timed(method, {"uri": uri})
    resident = server.resident()
    server.close()
    return Round(ready, peer_ready, resident, hovers, lenses, typing, compile)


def type_keys(server: Client, uri: str, text: str, line: int) -> list[float]:
    """Seconds that hovers and lenses take while a comment is typed and deep runs go on."""
    document, seconds = {"uri": uri}, []
    run = server.request("irscope/run", {"uri": uri, "lane": "deep"})
    for number in range(KEYSTROKES):
        if server.answered(run):
            run = server.request("irscope/run", {"uri": uri, "lane": "deep"})
        typed = f"# {'typing ' * 10}"[: 1 + number % 70] + "\n" + text
        change = {"textDocument": {**document, "version": number + 2}, "contentChanges": [{"text": typed}]}
        server.send({"method": "textDocument/didChange", "params": change})
        position = {"line": line + 1, "character": 5}
        seconds.append(server.timed("textDocument/hover", {"textDocument": document, "position": position}))
        seconds.append(server.timed("textDocument/codeLens", {"textDocument": document}))
        time.sleep(0.01)
    server.send({"method": "textDocument/didChange", "params": {**change, "contentChanges": [{"text": text}]}})
    server.answer(run)
    return seconds


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = arguments.script.resolve() if arguments.script else folder / "script.py"
        if not arguments.script:
            script.write_text(SCRIPT)
        for number in range(arguments.rounds):
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / f"inductor-{number}")  # so that it really compiles
            rounds.append(one_round(script, folder))
            print(
                f"round {number + 1}: compiled for {rounds[-1].compile:.1f} s, {len(rounds[-1].hovers)} hovers",
                file=sys.stderr,
            )

    def median(figure: Any) -> float:
        return float(statistics.median(figure(entry) for entry in rounds))

    figures = {
        "ready, s": median(lambda entry: entry.ready),
        "ready of bare pygls, s": median(lambda entry: entry.peer),
        "ready, ratio to bare pygls": median(lambda entry: entry.ready / entry.peer),
        "resident, MB": median(lambda entry: entry.resident),
        "hover p50, ms": median(lambda entry: 1000 * percentile(entry.hovers, 0.5)),
        "hover p99, ms": median(lambda entry: 1000 * percentile(entry.hovers, 0.99)),
        "lens p50, ms": median(lambda entry: 1000 * percentile(entry.lenses, 0.5)),
        "lens p99, ms": median(lambda entry: 1000 * percentile(entry.lenses, 0.99)),
        "typing p50, ms": median(lambda entry: 1000 * percentile(entry.typing, 0.5)),
        "typing p99, ms": median(lambda entry: 1000 * percentile(entry.typing, 0.99)),
        "typing, slowest, ms": median(lambda entry: 1000 * max(entry.typing)),
    }
    missed = 0
    for name, value in figures.items():
        bound = BOUNDS.get(name)
        verdict = "" if bound is None else f"  (bound {bound:g}: {'kept' if value <= bound else 'MISSED'})"
        missed += bound is not None and value > bound
        print(f"{name:28} {value:8.2f}{verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
