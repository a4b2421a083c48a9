"""What a session on a stored run stops at: lines, conditions, functions, findings, passes, stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dap_client import Client, where
from dap_runs import with_a_pass, with_callers


def test_a_breakpoint_on_a_line_of_the_user_stops_at_all_that_came_from_it(
    client: Client, store: str, folder: Path
) -> None:
    client.initialize()
    source = {"path": str(folder / "model.py")}
    [pending] = client.ask("setBreakpoints", source=source, breakpoints=[{"line": 6}])["breakpoints"]
    assert not pending["verified"]
    client.ask("attach", store=store, stopOn="none")
    client.ask("configurationDone")
    assert client.event("breakpoint")["breakpoint"]["verified"]
    stops = [client.event("stopped")]
    places = [where(client)]
    while stops[-1]["reason"] == "breakpoint":
        stops.append(client.move("continue"))
        if stops[-1]["reason"] == "breakpoint":
            places.append(where(client))
    assert places == [
        ("model.py", 6),
        ("dynamo-graph.py", 10),
        ("forward-graph.py", 7),
        ("post-grad-graph.py", 7),
        ("output-code.py", 2),
        ("output-code.py", 11),
        ("kernel/cpp_fused_add_mul_relu_0.cpp", 1),
    ]
    assert stops[0]["hitBreakpointIds"] == [pending["id"]]
    assert (stops[-1]["reason"], stops[-1]["threadId"]) == ("end", 2)
    back: list[Any] = []
    for _ in places:
        client.move("reverseContinue", thread=2 if not back else 1)
        back.append(where(client))
    assert back == places[::-1]
    assert client.move("reverseContinue")["reason"] == "entry"


def test_lines_that_call_compiled_code_and_lines_of_libraries(client: Client, tmp_path: Path) -> None:
    """A call stops where the code that it calls begins; a library's line stops at all that came from it."""
    library = with_callers(tmp_path / "runs.db", tmp_path)
    client.initialize()
    lines = {str(tmp_path / "model.py"): (20, 21), library: (6, 30, 40)}
    for path, numbers in lines.items():
        client.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line} for line in numbers])
    client.ask("attach", store=str(tmp_path / "runs.db"))
    client.ask("configurationDone")
    assert all(client.event("breakpoint")["breakpoint"]["verified"] for numbers in lines.values() for _ in numbers)
    places, stop = [], client.event("stopped")
    while stop["reason"] == "breakpoint":
        places.append((*where(client), len(stop["hitBreakpointIds"])))
        if places[-1][0] == "dynamo-graph.py":
            lines_above = [(frame["source"]["name"], frame["line"]) for frame in client.stack()[1:]]
        stop = client.move("continue")
    assert places == [
        ("model.py", 11, 2),
        ("dynamo-graph.py", 10, 1),
        ("kernel/cpp_fused_add_mul_relu_0.cpp", 1, 1),
        ("backward-graph.py", 2, 1),
        ("backward-graph.py", 7, 1),
    ]
    assert lines_above == [("model.py", 6), ("layers.py", 30), ("model.py", 12)]


def test_lines_that_nothing_came_from(client: Client, store: str, folder: Path) -> None:
    """A line inside a statement of several moves to the line that PyTorch names; a comment has no place."""
    client.attach(store)
    source = {"path": str(folder / "model.py")}
    found = client.ask("setBreakpoints", source=source, breakpoints=[{"line": 1}, {"line": 11}, {"line": 16}])
    assert [each["verified"] for each in found["breakpoints"]] == [False, True, True]
    assert "came from this line" in found["breakpoints"][0]["message"]
    [other] = client.ask("setBreakpoints", source={"path": "/no/such.py"}, breakpoints=[{"line": 1}])["breakpoints"]
    assert not other["verified"]


def test_breakpoints_in_a_stage_with_conditions_counts_and_logs(client: Client, store: str) -> None:
    client.attach(store)
    source = next(each for each in client.ask("loadedSources")["sources"] if each["name"] == "0/0 forward-graph.py")
    asked = [
        {"line": 4, "logMessage": "{node.name} is {node.dtype}, {users} users"},
        {"line": 7, "condition": "node.dtype == torch.bfloat16"},
        {"line": 9},
        {"line": 11, "condition": "node.dtype == torch.bfloat16 and users > 0"},
        {"line": 12, "hitCondition": "2"},
    ]
    found = client.ask("setBreakpoints", source=source, breakpoints=asked)["breakpoints"]
    assert [each["line"] for each in found] == [4, 7, 10, 11, 12]
    client.move("continue")
    assert where(client) == ("forward-graph.py", 10)
    assert (
        client.event("output")["output"]
        == "mm is torch.float32, [relu: f32[8, 32][32, 1]cpu = torch.ops.aten.relu.default] users\n"
    )
    client.move("continue")
    assert where(client) == ("forward-graph.py", 11)
    assert client.move("continue")["reason"] == "end"
    client.move("reverseContinue", thread=2)
    assert where(client) == ("forward-graph.py", 12)


def test_wrong_conditions_are_said_at_once_or_once(client: Client, store: str) -> None:
    client.attach(store)
    source = next(each for each in client.ask("loadedSources")["sources"] if each["name"] == "0/0 forward-graph.py")
    asked = [{"line": 4, "condition": "1 +"}, {"line": 7, "hitCondition": "x"}, {"line": 10, "condition": "node.dtipe"}]
    found = client.ask("setBreakpoints", source=source, breakpoints=asked)["breakpoints"]
    assert [each["verified"] for each in found] == [False, False, True]
    assert "is not an expression" in found[0]["message"]
    assert "is not a hit count" in found[1]["message"]
    assert client.move("continue")["reason"] == "end"
    assert "a node has no 'dtipe'" in client.event("output")["output"]


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("aten.relu", [("forward-graph.py", 7), ("post-grad-graph.py", 7)]),
        ("torch.ops.aten.mul.Scalar", [("post-grad-graph.py", 10)]),
        ("extern_kernels.m*", [("output-code.py", 10)]),
        (
            "cpp_fused_add_mul_relu_0",
            [("output-code.py", 2), ("output-code.py", 11), ("kernel/cpp_fused_add_mul_relu_0.cpp", 1)],
        ),
    ],
)
def test_function_breakpoints(client: Client, store: str, name: str, places: list[tuple[str, int]]) -> None:
    client.attach(store)
    [found] = client.ask("setFunctionBreakpoints", breakpoints=[{"name": name}])["breakpoints"]
    assert found["verified"]
    for place in places:
        assert client.move("continue")["reason"] == "function breakpoint"
        assert where(client) == place
    assert client.move("continue")["reason"] == "end"


def test_a_function_that_is_nowhere(client: Client, store: str) -> None:
    client.attach(store)
    [found] = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "aten.conv2d"}])["breakpoints"]
    assert not found["verified"]
    assert "aten.conv2d" in found["message"]
    [found] = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "code"}])["breakpoints"]
    assert not found["verified"], "only comments name it"


def test_findings_are_exceptions(client: Client, store: str) -> None:
    filters = {each["filter"] for each in client.initialize()["exceptionBreakpointFilters"]}
    assert {"graph-break", "recompilation"} <= filters
    client.ask("attach", store=store, stopOn=[])
    answers = client.ask(
        "setExceptionBreakpoints",
        filters=["recompilation", "weather"],
        filterOptions=[{"filterId": "graph-break", "condition": "finding.code == 'GB0059'"}],
    )["breakpoints"]
    assert [each["verified"] for each in answers] == [True, False, True]
    client.ask("configurationDone")
    stop = client.event("stopped")
    assert (stop["reason"], stop["text"]) == ("exception", 'Graph break: `print("broke")` writes while tracing.')
    assert where(client) == ("model.py", 16)
    info = client.ask("exceptionInfo", threadId=1)
    assert (info["exceptionId"], info["details"]["typeName"]) == ("GB0059", "graph-break")
    assert "Remove it." in info["details"]["stackTrace"]
    assert client.evaluate("finding.code") == "GB0059"
    client.move("next")
    assert "has not stopped at a finding" in client.refused("exceptionInfo", threadId=1)
    client.ask(
        "setExceptionBreakpoints",
        filters=[],
        filterOptions=[{"filterId": "graph-break", "condition": "finding.count > 1"}],
    )
    client.move("reverseContinue")
    assert client.move("continue")["reason"] == "end"


def test_every_kind_of_finding_has_a_filter() -> None:
    from irscope_server.dap.protocol.breakpoint_requests import KINDS

    documented = {path.stem for path in (Path(__file__).parents[3] / "docs" / "findings").glob("*.md")}
    about_the_run = {"unused-ignore", "script-error", "crashed", "compiled-code-error", "environment-error"}
    about_the_run |= {"slow-line", "memory-at-peak"}  # of a profile, which no debugger runs
    assert documented - {"README"} - about_the_run == set(KINDS)


def test_stopping_at_each_pass_that_changes_the_graph(client: Client, store: str) -> None:
    stop = client.attach(store, stopOn="pass")
    places = []
    while stop["reason"] == "pass":
        places.append(where(client))
        stop = client.move("continue")
    # What is lowered is all new; the post-grad graph differs first in its `mul`.
    assert places == [("forward-graph.py", 2), ("post-grad-graph.py", 10)]


def test_versions_that_passes_made(client: Client, tmp_path: Path) -> None:
    """The place is the first node that the pass changed; a version is no frame of the call stack of others."""
    with_a_pass(tmp_path / "runs.db", tmp_path)
    client.attach(str(tmp_path / "runs.db"), stopOn=[])  # nothing stops: the end of the run
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "scalarize"}])
    assert client.move("reverseContinue", thread=2)["reason"] == "function breakpoint"
    assert where(client) == ("post-grad-graph/01-scalarize.py", 10)
    assert client.evaluate("stage.passed") == "scalarize"
    assert [frame["source"]["name"] for frame in client.stack()][1] == "0/0 forward-graph.py"
    client.move("stepIn")
    assert where(client) == ("post-grad-graph.py", 10)
    assert [frame["source"]["name"] for frame in client.stack()][1] == "0/0 forward-graph.py"


def test_stopping_at_each_stage(client: Client, store: str) -> None:
    stop = client.attach(store, stopOn=["stage"])
    names = []
    for _ in range(10):
        assert stop["reason"] == "stage"
        names.append(stop["description"].removeprefix("The stage ").removesuffix(" begins"))
        if len(names) < 10:
            stop = client.move("continue", thread=stop["threadId"])
    kernel = "Kernel cpp_fused_add_mul_relu_0"
    graphs = ["Dynamo graph", "Guards", "Forward graph", "Post-grad graph"]
    assert names == [
        "Bytecode",
        *graphs,
        "Output code",
        kernel,
        f"Assembly of {kernel.split()[1]}",
        "Source",
        "Bytecode",
    ]
    client.ask("continue", threadId=2)  # this is the last place of the run
    client.event("terminated")
