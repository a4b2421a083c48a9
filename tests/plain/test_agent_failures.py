"""What `irscope mcp` says of a run that could not start, or was stopped."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from irscope_server.agents.answers import ToolFailure
from irscope_server.agents.commands import Commands
from irscope_server.agents.tools import Tools

REPORT: dict[str, Any] = {
    "run": "r1", "script": "a.py", "torch": None, "outcome": {"kind": "budget", "message": "Stopped after 2 s."}, "findings": [],
    "compiles": [], "kernels": [], "ranks": [], "capture_gaps": [], "predictions": [], "predicted_kernels": [],
}  # fmt: skip


class Stopped(Commands):
    """Whose commands say that the run was stopped."""

    async def _output(self, words: Sequence[str], seconds: float, codes: Sequence[int]) -> tuple[str, str, int]:
        return json.dumps(REPORT), "", 0


def test_a_run_that_cannot_start_says_why_and_not_its_report(tmp_path: Path) -> None:
    commands = Commands(str(tmp_path / "runs.db"), sys.executable, allow_run=True)
    missing = str(tmp_path / "missing.py")
    with pytest.raises(ToolFailure) as failure:
        asyncio.run(Tools(commands).run(script=missing))
    said = str(failure.value).split("\n")
    assert said[0] == "irscope run failed, exit code 3."
    assert said[2:-1] == [f"File not found: {missing}."]


def test_a_run_that_a_limit_stopped_says_how_to_raise_it(tmp_path: Path) -> None:
    commands = Stopped(str(tmp_path / "runs.db"), sys.executable, allow_run=True)
    answer = asyncio.run(Tools(commands).run(script="a.py", seconds=2))
    assert "seconds=..." in answer.note and "Stopped after 2 s." in answer.text
