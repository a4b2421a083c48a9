"""A session on a stored run: stages, call stack, stepping, variables, expressions, sources, by the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dap_client import Client, until_stage, where
from dap_runs import MODEL, line_of, small_run, with_a_loop
from irscope.protocol import Compile, CompileOutcome, Lane, Outcome, OutcomeKind, StageRef
from irscope.store.store import Store
from made import finding


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
    assert stop["description"] == "This is your own source line: no stage comes before it."


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
    assert "No node here" in client.refused("evaluate", expression="node.name", context="watch")
    until_stage(client, "forward-graph.py", 7)
    assert client.evaluate("node.name") == "relu"
    assert client.evaluate("mm", context="hover") == "mm: f32[8, 32][32, 1]cpu = torch.ops.aten.mm.default"
    assert client.evaluate("len(inputs) == 1 and inputs[0].name == 'mm' and stage.name == 'forward-graph'") == "True"
    assert client.evaluate("compile.outcome") == "graph-break"
    assert client.evaluate("run.torch") == "2.13.0"
    assert "target: torch.ops.aten.relu.default" in client.evaluate("node", context="clipboard")
    assert "the only function available is len" in client.refused("evaluate", expression="exec('1')", context="repl")
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
    assert "Frames are valid only until the next step" in client.refused("scopes", frameId=frames[0]["id"])
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
    assert "Run store not found" in client.refused("attach", store=str(tmp_path / "none.db"))
    assert "No run is named" in client.refused("attach", store=store, run="1999")
    (tmp_path / "text.db").write_text("this is no database, but long enough to be looked at as one" * 20)
    assert "cannot be used" in client.refused("attach", store=str(tmp_path / "text.db"))
    with Store(str(tmp_path / "empty.db")) as empty:
        empty.create_run("/x.py", (), Lane.DEEP, "")
    assert "Nothing was compiled" in client.refused("attach", store=str(tmp_path / "empty.db"))
    client.ask("attach", store=store)  # a session goes on after a failure


def _run(store: Store, script: str, kind: OutcomeKind | None, *, compiled: bool = True) -> str:
    run = store.create_run(script, (), Lane.DEEP, "")
    store.put_source(run, script, "x = 1\n")
    if compiled:
        store.put_compile(run, Compile("0/0", "f", script, 1, CompileOutcome.COMPILED, 0, 1, 0.1))
        store.put_stage(run, "0/0", StageRef("0/0/bytecode", "bytecode", "python-bytecode", 6), "RESUME", 0)
    if kind is not None:
        store.set_outcome(run, Outcome(kind, 0, "It ended.", 1.0))
    return run


def test_the_run_of_a_file_is_its_newest_that_came_to_its_end(client: Client, tmp_path: Path) -> None:
    mine, other, lib = (str(tmp_path / name) for name in ("mine.py", "other.py", "lib.py"))
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        _run(store, mine, OutcomeKind.COMPLETED)
        good = _run(store, mine, OutcomeKind.COMPLETED)
        store.put_finding(good, finding(lib, 1))
        failed = _run(store, mine, OutcomeKind.SCRIPT_ERROR)
        _run(store, mine, OutcomeKind.COMPLETED, compiled=False)
        theirs = _run(store, other, OutcomeKind.COMPLETED)
        crashed = _run(store, other, OutcomeKind.CRASHED)
        _run(store, other, None)
        assert [store.best_run(each) for each in (mine, lib, other, None)] == [good, good, theirs, theirs]
        assert store.best_run(str(tmp_path / "none.py")) is None
        assert failed != good and crashed != theirs
    client.initialize()
    assert "No run of" in client.refused("attach", store=path, program=str(tmp_path / "none.py"))
    client.ask("attach", store=path, program=mine)
    client.ask("configurationDone")
    assert good in client.event("stopped")["description"]


def test_without_a_word_on_it_a_session_stops_at_the_first_breakpoint(client: Client, store: str, folder: Path) -> None:
    client.initialize()
    client.ask("attach", store=store)
    client.ask("setBreakpoints", source={"path": str(folder / "model.py")}, breakpoints=[{"line": 6}])
    client.ask("setExceptionBreakpoints", filters=[])
    client.ask("configurationDone")
    stop = client.event("stopped")
    assert stop["reason"] == "breakpoint" and where(client) == ("model.py", 6)


@pytest.mark.parametrize(
    ("line", "arguments", "reason"),
    [
        (6, {"stopOn": "entry"}, "entry"),
        (6, {"stopOnEntry": True}, "entry"),
        (6, {"stopOnEntry": False}, "breakpoint"),
        (11, {}, "breakpoint"),  # where the session begins
        (1, {}, "entry"),  # in no compiled function
    ],
)
def test_where_a_session_with_a_breakpoint_stops_first(
    line: int, arguments: dict[str, Any], reason: str, client: Client, store: str, tmp_path: Path, folder: Path
) -> None:
    path = folder / "model.py" if line > 1 else tmp_path / "other.py"
    client.initialize()
    client.ask("attach", store=store, **arguments)
    client.ask("setBreakpoints", source={"path": str(path)}, breakpoints=[{"line": line}])
    client.ask("configurationDone")
    assert client.event("stopped")["reason"] == reason


def test_restart_reads_the_run_again(client: Client, store: str) -> None:
    client.attach(store)
    until_stage(client, "forward-graph.py", 7)
    client.ask("restart")
    assert client.event("stopped")["reason"] == "entry"
    assert where(client) == ("model.py", 11)
    client.ask("terminate")
    client.event("terminated")


def test_items_of_lists_have_names_and_paths_begin_at_the_folder(client: Client, store: str) -> None:
    client.attach(store)
    until_stage(client, "forward-graph.py", 7)

    def below(scope: str, *names: str) -> dict[str, str]:
        reference = client.scopes()[scope]["variablesReference"]
        for name in names:
            reference = next(one for one in client.variables(reference) if one["name"] == name)["variablesReference"]
        return {one["name"]: one["value"] for one in client.variables(reference)}

    assert below("Node", "shape") == {"dim 0": "8", "dim 1": "32"}
    assert below("Guards", "guards") == {"guard 0": "GLOBAL_STATE: check()"}
    [name] = below("Findings")
    assert name.startswith("graph-break at model.py:")
    assert below("Compile")["file"] == below("Findings", name)["file"] == "model.py"
    assert client.evaluate("compile.file").endswith("/model.py") and client.evaluate("node.shape[1]") == "32"
