"""What a line became, as `irscope mcp` says it: from the data of `irscope show --line`, not from its sentences."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from irscope_server.agents.answers import ToolFailure
from irscope_server.agents.scripts import _became
from irscope_server.agents.tools import Tools
from irscope_server.agents.trails import trail

NOTHING = "Nothing in this run came from this line."
NODE = {"name": "mul", "target": "aten.mul", "detail": "f32[4]"}
GRAPH = {
    "stage": "0/0/post-grad-graph",
    "name": "post-grad-graph",
    "nodes": [NODE],
    "places": [{"name": "mul", "fate": NOTHING}],
}
CODE = {"stage": "0/0/output-code-backward", "name": "output-code", "nodes": [], "places": [{"name": "12", "fate": ""}]}
TEXT = {
    "stage": "0/0/kernel/k",
    "name": "kernel",
    "nodes": [],
    "places": [{"name": str(line), "fate": ""} for line in range(20)],
}


class Answering:
    """In place of `Commands`: what `irscope show --line --json` says."""

    def __init__(self, *steps: dict[str, Any], kernels: tuple[str, ...] = ()) -> None:
        self._steps, self._kernels = steps, kernels

    async def read_json(self, *words: str) -> Any:
        made = [{"name": name, "language": "cpp", "stage": f"0/0/kernel/{name}"} for name in self._kernels]
        return {
            "run": "r1",
            "file": "/a.py",
            "line": 3,
            "text": "y = x * 2",
            "steps": list(self._steps),
            "kernels": made,
        }


def line(commands: Any) -> str:
    return asyncio.run(Tools(commands).line("a.py:3")).text


def test_kernels_are_first_and_output_code_is_left_out() -> None:
    assert line(Answering(GRAPH, CODE, kernels=("k", "k"))).split("\n") == [
        "/a.py:3  y = x * 2",
        "  kernel k  cpp, 0/0/kernel/k",
        "  0/0/post-grad-graph",
        f"    mul = aten.mul  f32[4]  → {NOTHING}",
    ]


def test_lines_of_a_text_are_bounded() -> None:
    assert line(Answering(TEXT)).split("\n")[2:] == [f"    lines {', '.join(map(str, range(12)))}", "    … and 8 more"]


@pytest.mark.parametrize("steps", [(), (CODE,)])
def test_nothing_came_from_a_line(steps: tuple[dict[str, Any], ...]) -> None:
    commands: Any = Answering(*steps)
    assert asyncio.run(trail(commands, "a.py:3")).is_empty
    with pytest.raises(ToolFailure, match=r"Nothing in run r1 came from a\.py:3"):
        line(commands)
    assert asyncio.run(_became(commands, "r1", "a.py:3")) == []


def test_words_of_a_program_are_not_taken_for_that() -> None:
    commands: Any = Answering(GRAPH)
    assert not asyncio.run(trail(commands, "a.py:3")).is_empty
    assert asyncio.run(_became(commands, "r1", "a.py:3"))[-1].endswith(NOTHING)
