"""A value session under the debug adapter: values in scopes, expressions over them, and the stop at a divergence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dap_client
import pytest
from dap_client import Client
from irscope.store.store import Store
from support import run_captured, shared_worker, write

SCRIPT = """\
import torch
import torch._inductor.lowering as lowering

tanh = lowering.lowerings[torch.ops.aten.tanh.default]
lowering.lowerings[torch.ops.aten.tanh.default] = lambda x: lowering.mul(tanh(x), 1.01)

@torch.compile
def f(x, w):
    h = x @ w
    h = torch.tanh(h) + 1  # @wrong
    return torch.softmax(h, -1)

torch.manual_seed(0)
with torch.no_grad():
    print(f(torch.randn(4, 8), torch.randn(8, 6)).sum())
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Path, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("values")
    script = write(folder, SCRIPT)
    dap_client.WAIT_SECONDS = 300.0  # a compile, and a few more for what differs
    with Client() as client:
        client.initialize()
        store = str(folder / "runs.db")
        client.ask("launch", program=str(script), store=store, values=True, divergence=True, stopOn="none")
        client.ask("setExceptionBreakpoints", filters=["divergence"])
        client.ask("configurationDone")
        yield client, script, client.event("stopped")
        client.ask("disconnect")


Session = tuple[Client, Path, dict[str, Any]]


def scope(client: Client, frame: int, name: str) -> dict[str, dict[str, Any]]:
    scopes = client.ask("scopes", frameId=frame)["scopes"]
    found = next(each for each in scopes if each["name"] == name)
    variables = client.ask("variables", variablesReference=found["variablesReference"])["variables"]
    return {each["name"]: each for each in variables}


def test_it_stops_at_the_node_that_differs(session: Session) -> None:
    client, script, stopped = session
    assert (stopped["reason"], stopped["description"]) == ("exception", "Finding: divergence")
    frames = client.ask("stackTrace", threadId=1)["stackFrames"]
    assert frames[0]["name"] == "tanh = torch.ops.aten.tanh.default [Post-grad graph]"
    line = next(n for n, text in enumerate(SCRIPT.split("\n"), 1) if "@wrong" in text)
    assert (frames[-1]["source"]["path"], frames[-1]["line"]) == (str(script), line)
    info = client.ask("exceptionInfo", threadId=1)
    assert info["exceptionId"] == "divergence-lowering"
    assert "compiled aten.tanh.default computes a different number" in info["description"]
    assert "is allowed there" in info["description"]
    assert f"{script}:{line}" in info["details"]["stackTrace"]
    compared = scope(client, frames[0]["id"], "Compared")
    assert compared["differs"]["value"] == "True"
    assert compared["introduced_by"]["value"] == "lowering"
    assert float(compared["error"]["value"]) > float(compared["allowed"]["value"])


def test_a_node_has_its_value(session: Session) -> None:
    client, _, _ = session
    frame = client.ask("stackTrace", threadId=1)["stackFrames"][0]["id"]
    value = scope(client, frame, "Value")
    assert value["dtype"]["value"] == "float32"
    assert value["shape"]["value"] == "(2) [4, 6]"
    assert -1 <= float(value["min"]["value"]) < float(value["max"]["value"]) <= 1
    assert value["picture"]["indexedVariables"] == 4
    rows = client.ask("variables", variablesReference=value["elements"]["variablesReference"], start=1, count=1)
    [row] = rows["variables"]
    assert row["value"].endswith("float32[6]") or row["indexedVariables"] == 6
    elements = client.ask("variables", variablesReference=row["variablesReference"], filter="indexed")["variables"]
    assert len(elements) == 6
    assert float(elements[0]["value"]) == pytest.approx(
        float(client.ask("evaluate", expression="tanh[1, 0]", frameId=frame)["result"]), rel=1e-6
    )


def test_expressions_over_tensors_are_evaluated_in_a_process_of_their_own(session: Session) -> None:
    client, _, _ = session
    frame = client.ask("stackTrace", threadId=1)["stackFrames"][0]["id"]

    def evaluate(text: str) -> str:
        return str(client.ask("evaluate", expression=text, frameId=frame)["result"])

    assert evaluate("value.max") == scope(client, frame, "Value")["max"]["value"]
    assert float(evaluate("value.max()")) == pytest.approx(float(evaluate("value.max")), rel=1e-5)
    assert evaluate("(mm.tanh() - tanh).abs().max() < 1e-6") == "True"
    assert evaluate("node.name") == "tanh"  # the adapter's own language as ever
    sentence = client.refused("evaluate", expression="tanh.data_ptr()", frameId=frame)
    assert "'data_ptr' cannot be called here" in sentence
    assert "the only function available is len" in client.refused("evaluate", expression="nothing.abs()", frameId=frame)


def test_a_divergence_as_a_picture(session: Session) -> None:
    client, _, _ = session
    frame = client.ask("stackTrace", threadId=1)["stackFrames"][0]["id"]

    def picture(expression: str, **view: Any) -> dict[str, Any]:
        return dict(client.ask("irscopePicture", frameId=frame, expression=expression, view=view))

    whole = picture("value")
    assert (whole["node"], whole["picture"]["size"], whole["compared"]) == (
        "tanh", [4, 6], ["compiled", "eager", "float64"],
    )  # fmt: skip
    compiled, eager = (picture(name)["picture"]["cells"] for name in ("compiled", "eager"))
    assert compiled == pytest.approx([1.01 * each for each in eager], rel=1e-4)
    off = picture("compiled - float64", window=[1, 2, 2, 3])["picture"]
    assert off["cells"] == pytest.approx([0.01 * eager[8]], rel=1e-3)
    assert "must be an object" in client.refused("irscopePicture", frameId=frame, view=[])
    assert "no value of 'nothing' here" in client.refused("irscopePicture", frameId=frame, expression="nothing + 1")
    assert float(client.ask("evaluate", expression="(compiled - eager).abs().max()", frameId=frame)["result"]) > 0.001
    value = next(each for each in client.ask("scopes", frameId=frame)["scopes"] if each["name"] == "Value")
    rows = client.variables(value["variablesReference"])
    assert {each["__vscodeVariableMenuContext"] for each in rows} == {"value"}


def test_conditions_speak_of_values(session: Session) -> None:
    client, _, _ = session
    client.ask("setExceptionBreakpoints", filters=[])
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "aten.*", "condition": "value.min > 0.5"}])
    client.ask("reverseContinue", threadId=1)
    client.event("stopped")
    client.ask("continue", threadId=1)
    client.event("stopped")
    frame = client.ask("stackTrace", threadId=1)["stackFrames"][0]["id"]
    assert float(client.ask("evaluate", expression="value.min", frameId=frame)["result"]) > 0.5
    client.ask("setFunctionBreakpoints", breakpoints=[])


def test_the_reproducer_of_a_lowering_that_the_script_made_wrong(session: Session) -> None:
    """It is written, and said not to fail on its own: the wrong lowering is the script's."""
    client, script, _ = session
    path = script.parent / "reproducer.py"
    assert client.ask("irscopeReproducer", path=str(path))["path"] == str(path)
    said = client.event("output", lambda body: "reproducer.py" in body["output"])["output"]
    assert "does not fail on its own" in said
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0


def test_what_a_stored_run_says_is_written_and_not_executed(session: Session) -> None:
    _, script, _ = session
    path = script.parent / "stored.py"
    with Client() as client:
        client.attach(store=str(script.parent / "runs.db"))
        client.ask("irscopeReproducer", path=str(path))
        said = client.event("output", lambda body: "stored.py" in body["output"])["output"]
    assert "was written but not run" in said
    assert "compiled code differs" in path.read_text()


def test_numbers_for_a_panel(session: Session) -> None:
    client, _, _ = session
    frame = client.ask("stackTrace", threadId=1)["stackFrames"][0]["id"]
    found = client.ask("irscopeValues", frameId=frame)
    assert found["value"]["kind"] == "tensor"
    assert found["value"]["min"] > 0.5
    assert found["stage"].startswith("0/0/")


def test_a_wrong_argument_is_refused(tmp_path: Path) -> None:
    script = write(tmp_path, "print(1)")
    with Client() as client:
        client.initialize()
        assert "'values' must be" in client.refused("launch", program=str(script), values="yes")
        assert "'call' must be" in client.refused("launch", program=str(script), values={"call": 0})


PLAIN = """\
import sys
import torch
import beside

f = torch.compile(lambda x: beside.twice(x).tanh())
f(torch.full((4, 4), float(sys.argv[1])))
"""
BESIDE = "def twice(x):\n    return x * 2\n"


def test_attach_runs_a_stored_run_again_for_its_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, beside = write(tmp_path, PLAIN), write(tmp_path, BESIDE, "beside.py")
    with monkeypatch.context() as patch:  # `irscope run case.py` there, the debugger elsewhere
        patch.chdir(tmp_path)
        store_path, env = tmp_path / "runs.db", {"SECRET": "x"}
        ran = run_captured(Path(script.name), store_path, "deep", ["0.25"], env, shared_worker())
    with Store(ran.store) as store:
        how, _ = store.how_run(ran.report.run)
    assert set(how["files"]) == {str(script), str(beside)}, "not what Inductor generates"
    attach: dict[str, Any] = {"store": ran.store, "values": True}
    with Client() as client:
        client.initialize()
        assert "it had variables whose values are not kept" in client.refused("attach", **attach)
        client.ask("attach", **attach, env={"SECRET": "y"})
        client.ask("setFunctionBreakpoints", breakpoints=[{"name": "aten.tanh"}])
        client.ask("configurationDone")
        client.event("stopped")
        client.ask("continue", threadId=1)
        client.event("stopped")
        assert client.evaluate("value[0, 0] * 1000 // 1") == "462.0"  # tanh(2 * 0.25)
        client.ask("restart")
        client.event("process")
        client.event("stopped")
    with Client() as client:  # the newest run has values: nothing runs
        client.attach(**attach)
        assert [event["body"]["startMethod"] for event in client.events if event["event"] == "process"] == ["attach"]
    with Client() as client:
        client.initialize()
        first = {**attach, "run": ran.report.run, "env": {"SECRET": "y"}}
        beside.write_text(BESIDE.replace("2", "3"))
        assert f"{beside} has changed" in client.refused("attach", **first)
        beside.write_text(BESIDE)
        script.write_text(PLAIN + "# more\n")
        assert f"{script} has changed" in client.refused("attach", **first)
        script.unlink()
        assert f"{script} is gone" in client.refused("attach", **first)
