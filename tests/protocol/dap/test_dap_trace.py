"""A session in a symbolic trace: Dynamo's walk over the user's instructions, by the protocol."""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dap_client import Client
from dap_runs import MODEL, long_trace, of_methods, through_a_library, traced_run
from irscope.protocol import Position, Range
from irscope.store.store import Store

Where = tuple[str, int, int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace")
    traced_run(path / "runs.db", path)
    return path


def where(client: Client) -> Where:
    """Function (or what stands in a stage), line and column of the top frame."""
    top = client.top()
    return top["name"].partition(": ")[0], top["line"], top["column"]


def attempt(client: Client) -> str:
    match = re.search(r"attempt (\d of \d)", client.top()["name"])
    return match[1] if match else ""


def enter(client: Client, store: str) -> None:
    """Attaches and steps into the first attempt."""
    client.attach(store)
    client.move("stepIn")
    assert where(client) == ("step", 11, 1)


def at_break(client: Client, store: str) -> dict[str, Any]:
    return client.attach(store, filters=["graph-break"], stopOn="none")


# --- stepping -----------------------------------------------------------------------------------------------------------


def test_lines_as_in_a_python_debugger(client: Client, store: str) -> None:
    enter(client, store)
    assert attempt(client) == "1 of 2"
    seen = []
    for command in ["next", "next", "next", "next", "stepIn", "next", "next", "next", "next", "next"]:
        client.move(command)
        seen.append(where(client))
    assert seen == [
        ("step", 12, 9), ("step", 13, 9), ("step", 14, 9), ("step", 12, 9),
        ("block", 4, 1), ("block", 5, 9), ("block", 6, 9), ("block", 7, 12),
        ("step", 12, 5), ("step", 16, 5),
    ]  # fmt: skip


def test_single_instructions(client: Client, store: str) -> None:
    enter(client, store)
    names = []
    for command in ["next"] * 4 + ["stepIn", "stepIn", "next", "next", "next", "stepOut", "next"]:
        client.move(command, granularity="instruction")
        names.append(client.top()["name"].partition(" [")[0])
    assert names == [
        "step: LOAD_GLOBAL block", "step: LOAD_FAST x", "step: LOAD_FAST w", "step: CALL 2",
        "block: RESUME 0", "block: LOAD_FAST x", "block: LOAD_FAST w", "block: BINARY_OP @", "block: STORE_FAST h",
        "step: STORE_FAST y", "step: LOAD_GLOBAL print",
    ]  # fmt: skip


@pytest.mark.parametrize("granularity", ["line", "instruction"])
def test_every_step_over_can_be_taken_back(client: Client, store: str, granularity: str) -> None:
    enter(client, store)
    for _ in range(4):
        client.move("next")
    client.move("stepIn")
    places = [client.top()["name"]]
    while where(client)[0] == "block":
        client.move("next", granularity=granularity)
        places.append(client.top()["name"])
    assert len(places) == (5 if granularity == "line" else 17)
    # Where the function was left, back goes over its call, as it came from there.
    client.move("stepBack", granularity=granularity)
    assert client.top()["name"].startswith("step: CALL 2")
    client.move("stepIn", granularity=granularity)
    assert client.top()["name"] == places[0]
    for _ in places[2:]:
        client.move("next", granularity=granularity)
    for place in reversed(places[:-2]):
        client.move("stepBack", granularity=granularity)
        assert client.top()["name"] == place
    client.move("stepBack", granularity=granularity)
    assert where(client)[:2] == ("step", 12)


def test_back_in_the_middle_of_a_line_goes_to_where_it_begins(client: Client, store: str) -> None:
    enter(client, store)
    client.move("next")
    for _ in range(3):
        client.move("next", granularity="instruction")
    client.move("stepOut")  # to the user's line: the compiled function has no caller
    assert client.top()["name"] == "step"
    client.move("stepIn")
    assert attempt(client) == "1 of 2"
    assert client.move("stepBack")["reason"] == "step"


def test_down_to_the_node_and_back_up(client: Client, store: str) -> None:
    """From a line of the last attempt to its node; out again the same way; from the trace to the user's line."""
    client.attach(store)
    source = {"path": client.top()["source"]["path"]}
    targets = client.ask("gotoTargets", source=source, line=6)["targets"]
    last = next(each for each in targets if "attempt 2 of 2" in each["label"])
    client.ask("goto", threadId=1, targetId=last["id"])
    client.event("stopped")
    assert where(client) == ("block", 6, 9)
    client.move("stepIn")
    assert client.top()["name"] == "h_1 = torch.relu [Dynamo graph]"
    names = [frame["name"].partition(" [")[0] for frame in client.stack()]
    assert names == ["h_1 = torch.relu", "block: CALL 1", "step: CALL 2"]
    client.move("stepOut")
    assert where(client) == ("block", 6, 9)
    client.move("stepOut")
    assert client.top()["name"].startswith("step: STORE_FAST y")
    client.move("stepOut")
    assert (client.top()["name"], client.top()["line"]) == ("step", 11)


def test_the_node_of_a_kernel_has_the_functions_that_dynamo_was_in(client: Client, store: str) -> None:
    client.attach(store)
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "cpp_fused_add_mul_relu_0"}])
    for _ in range(3):
        client.move("continue")
    frames = client.stack()
    assert [frame["source"]["name"].removeprefix("0/0 ") for frame in frames] == [
        "kernel/cpp_fused_add_mul_relu_0.cpp", "output-code.py", "post-grad-graph.py", "forward-graph.py",
        "dynamo-graph.py", "model.py", "model.py",
    ]  # fmt: skip
    assert [(frame["line"], frame["column"], frame["endLine"], frame["endColumn"]) for frame in frames[-2:]] == [
        (6, 9, 6, 22), (12, 9, 15, 6),
    ]  # fmt: skip


def test_what_an_attempt_made_that_was_given_up_leads_nowhere(client: Client, store: str) -> None:
    enter(client, store)
    for _ in range(4):
        client.move("next")
    client.move("stepIn")
    client.move("next")
    client.move("stepIn")  # the nodes of this line are not those of the graph: stepped over
    assert where(client) == ("block", 6, 9)


def test_targets_of_a_step_in(client: Client, store: str) -> None:
    enter(client, store)
    for _ in range(4):
        client.move("next")
    [call] = client.ask("stepInTargets", frameId=client.top()["id"])["targets"]
    assert call["label"] == "Symbolic trace, attempt 1 of 2: block, line 4"
    client.move("stepIn", targetId=call["id"])
    assert where(client) == ("block", 4, 1)
    caller = client.stack()[1]
    client.move("next")
    assert "Frames are valid only until the next step" in client.refused("restartFrame", frameId=caller["id"])
    client.ask("restartFrame", frameId=client.top()["id"])
    client.event("stopped")
    assert where(client) == ("block", 4, 1)


def test_one_attempt_after_the_other(client: Client, store: str) -> None:
    enter(client, store)
    notes = []
    for _ in range(12):
        stop = client.move("next")
        notes += [stop["description"]] if "description" in stop else []
        if attempt(client) == "2 of 2":
            break
    assert notes == ["Symbolic trace, attempt 2 of 2: Dynamo restarts"]
    client.move("stepBack")
    assert (attempt(client), *where(client)) == ("1 of 2", "step", 16, 5)


# --- stops --------------------------------------------------------------------------------------------------------------


def test_a_graph_break_stops_at_the_instruction_that_broke(client: Client, store: str) -> None:
    stop = at_break(client, store)
    assert (stop["reason"], attempt(client), *where(client)) == ("exception", "1 of 2", "step", 16, 5)
    top = client.top()
    assert (top["endLine"], top["endColumn"]) == (16, 19)
    info = client.ask("exceptionInfo", threadId=1)
    assert (info["exceptionId"], info["details"]["typeName"]) == ("GB0059", "graph-break")
    assert re.search(r"at step \(.*model\.py:16:5\): CALL 1", info["details"]["stackTrace"])
    assert (
        "symbolic stack: NullVariable | BuiltinVariable print | ConstantVariable 'broke'"
        in (info["details"]["stackTrace"])
    )
    assert client.move("continue")["reason"] == "end"  # not again at the line, nor in the second attempt
    assert client.move("reverseContinue", thread=2)["reason"] == "exception"


def test_a_graph_break_of_a_library_stops_at_its_instruction_too(client: Client, tmp_path: Path) -> None:
    """Its finding lies at the user's call of the compiled function, where Dynamo never was."""
    traced_run(tmp_path / "runs.db", tmp_path)
    with Store(str(tmp_path / "runs.db")) as store:
        [finding] = store.report(store.find_run()).findings
    with sqlite3.connect(tmp_path / "runs.db") as db:
        db.execute("DELETE FROM findings")
    with Store(str(tmp_path / "runs.db")) as store:
        moved = dataclasses.replace(finding, range=Range(Position(20, 0), Position(20, 46)))
        store.put_finding(store.find_run(), moved)
    at_break(client, str(tmp_path / "runs.db"))
    assert (attempt(client), *where(client)) == ("1 of 2", "step", 16, 5)


def test_a_breakpoint_on_a_line_stops_where_dynamo_comes_to_it(client: Client, store: str, folder: Path) -> None:
    """Also on one that no node came from."""
    client.attach(store)
    source = {"path": str(folder / "model.py")}
    found = client.ask("setBreakpoints", source=source, breakpoints=[{"line": 17}, {"line": 14}, {"line": 6}])
    assert [(each["verified"], each.get("line")) for each in found["breakpoints"]] == [
        (False, None), (True, 14), (True, 6),
    ]  # fmt: skip
    [print_line] = client.ask("setBreakpoints", source=source, breakpoints=[{"line": 16}])["breakpoints"]
    assert print_line["verified"]
    seen = []
    for _ in range(3):
        assert client.move("continue")["reason"] == "breakpoint"
        seen.append((attempt(client), *where(client)))
    assert seen == [("", "step", 16, 1), ("1 of 2", "step", 16, 5), ("2 of 2", "step", 16, 5)]


def test_conditions_and_log_points_know_the_symbolic_state(client: Client, store: str, folder: Path) -> None:
    client.attach(store)
    source = {"path": str(folder / "model.py")}
    asked = [
        {"line": 7, "condition": "step.attempt == 2 and h.shape[1] == 32 and stack == 0"},
        {"line": 6, "logMessage": "{step.function} {step.operation}: {h}"},
    ]
    client.ask("setBreakpoints", source=source, breakpoints=asked)
    client.move("continue")
    assert (attempt(client), *where(client)) == ("2 of 2", "block", 7, 12)
    logged = [event["body"]["output"] for event in client.events if event["event"] == "output"]
    assert logged[-1] == "block LOAD_GLOBAL: f32[8, 32]cpu = h (TensorVariable)\n"


def test_functions_that_are_entered(client: Client, store: str) -> None:
    client.attach(store)
    [found] = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "block"}])["breakpoints"]
    assert found["verified"]
    assert client.move("continue")["reason"] == "function breakpoint"
    assert where(client) == ("block", 4, 1)


def test_the_disassembly_of_the_users_bytecode(client: Client, store: str) -> None:
    stop = at_break(client, store)
    assert stop["reason"] == "exception"
    at = client.top()["instructionPointerReference"]
    found = client.ask("disassemble", memoryReference=at, instructionOffset=-3, instructionCount=5)["instructions"]
    assert [each["instruction"].split(None, 1)[-1] for each in found] == [
        "STORE_FAST  y", "LOAD_GLOBAL print", "LOAD_CONST  'broke'", "CALL        1", "??",
    ]  # fmt: skip
    assert found[3]["address"] == at
    assert (found[3]["line"], found[3]["column"], found[3]["endColumn"]) == (16, 5, 19)
    assert found[0]["location"]["name"] == "model.py"
    answers = client.ask(
        "setInstructionBreakpoints",
        breakpoints=[{"instructionReference": found[1]["address"]}, {"instructionReference": at, "offset": 1}],
    )
    assert [each["verified"] for each in answers["breakpoints"]] == [True, False]
    client.move("reverseContinue")
    assert (attempt(client), where(client)) == ("1 of 2", ("step", 16, 5))
    assert client.top()["name"].startswith("step: LOAD_GLOBAL print")
    client.ask("setExceptionBreakpoints", filters=[])
    assert client.move("continue")["reason"] == "instruction breakpoint"  # the same code in the second attempt
    assert attempt(client) == "2 of 2"


def test_its_own_document(client: Client, store: str) -> None:
    client.attach(store)
    source = next(each for each in client.ask("loadedSources")["sources"] if "attempt-0" in each["name"])
    text = client.ask("source", source=source, sourceReference=source["sourceReference"])["content"]
    line = next(number for number, each in enumerate(text.split("\n"), 1) if "BINARY_OP *" in each)
    [made] = client.ask("setBreakpoints", source=source, breakpoints=[{"line": line}])["breakpoints"]
    assert made["verified"] and made["line"] == line
    assert client.ask("breakpointLocations", source=source, line=line, endLine=line + 1)["breakpoints"] == [
        {"line": line}, {"line": line + 1},
    ]  # fmt: skip
    client.move("continue")
    assert client.top()["name"].startswith("block: BINARY_OP *")


# --- variables ----------------------------------------------------------------------------------------------------------


def test_scopes_at_a_graph_break(client: Client, store: str) -> None:
    at_break(client, store)
    scopes = client.scopes()
    assert list(scopes)[:5] == [
        "Graph break", "Symbolic stack", "Locals", "Guards added by this step", "Instruction",
    ]  # fmt: skip
    found = {each["name"]: each for each in client.variables(scopes["Graph break"]["variablesReference"])}
    assert found["reason"]["value"] == "GB0059 Failed to trace builtin operator"
    assert found["code"]["value"] == client.evaluate("finding.code") == "GB0059"
    [advice] = client.variables(found["hints"]["variablesReference"])
    assert advice["value"] == "Remove it."
    # The finding has one set of names, wherever it is shown.
    finding = client.ask("evaluate", expression="finding", frameId=client.top()["id"])
    assert {each["name"] for each in client.variables(finding["variablesReference"])} == found.keys() - {
        "reason",
        "means",
    }
    stack = scopes["Symbolic stack"]
    assert stack["indexedVariables"] == 3
    [top] = client.variables(stack["variablesReference"], filter="indexed", start=0, count=1)
    assert (top["name"], top["value"], top["type"]) == ("[-1]", "'broke' (ConstantVariable)", "ConstantVariable")
    assert client.evaluate(top["evaluateName"]) == top["value"]
    known = {each["name"]: each for each in client.variables(scopes["Locals"]["variablesReference"])}
    assert known["y"]["value"] == "f32[8, 32]cpu = y (TensorVariable)"
    assert known["x"]["value"] == "Tensor (not looked at yet)"
    y = {each["name"]: each["value"] for each in client.variables(known["y"]["variablesReference"])}
    assert y == {
        "dtype": "torch.float32", "shape": "(2) [8, 32]", "device": "cpu", "node": "y", "kind": "TensorVariable",
    }  # fmt: skip
    [guard] = client.variables(scopes["Guards added by this step"]["variablesReference"])
    assert guard["value"] == "BUILTIN print"
    graph = client.variables(scopes["Graph so far"]["variablesReference"])[0]
    assert graph["value"] == "(6) [l_x_, l_w_, h, h_1, mul, y]"


def test_each_frame_has_its_own_stack_and_locals(client: Client, store: str, folder: Path) -> None:
    client.attach(store)
    [found] = client.ask(
        "setBreakpoints", source={"path": str(folder / "model.py")}, breakpoints=[{"line": 7, "condition": "step.attempt == 2"}]
    )["breakpoints"]  # fmt: skip
    assert found["verified"]
    client.move("continue")
    client.move("next", granularity="instruction")
    inner, outer = client.stack()[:2]
    for frame, stack, function in ((inner, 1, "block"), (outer, 4, "step")):
        scopes = {each["name"]: each for each in client.ask("scopes", frameId=frame["id"])["scopes"]}
        assert scopes["Symbolic stack"]["indexedVariables"] == stack
        asked = client.ask("evaluate", expression="step.function", frameId=frame["id"], context="watch")
        assert asked["result"] == function
    assert client.ask("evaluate", expression="h", frameId=inner["id"], context="hover")["result"].startswith(
        "f32[8, 32]"
    )
    assert "Unknown name 'h': neither a local" in client.refused(
        "evaluate", expression="h", frameId=outer["id"], context="hover"
    )
    # Nodes of the graph that was compiled have their facts.
    client.move("next", granularity="instruction")
    made = client.scopes()["Nodes made by this step"]
    [node] = client.variables(made["variablesReference"])
    assert (node["name"], node["type"]) == ("mul", "node")
    labels = [
        each["label"] for each in client.ask("completions", frameId=client.top()["id"], text="h", column=2)["targets"]
    ]
    assert labels == ["h"]


# --- long, and broken, traces ---------------------------------------------------------------------------------------------


def test_a_long_stack_is_paged(client: Client, tmp_path: Path) -> None:
    long_trace(tmp_path / "runs.db", tmp_path, 3000)
    client.attach(str(tmp_path / "runs.db"))
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "forward9"}])
    client.move("stepIn")
    client.move("continue")
    assert where(client)[0] == "forward9"
    page = client.ask("stackTrace", threadId=1, startFrame=8, levels=1)
    assert (page["totalFrames"], len(page["stackFrames"])) == (10, 1)
    assert page["stackFrames"][0]["name"].startswith("forward1: OP 3")


def _damaged(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(store: Path) -> None:
        with sqlite3.connect(store) as db:
            for (digest,) in db.execute("SELECT data FROM stages WHERE name = 'symbolic-trace'").fetchall():
                [packed] = db.execute("SELECT data FROM texts WHERE digest = ?", (digest,)).fetchone()
                data = json.loads(zlib.decompress(packed))
                change(data)
                text = json.dumps(data).encode()
                changed = (zlib.compress(text), len(text), digest)
                db.execute("UPDATE texts SET data = ?, bytes = ? WHERE digest = ?", changed)

    return apply


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(version=99),
        lambda data: data["instructions"][3].__setitem__(0, 77),
        lambda data: data["steps"]["pushed"].__setitem__(0, 10**9),
        lambda data: data["listings"].append([1]),
        lambda data: data["strings"].__setitem__(0, None),
        lambda data: data["locals"].append([3, 1]),
        lambda data: data.update(codes=[["x", None]]),
    ],
)
def test_a_damaged_trace_is_walked_as_text(client: Client, tmp_path: Path, change: Any) -> None:
    traced_run(tmp_path / "runs.db", tmp_path)
    _damaged(change)(tmp_path / "runs.db")
    client.attach(str(tmp_path / "runs.db"), stopOn="none", filters=["graph-break"])
    assert (client.top()["name"], client.top()["line"]) == ("step", 16)  # the user's line, as without a trace
    source = next(each for each in client.ask("loadedSources")["sources"] if "attempt-0" in each["name"])
    [target] = client.ask("gotoTargets", source=source, line=3)["targets"]
    client.ask("goto", threadId=1, targetId=target["id"])
    client.event("stopped")
    assert client.top()["source"]["name"].startswith("0/0 symbolic-trace")
    for command in ("next", "stepIn", "stepOut", "stepBack"):
        client.move(command)
        client.scopes()
    assert b"Traceback" not in client.stderr


def test_columns_are_counted_as_the_protocol_counts(client: Client, tmp_path: Path) -> None:
    model = MODEL.replace('    print("broke")', '    print("😀é", x); print("broke")')
    assert model != MODEL
    traced_run(tmp_path / "runs.db", tmp_path)
    (tmp_path / "model.py").write_text(model, encoding="utf-8")
    with sqlite3.connect(tmp_path / "runs.db") as db:
        db.execute("DELETE FROM sources")
    client.attach(str(tmp_path / "runs.db"), stopOn="none", filters=["graph-break"])
    # The columns 4 to 18 of the text: the sign takes two units.
    assert (client.top()["column"], client.top()["endColumn"]) == (5, 20)


@pytest.mark.parametrize(
    ("just_my_code", "lines"),
    [
        (True, [2, 7, 3]),  # into what the library calls, and past the library back
        (False, [2, 10, 11, 7]),
    ],
)
def test_steps_in_go_past_frames_of_libraries(
    just_my_code: bool, lines: list[int], client: Client, tmp_path: Path
) -> None:
    through_a_library(tmp_path / "runs.db", tmp_path)
    client.attach(str(tmp_path / "runs.db"), justMyCode=just_my_code)
    while where(client)[1] != 2:
        client.move("next")
    found = [2]
    while len(found) < len(lines):
        client.move("stepIn" if found[-1] != 7 else "next")
        found.append(where(client)[1])
    assert found == lines


@pytest.mark.parametrize("edited", [False, True])
def test_frames_have_the_names_of_methods_with_their_classes(edited: bool, client: Client, tmp_path: Path) -> None:
    of_methods(tmp_path / "runs.db", tmp_path)
    if edited:
        (tmp_path / "model.py").write_text("")  # what counts is the text as it ran
    client.attach(str(tmp_path / "runs.db"))
    for _ in range(3):
        client.move("stepIn")
    names = [frame["name"].partition(": ")[0] for frame in client.stack()]
    assert names == ["Inner.forward", "Outer.forward, after line 8"]
