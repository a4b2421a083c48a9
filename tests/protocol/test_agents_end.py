"""What a tool of `irscope mcp` has started ends with its call, and with the server, however that ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from light_torch import ENDLESS, at_work, light_torch
from raw import RawAgent
from support import ends, write

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


@pytest.mark.parametrize("tool", TOOLS)
def test_a_script_ends_with_a_server_that_is_killed(agent: RawAgent, tool: str, tmp_path: Path) -> None:
    agent.call(1, tool, **CALLS[tool])
    pids = at_work(tmp_path)
    agent.process.kill()
    agent.process.wait()
    assert all(ends(pid, 10) for pid in pids)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_script_ends_with_its_call(agent: RawAgent, tool: str, tmp_path: Path) -> None:
    agent.call(1, tool, **CALLS[tool])
    pids = at_work(tmp_path)
    agent.notify("notifications/cancelled", {"requestId": 1})
    assert all(ends(pid, 10) for pid in pids)
    assert agent.ask(2, "ping")["result"] == {}
    assert agent.process.stdin and agent.process.stderr
    agent.process.stdin.close()
    assert agent.wait() == 0
    # On a machine that is busy the library may say that its last write took longer than a second.
    assert b"Traceback" not in agent.process.stderr.read()
