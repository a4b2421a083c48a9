"""Breakpoints within a line, on a run of a real script: each expression of a line and each input of a graph has its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dap_client import Client
from support import run_forked, write

SCRIPT = """\
import torch

def half(v):
    return v.exp() / 2

@torch.compile
def f(x, w):
    ä = "wide"; y = half(x).sum(-1) + (x @ w).relu().sum(-1)  # @here
    return y

f(torch.ones(4, 8), torch.ones(8, 6))
"""
LINE = SCRIPT.split("\n").index(next(line for line in SCRIPT.split("\n") if "@here" in line)) + 1
TEXT = SCRIPT.split("\n")[LINE - 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("columns")
    ran = run_forked(write(path, SCRIPT), path / "runs.db", "deep")
    assert ran.report.outcome.exit_code == 0
    return path


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with Client() as started:
        started.attach(str(folder / "runs.db"))
        yield started


def source(folder: Path) -> dict[str, Any]:
    return {"path": str(folder / "script.py")}


def stops(client: Client) -> list[str]:
    """What stands at each stop until the run ends."""
    client.ask("setExceptionBreakpoints", filters=[])
    seen: list[str] = []
    while True:
        stopped = client.move("continue")
        if stopped["reason"] != "breakpoint":
            return seen
        seen.append(client.top()["name"])


def test_each_expression_of_a_line_has_a_column(client: Client, folder: Path) -> None:
    found = client.ask("breakpointLocations", source=source(folder), line=LINE)["breakpoints"]
    columns = [each["column"] for each in found]
    assert {each["line"] for each in found} == {LINE}
    expected = [TEXT.index(word) + 1 for word in ("half(", "sum(", "+ (", "@ w", "relu", "sum(-1)  #")]
    assert columns == expected
    assert [TEXT[each["column"] - 1 : each["endColumn"] - 1] for each in found] == [
        "half(x)", "sum(-1)", "+ (x @ w).relu().sum(-1)", "@ w", "relu()", "sum(-1)",
    ]  # fmt: skip
    narrowed = client.ask(
        "breakpointLocations", source=source(folder), line=LINE, column=expected[2], endLine=LINE, endColumn=expected[3]
    )
    assert [each["column"] for each in narrowed["breakpoints"]] == expected[2:4]


@pytest.mark.parametrize(("word", "node"), [("@ w", "matmul"), ("relu", "relu"), ("+ (", "add"), ("half(", "exp")])
def test_a_breakpoint_stops_at_what_came_from_its_expression_alone(
    client: Client, folder: Path, word: str, node: str
) -> None:
    column = TEXT.index(word) + 1
    [answer] = client.ask("setBreakpoints", source=source(folder), breakpoints=[{"line": LINE, "column": column + 1}])[
        "breakpoints"
    ]
    assert (answer["verified"], answer["line"], answer["column"]) == (True, LINE, column)
    seen = stops(client)
    nodes = [name for name in seen if " = " in name or "%" in name]
    assert nodes, seen
    others = {"matmul": "relu", "relu": "exp", "add": "matmul", "exp": "relu"}[node]
    graph = [name for name in seen if "Dynamo graph" in name]
    assert graph and all(others not in name for name in graph), seen
    assert any(node in name or {"matmul": "@"}.get(node, node) in name for name in graph), seen
    whole = client.ask("setBreakpoints", source=source(folder), breakpoints=[{"line": LINE}])["breakpoints"]
    assert "column" not in whole[0]


def test_conditions_counts_and_logs_work_with_columns(client: Client, folder: Path) -> None:
    columns = [TEXT.index(word) + 1 for word in ("@ w", "relu")]
    first, second = (
        {"line": LINE, "column": columns[0], "condition": "node.dtype == torch.float32", "hitCondition": "== 1"},
        {"line": LINE, "column": columns[1], "logMessage": "{node.name} at {line}"},
    )
    client.ask("setBreakpoints", source=source(folder), breakpoints=[first, second])
    seen = stops(client)
    assert len(seen) == 1
    said = client.event("output", lambda body: body["output"].startswith("relu"))["output"]
    assert said.startswith("relu at ")


def test_inputs_on_one_line_of_a_graph(client: Client) -> None:
    graph = next(
        each
        for each in client.ask("loadedSources")["sources"]
        if each.get("adapterData", {}).get("stage") == "0/0/dynamo-graph"
    )
    text = client.ask("source", source=graph, sourceReference=graph["sourceReference"])["content"].split("\n")
    line = next(number for number, each in enumerate(text, 1) if "def forward(self" in each)
    found = client.ask("breakpointLocations", source=graph, line=line)["breakpoints"]
    columns = [each["column"] for each in found]
    assert [text[line - 1][column - 1 :].partition(":")[0] for column in columns] == ["L_x_", "L_w_"]
    [answer] = client.ask("setBreakpoints", source=graph, breakpoints=[{"line": line, "column": columns[1] + 2}])[
        "breakpoints"
    ]
    assert (answer["line"], answer["column"]) == (line, columns[1])
    assert len(seen := stops(client)) == 1
    assert "l_w_" in seen[0].lower()
