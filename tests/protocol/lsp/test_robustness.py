"""What must not kill the server, what must end it at once, and that nothing it started lives on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lsp_editor import PLAYING_SERVER, SERVER
from made import SCRIPT
from raw import Raw
from support import Instant, ends, late, passed_at_this_load


@pytest.fixture
def start_raw(tmp_path: Path, store_path: str) -> Iterator[Callable[..., Raw]]:
    started: list[Raw] = []

    def start(command: list[str] | None = None, **popen: Any) -> Raw:
        raw = Raw(command, **popen)
        started.append(raw)
        return raw

    yield start
    for raw in started:
        raw.close()


def _alive(raw: Raw, id: int = 99) -> bool:
    return bool(raw.ask(id, "irscope/cancel", {"uri": "file:///x.py"})["result"] == {"cancelled": False})


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (b"Content-Length: 7\r\n\r\nnot jso", -32700),
        (b"Content-Length: 2\r\n\r\n[]", -32600),
        (b"Content-Length: 4\r\n\r\nnull", -32600),
        (b'Content-Length: 17\r\n\r\n{"jsonrpc":"1.0"}', -32600),
        (b"Content-Length: 4\r\n\r\n\xff\xfe\xff\xfe", -32700),
        (b"content-length:7\r\nX: y\r\n\r\nnot jso", -32700),
        (b"nonsense\r\n\r\nContent-Length: 2\r\n\r\n[]", -32600),
        (
            b"Content-Length: 2\r\n\r\n[] and a body that was longer than its header saidContent-Length: 2\r\n\r\n[]",
            -32600,
        ),
        (b"Content-Length: 99999999999\r\n\r\n", -32700),
    ],
    ids=str,
)
def test_a_broken_message_is_answered_and_the_next_one_is_read(
    start_raw: Callable[..., Raw], broken: bytes, code: int
) -> None:
    raw = start_raw()
    raw.initialize()
    raw.write(broken)
    assert raw.until(lambda message: "error" in message)["error"]["code"] == code
    assert _alive(raw)


@pytest.mark.parametrize(
    ("request_", "id"),
    [
        (
            rb'{"jsonrpc": "2.0", "id": "\ud800", "method": "textDocument/hover\udfff", "params": {"\ud800": 1}}',
            "\ud800",
        ),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "irscope/run", "params": ' + b"[" * 100_000, 5),
        (
            b'{"jsonrpc": "2.0", "id": 5, "method": "irscope/run", "params": {"uri": '
            + b"[" * 480
            + b"]" * 480
            + b"}}",
            5,
        ),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "irscope/run", "params": {"uri": ' + b"9" * 5000 + b"}}", 5),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "irscope/run", "params": {"uri": "\xff"}}', 5),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "irscope/run", "error": {}}', 5),
        (b'{"jsonrpc": "2.0", "id": 5}', 5),
        (b'{"jsonrpc": "2.0", "id": null, "method": "irscope/run"}', None),
        (b'{"jsonrpc": "2.0", "id": true, "method": "irscope/run"}', None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_request_that_cannot_be_read_is_refused(start_raw: Callable[..., Raw], request_: bytes, id: object) -> None:
    raw = start_raw()
    raw.initialize()
    raw.write(raw.frame(request_))
    assert "error" in raw.answer(id)
    assert _alive(raw)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("textDocument/hover", {"textDocument": 3}, -32602),
        ("textDocument/hover", None, -32602),
        ("textDocument/codeLens", {}, -32602),
        ("irscope/run", {"lane": "fast"}, -32602),
        ("textDocument/nothing", {}, -32601),
        ("workspace/executeCommand", {"command": "irscope.server.run", "arguments": []}, -32602),
        ("workspace/executeCommand", {"command": "irscope.server.run", "arguments": [{"uri": 3}]}, -32803),
        ("workspace/executeCommand", {"command": "none"}, -32602),
        ("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, -32600),
    ],
)
def test_every_request_is_answered(start_raw: Callable[..., Raw], method: str, params: Any, code: int) -> None:
    raw = start_raw()
    raw.initialize()
    assert raw.ask(1, method, params)["error"]["code"] == code
    assert _alive(raw)


def test_requests_out_of_order(start_raw: Callable[..., Raw]) -> None:
    raw = start_raw(SERVER)
    assert raw.ask(1, "textDocument/hover", {})["error"]["code"] == -32002
    raw.initialize()
    assert raw.ask(2, "shutdown")["result"] is None
    assert raw.ask(3, "textDocument/hover", {})["error"]["code"] == -32600
    raw.notify("exit")
    assert raw.wait() == 0


def test_a_long_text_in_place_of_a_list_is_passed_over_at_once(start_raw: Callable[..., Raw]) -> None:
    raw = start_raw(SERVER)
    raw.initialize()
    before = raw.memory()
    for _ in range(3):
        raw.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": "a" * 100_000, "removed": []}})
    begun = Instant()
    assert _alive(raw)
    assert passed_at_this_load(begun) < 2
    assert raw.memory() - before < 50_000_000


def test_many_searches_for_what_runs_a_file_in_the_root(start_raw: Callable[..., Raw]) -> None:
    """All of the file system is its folder: a part is looked through, once, and others are answered meanwhile."""
    raw = start_raw()
    raw.initialize()
    asked = range(100, 130)
    for id in asked:
        raw.send(
            {"jsonrpc": "2.0", "id": id, "method": "irscope/entries", "params": {"uri": "file:///no_such_file.py"}}
        )
    begun = Instant()
    assert _alive(raw)
    assert passed_at_this_load(begun) < 2
    assert {id for id in asked if "result" in raw.past_answer(id)} == set(asked)
    assert not late(begun, 60)


def test_odd_notifications(start_raw: Callable[..., Raw]) -> None:
    raw = start_raw()
    raw.notify("textDocument/didOpen", {})
    raw.initialize()
    for method, params in (
        ("textDocument/didSave", {"textDocument": {"uri": "file:///never/opened.py"}}),
        ("textDocument/didClose", {"textDocument": {"uri": "file:///never/opened.py"}}),
        (
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///never/opened.py", "version": 1}, "contentChanges": [{"text": "x"}]},
        ),
        ("textDocument/didOpen", {"textDocument": 7}),
        ("$/cancelRequest", {"id": 12345}),
        ("$/cancelRequest", None),
        ("$/cancelRequest", [1]),
        ("$/cancelRequest", {"id": {}}),
        ("$/unknown", {}),
        ("window/workDoneProgress/cancel", {"token": "none"}),
        ("workspace/didChangeConfiguration", {"settings": [1]}),
        ("irscope/trusted", None),
        (7, None),
    ):
        raw.notify(method, params)  # type: ignore[arg-type]
    raw.send({"jsonrpc": "2.0", "id": {}, "method": "textDocument/hover", "params": {}})
    raw.send({"jsonrpc": "2.0", "id": "nobody asked", "result": 3})
    raw.send({"jsonrpc": "2.0", "id": "nobody asked", "error": {"code": 1, "message": "x"}})
    assert _alive(raw)


def test_exit_without_shutdown_is_an_error(start_raw: Callable[..., Raw]) -> None:
    raw = start_raw(SERVER)
    raw.initialize()
    raw.notify("exit")
    assert raw.wait() == 1


SLEEPER = '''\
"""Stands in for a Python with a script in it: sleeps, with a child of its own."""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open({pids!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(600)
'''


@pytest.fixture
def sleeping_python(tmp_path: Path) -> tuple[Path, Path]:
    """An interpreter whose runs never end, and the file into which it writes its process ids."""
    pids = tmp_path / "pids"
    program = tmp_path / "sleeper.py"
    program.write_text(SLEEPER.format(pids=str(pids)))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "{program}"\n')
    python.chmod(0o755)
    return python, pids


@pytest.mark.parametrize("way", ["exit", "end of stdin", "SIGTERM"])
def test_the_end_of_the_server_is_the_end_of_its_runs(
    start_raw: Callable[..., Raw], sleeping_python: tuple[Path, Path], tmp_path: Path, store_path: str, way: str
) -> None:
    python, pids = sleeping_python
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    raw = start_raw(SERVER)
    raw.initialize(initializationOptions={"python": str(python), "storePath": store_path})
    raw.open(script.as_uri(), SCRIPT)
    begun = Instant()
    while not (pids.exists() and len(pids.read_text().split()) == 2):
        assert not late(begun, 20)
        time.sleep(0.02)
    begun = Instant()
    if way == "exit":
        raw.ask(1, "shutdown")
        raw.notify("exit")
    elif way == "SIGTERM":
        raw.process.send_signal(signal.SIGTERM)
    else:
        assert raw.process.stdin
        raw.process.stdin.close()
    raw.wait()
    assert passed_at_this_load(begun) < 3
    for pid in map(int, pids.read_text().split()):
        assert ends(pid, 2.0), f"process {pid} lives on"


def test_prints_in_the_server_do_not_reach_the_protocol(start_raw: Callable[..., Raw], tmp_path: Path) -> None:
    chatty = tmp_path / "chatty.py"
    chatty.write_text(
        "import os, threading\n"
        "from irscope_server.app import serve; from irscope_server.language import hovers\n"
        "async def hover(*arguments):\n"
        "    print('a print'); os.system('echo a child'); os.write(1, b'a write')\n"
        "    print(repr(__import__('sys').stdin.read()))\n"
        "import irscope_server.app.features as features\n"
        "features.hover_at = hover\n"
        "serve.serve_stdio()\n"
    )
    raw = start_raw([sys.executable, str(chatty)])
    raw.initialize()
    params = {"textDocument": {"uri": "file:///x.py"}, "position": {"line": 0, "character": 0}}
    assert raw.ask(1, "textDocument/hover", params)["result"] is None
    raw.notify("exit")
    raw.wait()
    assert raw.process.stderr
    printed = raw.process.stderr.read().decode()
    assert all(piece in printed for piece in ("a print", "a child", "a write", "''"))


def test_a_client_that_never_answers(start_raw: Callable[..., Raw], play: Any, tmp_path: Path, store_path: str) -> None:
    """No answer to the configuration, to the progress, to the refresh: the run goes on all the same."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    path = play({"outcome": "crashed", "message": "x"})
    raw = start_raw(PLAYING_SERVER, env={**os.environ, "IRSCOPE_TEST_PLAY": str(path)})
    raw.send(
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "processId": None,
                "rootUri": None,
                "initializationOptions": {"storePath": store_path},
                "capabilities": {
                    "workspace": {"configuration": True, "codeLens": {"refreshSupport": True}},
                    "window": {"workDoneProgress": True},
                },
            },
        }
    )
    raw.notify("initialized", {})
    raw.open(script.as_uri(), SCRIPT)
    while True:
        message = raw.messages.get(timeout=60)
        assert message is not None
        if message.get("method") == "textDocument/publishDiagnostics":
            assert message["params"]["diagnostics"][0]["code"] == "crashed"
            return


def test_a_client_that_hangs_up_while_a_run_tells(
    start_raw: Callable[..., Raw], play: Any, tmp_path: Path, store_path: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    path = play({"seconds": 60, "prints": [["stdout", "x"]]})
    raw = start_raw(PLAYING_SERVER, env={**os.environ, "IRSCOPE_TEST_PLAY": str(path)})
    raw.initialize(initializationOptions={"storePath": store_path})
    raw.open(script.as_uri(), SCRIPT)
    raw.until(lambda message: message.get("method") == "irscope/output")
    assert raw.process.stdin and raw.process.stdout
    raw.process.stdin.close()
    assert raw.wait() == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, "usage: irscope-server"),
        (["--version"], 0, "irscope-server 0."),
        (["--wrong"], 2, "unknown argument: --wrong"),
    ],
)
def test_the_command_line(arguments: list[str], code: int, said: str) -> None:
    done = subprocess.run([*SERVER, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == code and said in done.stdout + done.stderr
