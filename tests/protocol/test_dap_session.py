"""A session on a stored run: stages, call stack, breakpoints, variables, expressions, by the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dap_client import Client
from dap_runs import MODEL, small_run, with_a_loop, with_a_pass
from irscope.store import Store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dap")
    small_run(path / "runs.db", path)
    return path


@pytest.fixture
def store(folder: Path) -> str:
    return str(folder / "runs.db")


@pytest.fixture
def client() -> Iterator[Client]:
    with Client() as started:
        yield started


def line_of(text: str) -> int:
    """The 1-based line of the model that begins with a text."""
    return next(number for number, line in enumerate(MODEL.split("\n"), 1) if line.strip().startswith(text))


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


def test_threads_are_compiles_and_the_first_stop_is_the_function(client: Client, store: str) -> None:
    stop = client.attach(store)
    assert (stop["reason"], stop["threadId"], stop["allThreadsStopped"]) == ("entry", 1, True)
    names = [thread["name"] for thread in client.ask("threads")["threads"]]
    assert names == ["0/0 step (model.py:11)", "1/0 step (model.py:16)"]
    assert where(client) == ("model.py", 11)
    assert client.disconnect() == 0


def test_stepping_in_goes_down_to_machine_code_and_out_comes_back_the_same_way(client: Client, store: str) -> None:
    client.attach(store)
    for _ in range(2):
        client.move("next")
    down = [where(client)]
    for _ in range(5):
        client.move("stepIn")
        down.append(where(client))
    assert down == [
        ("model.py", line_of("h = torch.relu")),
        ("dynamo-graph.py", 10),
        ("forward-graph.py", 7),
        ("post-grad-graph.py", 7),
        ("output-code.py", 2),
        ("kernel/cpp_fused_add_mul_relu_0.cpp", 1),
    ]
    stages = [frame["source"]["name"] for frame in client.stack()]
    assert stages == [
        "0/0 kernel/cpp_fused_add_mul_relu_0.cpp",
        "0/0 output-code.py",
        "0/0 post-grad-graph.py",
        "0/0 forward-graph.py",
        "0/0 dynamo-graph.py",
        "model.py",
    ]
    client.move("next")
    client.move("stepIn")
    assert where(client) == ("kernel/cpp_fused_add_mul_relu_0/assembly.s", 5)
    up = []
    for _ in range(6):
        client.move("stepOut")
        up.append(where(client))
    assert up == [("kernel/cpp_fused_add_mul_relu_0.cpp", 2), *down[4::-1]]
    stop = client.move("stepOut")
    assert where(client) == down[0]
    assert stop["description"] == "This is the user's own line: nothing stands above it."


def test_of_several_parents_the_way_out_is_the_way_in(client: Client, store: str) -> None:
    client.attach(store)
    until_stage(client, "post-grad-graph.py", 10)
    client.move("stepIn")
    assert where(client) == ("output-code.py", 2)
    assert client.stack()[1]["name"] == "mul = torch.ops.aten.mul.Scalar [Post-grad graph]"
    client.move("stepOut")
    assert where(client) == ("post-grad-graph.py", 10)
    # Who comes there by another way sees the first parent.
    until_stage(client, "output-code.py", 2)
    assert client.stack()[1]["name"] == "relu = torch.ops.aten.relu.default [Post-grad graph]"


def test_a_line_that_was_traced_again_is_there_again(client: Client, tmp_path: Path) -> None:
    with_a_loop(tmp_path / "runs.db", tmp_path)
    client.attach(str(tmp_path / "runs.db"))
    lines = [where(client)[1]]
    for _ in range(4):
        client.move("next")
        lines.append(where(client)[1])
    assert lines == [1, 5, 6, 5, 6]
    client.move("stepIn")
    assert client.evaluate("node.name") == "d"
    client.move("stepBack")
    client.move("stepOut")
    assert where(client) == ("model.py", 5)
    client.move("stepBack")
    assert where(client) == ("model.py", 6)
    client.move("stepIn")
    assert client.evaluate("node.name") == "b"


def test_disassembly_in_front_of_the_second_kernel(client: Client, tmp_path: Path) -> None:
    with_a_loop(tmp_path / "runs.db", tmp_path)
    client.attach(str(tmp_path / "runs.db"))
    until_stage(client, "kernel/two/assembly.s", 1)
    at = client.top()["instructionPointerReference"]
    found = client.ask("disassemble", memoryReference=at, instructionOffset=-2, instructionCount=4)["instructions"]
    assert [each["instruction"] for each in found] == ["??", "??", "nop", "two"]


def test_every_step_can_be_taken_back(client: Client, store: str) -> None:
    client.attach(store)
    places = [where(client)]
    while not client.move("next").get("description"):
        places.append(where(client))
    assert len(places) > 40
    for place in reversed(places[:-1]):
        client.move("stepBack")
        assert where(client) == place
    assert client.move("stepBack")["description"] == "This compile begins here."


def test_stepping_by_line_passes_over_the_nodes_of_one_line_together(client: Client, store: str) -> None:
    client.attach(store)
    until_stage(client, "forward-graph.py", 10)
    client.move("next", granularity="line")
    assert where(client) == ("forward-graph.py", 12)
    client.move("stepBack", granularity="line")
    assert where(client) == ("forward-graph.py", 10)


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
    back = []
    for _ in places:
        client.move("reverseContinue", thread=2 if not back else 1)
        back.append(where(client))
    assert back == places[::-1]
    assert client.move("reverseContinue")["reason"] == "entry"


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
    assert "is no expression" in found[0]["message"]
    assert "is no hit count" in found[1]["message"]
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
    from irscope_server.dap.breakpoint_requests import KINDS

    documented = {path.stem for path in (Path(__file__).parents[2] / "docs" / "findings").glob("*.md")}
    assert documented - {"README", "unused-ignore"} <= set(KINDS)


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


def test_variables_are_lazy_and_paged(client: Client, store: str) -> None:
    client.attach(store)
    until_stage(client, "forward-graph.py", 4)
    scopes = client.scopes()
    assert list(scopes)[:3] == ["Node", "Came from", "Became"]
    node = {each["name"]: each for each in client.variables(scopes["Node"]["variablesReference"])}
    assert {name: node[name]["value"] for name in ("name", "dtype", "device", "bytes", "line")} == {
        "name": "mm", "dtype": "torch.float32", "device": "cpu", "bytes": "1024", "line": "5",
    }  # fmt: skip
    assert node["shape"]["value"] == "(2) [8, 32]"
    [first, second] = client.variables(node["shape"]["variablesReference"])
    assert (first["value"], second["value"], second["evaluateName"]) == ("8", "32", "node.shape[1]")
    nodes = scopes["Nodes"]
    assert (nodes["indexedVariables"], nodes["expensive"]) == (7, True)
    page = client.variables(nodes["variablesReference"], filter="indexed", start=2, count=2)
    assert [each["name"] for each in page] == ["mm", "relu"]
    assert client.variables(nodes["variablesReference"], start=6, count=100)[0]["name"] == "output"
    assert client.variables(nodes["variablesReference"], filter="named") == []
    became = client.variables(scopes["Became"]["variablesReference"])
    assert became[0]["name"] == "mm"
    guards = client.variables(scopes["Guards"]["variablesReference"])
    assert guards[0]["value"] == "(1) [GLOBAL_STATE: check()]"
    client.move("next")
    assert "only until the next step" in client.refused("variables", variablesReference=nodes["variablesReference"])


def test_evaluate(client: Client, store: str) -> None:
    client.attach(store)
    assert "no node here" in client.refused("evaluate", expression="node.name", context="watch")
    until_stage(client, "forward-graph.py", 7)
    assert client.evaluate("node.name") == "relu"
    assert client.evaluate("mm", context="hover") == "mm: f32[8, 32][32, 1]cpu = torch.ops.aten.mm.default"
    assert client.evaluate("len(inputs) == 1 and inputs[0].name == 'mm' and stage.name == 'forward-graph'") == "True"
    assert client.evaluate("compile.outcome") == "graph-break"
    assert client.evaluate("run.torch") == "2.13.0"
    assert "target: torch.ops.aten.relu.default" in client.evaluate("node", context="clipboard")
    assert "nothing can be called" in client.refused("evaluate", expression="exec('1')", context="repl")
    assert "The run is a record" in client.refused("setExpression", expression="node.name", value="1")
    until_stage(client, "kernel/cpp_fused_add_mul_relu_0.cpp", 1)
    assert client.evaluate("kernel.language") == "cpp"
    # An expression of a frame further down means what stands there.
    frames = client.stack()
    graph = next(frame for frame in frames if frame["source"]["name"] == "0/0 post-grad-graph.py")
    assert client.ask("evaluate", expression="node.name", frameId=graph["id"])["result"] == "relu"


def test_completions(client: Client, store: str) -> None:
    client.attach(store)
    until_stage(client, "forward-graph.py", 7)
    frame = client.top()["id"]
    found = client.ask("completions", frameId=frame, text="users > 1 and no", column=17)["targets"]
    assert [each["label"] for each in found] == ["node", "nodes"]
    assert (found[0]["start"], found[0]["length"]) == (15, 2)
    found = client.ask("completions", frameId=frame, text="node.d", column=7)["targets"]
    assert [each["label"] for each in found] == ["device", "dtype"]
    assert client.ask("completions", frameId=frame, text="node.name.x", column=12)["targets"] == []


def test_sources_have_texts_and_languages(client: Client, store: str, folder: Path) -> None:
    client.attach(store)
    sources = client.ask("loadedSources")["sources"]
    assert sources[0] == {"name": "model.py", "path": str(folder / "model.py")}
    assert len(sources) == 11
    kernel = next(each for each in sources if each["name"].endswith(".cpp"))
    text = client.ask("source", source=kernel, sourceReference=kernel["sourceReference"])
    assert text["mimeType"] == "text/x-cpp"
    assert text["content"].startswith("#include <torch/csrc")
    lines = client.ask("breakpointLocations", source=kernel, line=1, endLine=3)["breakpoints"]
    assert lines == [{"line": 1}, {"line": 2}, {"line": 3}]
    code = next(each for each in sources if each["name"] == "0/0 output-code.py")
    [inside] = client.ask("setBreakpoints", source=code, breakpoints=[{"line": 3}])["breakpoints"]
    assert inside["line"] == 2  # the kernel that stands there begins a line above
    aside = next(each for each in sources if "cache-key" in each["name"])
    [refused] = client.ask("setBreakpoints", source=aside, breakpoints=[{"line": 1}])["breakpoints"]
    assert not refused["verified"]


def test_a_file_that_was_edited_since_is_shown_as_it_ran(client: Client, tmp_path: Path) -> None:
    small_run(tmp_path / "runs.db", tmp_path, "# edited\n" + MODEL)
    client.attach(str(tmp_path / "runs.db"))
    source = client.top()["source"]
    assert source["name"] == "model.py (as it ran)"
    assert client.ask("source", source=source, sourceReference=source["sourceReference"])["content"] == MODEL
    # A breakpoint that is set in it there is one of the file.
    [found] = client.ask("setBreakpoints", source=source, breakpoints=[{"line": 6}])["breakpoints"]
    assert found["verified"]
    assert client.move("continue")["reason"] == "breakpoint"


def test_disassembly(client: Client, store: str) -> None:
    client.attach(store)
    assert "instructionPointerReference" not in client.top()
    until_stage(client, "kernel/cpp_fused_add_mul_relu_0/assembly.s", 6)
    at = client.top()["instructionPointerReference"]
    found = client.ask("disassemble", memoryReference=at, instructionOffset=-3, instructionCount=8)["instructions"]
    assert [each["instruction"] for each in found] == [
        "??", "??", "pushq\t%rbp", "movq\t%rsp, %rbp", "vmaxps\t%zmm0, %zmm1, %zmm2", "jmp\t.L2", "popq\t%rbp", "ret",
    ]  # fmt: skip
    assert [each.get("line") for each in found] == [None, None, 5, 6, 8, 9, 10, 11]
    assert found[3]["address"] == at
    assert [int(each["address"], 16) - int(at, 16) for each in found] == list(range(-3, 5))
    far = client.ask("disassemble", memoryReference=at, instructionOffset=1000, instructionCount=3)["instructions"]
    assert [each["instruction"] for each in far] == ["??"] * 3
    asked = [{"instructionReference": found[4]["address"]}, {"instructionReference": at, "offset": 500}]
    answers = client.ask("setInstructionBreakpoints", breakpoints=asked)["breakpoints"]
    assert [each["verified"] for each in answers] == [True, False]
    assert client.move("continue")["reason"] == "instruction breakpoint"
    assert where(client) == ("kernel/cpp_fused_add_mul_relu_0/assembly.s", 8)


def test_targets_frames_and_single_threads(client: Client, store: str) -> None:
    client.attach(store)
    until_stage(client, "post-grad-graph.py", 7)
    frames = client.stack()
    targets = client.ask("stepInTargets", frameId=frames[0]["id"])["targets"]
    assert [each["label"] for each in targets] == ["Output code: cpp_fused_add_mul_relu_0"] * 2
    assert client.ask("stepInTargets", frameId=frames[1]["id"])["targets"] == []
    client.move("stepIn", targetId=targets[1]["id"])
    assert where(client) == ("output-code.py", 11)
    page = client.ask("stackTrace", threadId=1, startFrame=1, levels=2)
    assert [frame["source"]["name"] for frame in page["stackFrames"]] == [
        "0/0 post-grad-graph.py",
        "0/0 forward-graph.py",
    ]
    assert page["totalFrames"] == 5
    client.ask("restartFrame", frameId=page["stackFrames"][0]["id"])
    assert client.event("stopped")["reason"] == "restart"
    assert where(client) == ("post-grad-graph.py", 2)
    assert "frames hold only until the next step" in client.refused("scopes", frameId=frames[0]["id"])
    stop = client.move("continue", singleThread=True)
    assert (stop["threadId"], stop["description"]) == (1, "The end of the compile")
    assert where(client, thread=2) == ("model.py", 16)
    assert client.move("continue")["threadId"] == 2
    client.ask("continue", threadId=2)
    client.event("terminated")
    assert "after its end" in client.refused("next", threadId=1)


def test_lines_may_start_at_zero(client: Client, store: str) -> None:
    client.ask("initialize", adapterID="irscope", linesStartAt1=False, columnsStartAt1=False)
    client.ask("attach", store=store)
    client.ask("configurationDone")
    client.event("stopped")
    assert (client.top()["line"], client.top()["column"]) == (10, 0)
    path = client.top()["source"]
    [found] = client.ask("setBreakpoints", source=path, breakpoints=[{"line": 5}])["breakpoints"]
    assert (found["verified"], found["line"]) == (True, 5)
    client.move("continue")
    assert client.top()["line"] == 5
    [code] = client.ask("disassemble", memoryReference=hex(1 << 32), instructionCount=1)["instructions"]
    assert code["line"] == 4


def test_attaching_to_what_is_not_there(client: Client, store: str, tmp_path: Path) -> None:
    client.initialize()
    assert "There is no run store" in client.refused("attach", store=str(tmp_path / "none.db"))
    assert "No run is called" in client.refused("attach", store=store, run="1999")
    (tmp_path / "text.db").write_text("this is no database, but long enough to be looked at as one" * 20)
    assert "cannot be used" in client.refused("attach", store=str(tmp_path / "text.db"))
    with Store(str(tmp_path / "empty.db")) as empty:
        from irscope.protocol import Lane

        empty.create_run("/x.py", (), Lane.DEEP, "")
    assert "Nothing was compiled" in client.refused("attach", store=str(tmp_path / "empty.db"))
    client.ask("attach", store=store)  # a session goes on after a failure


def test_restart_reads_the_run_again(client: Client, store: str) -> None:
    client.attach(store)
    until_stage(client, "forward-graph.py", 7)
    client.ask("restart")
    assert client.event("stopped")["reason"] == "entry"
    assert where(client) == ("model.py", 11)
    client.ask("terminate")
    client.event("terminated")
