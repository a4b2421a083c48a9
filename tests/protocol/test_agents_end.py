"""What a tool of `irscope mcp` has started ends with its call, and with the server, however that ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from light_torch import light_torch
from raw import RawAgent
from support import Instant, ends, late, write

ENDLESS = """
import os, time
import torch

if os.fork() == 0:  # one that leaves its session and its parent
    os.setsid()
    if os.fork():
        os._exit(0)
with open("pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
while True:
    time.sleep(0.05)
"""
CALLS: dict[str, dict[str, Any]] = {
    "run": {"script": "endless.py", "lane": "fast"},
    "values": {"script": "endless.py"},
    "profile": {"script": "endless.py"},
    "try_fix": {"script": "endless.py"},
    "debug": {"program": "endless.py", "script": True, "breakpoints": ["endless.py:4 if False"]},
}
"""Each as good as the others for what a command has started; `debug` starts a debugger."""
_FEW = ("run", "debug")
TOOLS = [pytest.param(tool, marks=() if tool in _FEW else pytest.mark.nightly) for tool in CALLS]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[RawAgent]:
    write(tmp_path, ENDLESS, "endless.py")
    env = {**os.environ, **light_torch(tmp_path / "light")}
    started = RawAgent(tmp_path / "runs.db", "--allow-run", cwd=tmp_path, env=env)
    started.begin()
    yield started
    started.close()


def _at_work(folder: Path) -> list[int]:
    """The script's process and its daemon, when both run."""
    begun = Instant()
    while True:
        pids = (folder / "pids").read_text().split() if (folder / "pids").exists() else []
        if len(pids) == 2:
            return [int(pid) for pid in pids]
        assert not late(begun, 60), "the script has not begun"
        time.sleep(0.02)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_script_ends_with_a_server_that_is_killed(agent: RawAgent, tool: str, tmp_path: Path) -> None:
    agent.call(1, tool, **CALLS[tool])
    pids = _at_work(tmp_path)
    agent.process.kill()
    agent.process.wait()
    assert all(ends(pid, 10) for pid in pids)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_script_ends_with_its_call(agent: RawAgent, tool: str, tmp_path: Path) -> None:
    agent.call(1, tool, **CALLS[tool])
    pids = _at_work(tmp_path)
    agent.notify("notifications/cancelled", {"requestId": 1})
    assert all(ends(pid, 10) for pid in pids)
    assert agent.ask(2, "ping")["result"] == {}
    assert agent.process.stdin and agent.process.stderr
    agent.process.stdin.close()
    assert agent.wait() == 0
    assert agent.process.stderr.read() == b""
