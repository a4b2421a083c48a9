"""`irscope list` and `irscope show` on a store that was filled by hand, and the arguments of the command."""

from __future__ import annotations

import dataclasses
import gc
import json
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_finding, a_kernel, an_outcome
from irscope.cli import showing
from irscope.cli.main import main
from irscope.driver.driver import RunSpec
from irscope.ir.graphs import GraphNode
from irscope.ir.guards import GuardList
from irscope.protocol import Compile, Lane, Origin, Outcome, OutcomeKind, Report, RunSummary, StageRef, from_json
from irscope.provenance.lines import LineTrail
from irscope.store.store import Store

GRAPH = (Path(__file__).parent / "graphs" / "inference.txt").read_text()
MODEL = "/home/me/model.py"
GUARDS = """\
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=0)
| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, size=[4, 8])  # h = torch.relu(x @ weight)  # me/model.py:9 in loss

Guard latency = 94.24 us
"""


@dataclasses.dataclass(frozen=True)
class Filled:
    path: str
    run: str


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Filled:
    """One run with two compiles, as a deep run leaves it."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        run = store.create_run(MODEL, [], Lane.DEEP, "digest")
        store.set_torch(run, "2.13.0+cpu")
        for id in ("0/0", "0/1"):
            store.put_compile(run, a_compile(id=id))
            texts = {"inference-graph": GRAPH, "guards": GUARDS, "output-code": f"# of {id}\n"}
            for position, (name, text) in enumerate(texts.items()):
                nodes = 1234 if name == "inference-graph" else None
                store.put_stage(run, id, StageRef(f"{id}/{name}", name, "python", 0, nodes=nodes), text, position)
        kernel = a_kernel(origins=(Origin(MODEL, 15),))
        store.put_stage(run, "0/0", StageRef(kernel.stage, "kernel", "cpp", 0), "void kernel() {}\n", 9)
        store.put_kernel(run, kernel)
        store.put_finding(run, a_finding())
        store.set_outcome(run, an_outcome())
    return Filled(path, run)


Shown = Any


@pytest.fixture
def show(filled: Filled, capsys: pytest.CaptureFixture[str]) -> Shown:
    def run(*args: str, command: str = "show", err: str = "") -> str:
        assert main([command, "--store", filled.path, *args]) == 0
        captured = capsys.readouterr()
        assert captured.err == err
        return captured.out

    return run


def test_list(show: Shown, filled: Filled) -> None:
    head, row = show(command="list").splitlines()
    assert head.split() == ["run", "started", "lane", "script", "outcome", "findings", "compiles", "kernels", "time"]
    assert row.startswith(filled.run)
    assert row.split()[-8:] == ["deep", MODEL, "script-error", "1", "2", "1", "2.5", "s"]
    (summary,) = json.loads(show("--json", command="list"))
    assert from_json(RunSummary, summary).run == filled.run


def test_list_names_the_ranks_of_a_job(show: Shown, filled: Filled) -> None:
    with Store(filled.path) as store:
        for rank in (0, 3):
            store.create_run(MODEL, [], Lane.DEEP, "digest", how={"world": 4, "rank": rank})
        store.create_run(MODEL, [], Lane.DEEP, "digest", how={"world": 4, "rank": "x"})
    rows = show(command="list").splitlines()
    assert rows[0].split()[3:5] == ["rank", "script"]
    assert [" ".join(row.split()[4:7]) for row in rows[2:4]] == ["3 of 4", "0 of 4"]
    ranks = [(each["rank"], each["world"]) for each in json.loads(show("--json", command="list"))]
    assert ranks == [(None, 0), (3, 4), (0, 4), (None, 0)]


def test_show_a_run(show: Shown, filled: Filled) -> None:
    text = show()
    assert text == show(filled.run[:-1])
    assert "graph-break GB0059 ×2" in text
    assert "0/0      forward" in text
    report = from_json(Report, json.loads(show("--json")))
    assert (report.run, len(report.compiles), len(report.kernels)) == (filled.run, 2, 1)


def test_a_run_of_another_pipeline_names_it(show: Shown, filled: Filled) -> None:
    assert "pipeline" not in show()
    with Store(filled.path) as store:
        run = store.create_run(MODEL, [], Lane.DEEP, "digest", pipeline="tvm")
        store.set_outcome(run, an_outcome())
    assert "pipeline tvm" in show(run)
    head, *rows = show(command="list").splitlines()
    assert head.split()[3] == "pipeline"
    assert {row.split()[4] for row in rows} == {"tvm", "inductor"}


def test_show_a_compile(show: Shown) -> None:
    lines = show("--compile", "0/1").splitlines()
    assert lines[0] == f"0/1  forward  {MODEL}:4  graph-break"
    assert [line.split()[0] for line in lines[2:]] == ["0/1/inference-graph", "0/1/guards", "0/1/output-code"]
    assert lines[1].split() == ["stage", "name", "language", "nodes", "size"]
    assert lines[2].split()[3] == "1,234"
    assert from_json(Compile, json.loads(show("--compile", "0/1", "--json"))).id == "0/1"


def test_show_a_stage(show: Shown) -> None:
    assert show("--stage", "0/0/inference-graph") == GRAPH
    assert show("--stage", "output-code", "--compile", "0/1") == "# of 0/1\n"
    assert show("--stage", "inference-graph") == GRAPH  # the same in both compiles: once
    assert show("--stage", "output-code") == "=== 0/0/output-code\n# of 0/0\n=== 0/1/output-code\n# of 0/1\n"
    data = json.loads(show("--stage", "output-code", "--json"))
    assert [(stage["id"], stage["text"]) for stage in data] == [
        ("0/0/output-code", "# of 0/0\n"),
        ("0/1/output-code", "# of 0/1\n"),
    ]


def test_a_line_is_looked_up_in_a_run_that_came_to_its_end(filled: Filled, show: Shown) -> None:
    runs = []
    with Store(filled.path) as store:
        for kind in (OutcomeKind.COMPLETED, OutcomeKind.SCRIPT_ERROR):
            runs.append(store.create_run(MODEL, [], Lane.DEEP, ""))
            store.put_compile(runs[-1], a_compile(file=MODEL))
            store.set_outcome(runs[-1], Outcome(kind, 1, "It ended.", 1.0))
    assert show("--line", f"{MODEL}:15").startswith(f"run {runs[0]} of ")


def test_show_a_kernel(show: Shown) -> None:
    assert show("--kernel", "cpp_fused_relu_0") == "void kernel() {}\n"


def test_a_line_is_shown_of_the_newest_run_of_its_file(show: Shown, filled: Filled) -> None:
    with Store(filled.path) as store:
        newer = store.create_run("/home/me/other.py", [], Lane.DEEP, "d")
    assert show("--line", f"{MODEL}:15").startswith(f"run {filled.run} of ")
    assert show("--line", "/home/me/other.py:1").startswith(f"run {newer} of ")


def test_show_a_line(show: Shown, filled: Filled) -> None:
    text = show("--line", f"{MODEL}:15")
    assert text == show("--line", "model.py:15")
    assert "0/0/inference-graph\n    sin = torch.ops.aten.sin.default  f32[5][1]cpu\n" in text
    assert "kernel cpp_fused_relu_0  cpp, 0/0/kernel/cpp_fused_relu_0" in text
    assert "Nothing in this run came from this line." in show("--line", f"{MODEL}:1")
    assert "PyTorch tells no lines of its own" in show("--line", "/lib/site-packages/torch/nn/modules/linear.py:1")
    data = json.loads(show("--line", "model.py:15", "--json"))
    assert (data["run"], data["file"], data["line"]) == (filled.run, MODEL, 15)
    trail = from_json(LineTrail, data)
    assert [step.stage for step in trail.steps] == ["0/0/inference-graph", "0/1/inference-graph"]
    assert {step.name for step in trail.steps} == {"inference-graph"}
    nothing = json.loads(show("--line", "model.py:1", "--json"))
    assert (nothing["run"], nothing["steps"], nothing["kernels"]) == (filled.run, [], [])
    assert [node.name for node in trail.steps[0].nodes] == ["sin", "add"]
    assert isinstance(trail.steps[0].nodes[0], GraphNode)


def test_show_the_guards(show: Shown) -> None:
    assert "TENSOR_MATCH" in show("--guards", "--compile", "0/0")
    first, _ = json.loads(show("--guards", "--json"))
    guards = from_json(GuardList, first)
    assert (guards.compile, guards.latency, [guard.source for guard in guards.guards]) == ("0/0", 94.24, ["x"])


def test_long_answers_are_cut_off_and_say_so(show: Shown, filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showing, "_MOST_NODES", 1)
    monkeypatch.setattr(showing, "_MOST_NODES_JSON", 1)
    monkeypatch.setattr(showing, "_MOST_GUARDS", 2)
    line = ("--line", f"{MODEL}:15")
    text = show(*line)
    assert "sin = torch.ops.aten.sin.default" in text and "add = " not in text
    assert "    … and 1 more (--all)\n" in text
    assert "add = " in show(*line, "--all") and "more (--all)" not in show(*line, "--all")
    step = json.loads(show(*line, "--json", err="irscope: 2 nodes left out; --all gives every one\n"))["steps"][0]
    assert (len(step["nodes"]), len(step["places"])) == (1, 2)
    assert len(json.loads(show(*line, "--json", "--all"))["steps"][0]["nodes"]) == 2
    guard = "| | +- TENSOR_MATCH: check_tensor(L['{}'], Tensor, size=[4, 8])"
    many = "\n".join([*GUARDS.split("\n")[:3], *(guard.format(f"x{i}") for i in range(5)), ""])
    costs = [["TENSOR_MATCH", 1, 50.0]] * 5
    with Store(filled.path) as store:
        for id in ("0/0", "0/1"):
            stage = StageRef(f"{id}/guards", "guards", "irscope-guards", 0)
            store.put_stage(filled.run, id, stage, many, 1, costs)
        failed = "0/0: tensor 'x3' size mismatch at index 0. expected 4, actual 5"
        store.put_compile(filled.run, a_compile(id="0/1", reasons=(failed,)))
    first, second = show("--guards").split("0/1  ")
    assert first.startswith("0/0  5 guards; 5 of them, measured alone, 250 ns\n")
    assert first.count("TENSOR_MATCH") == second.count("TENSOR_MATCH") == 2
    assert "failed ×1" in first.split("\n")[2] and " x3 " in first.split("\n")[2]
    assert "… and 3 more (--all)\n" in first
    assert show("--guards", "--all").count("TENSOR_MATCH") == 10
    lists = json.loads(show("--guards", "--json", err="irscope: 6 guards left out; --all gives every one\n"))
    assert [(len(guards["guards"]), guards["count"]) for guards in lists] == [(2, 5), (2, 5)]
    assert lists[0]["guards"][0]["failed"] == 1
    lists = json.loads(show("--guards", "--json", "--all"))
    assert [(len(guards["guards"]), guards["count"]) for guards in lists] == [(5, 5), (5, 5)]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--compile", "9/9"], "has no compile 9/9. It has: 0/0, 0/1."),
        (["--stage", "ptx"], "has no stage ptx"),
        (["--stage", "ptx"], "It has: inference-graph, guards, output-code, kernel."),
        (["--kernel", "nothing"], "has no kernel nothing"),
        (["--line", "model.py"], "--line needs FILE:LINE, as in model.py:42, not 'model.py'."),
        (["--line", ":3"], "--line needs FILE:LINE"),
        (["no-such-run"], "No run is named no-such-run."),
    ],
)
def test_what_is_not_there(args: list[str], message: str, filled: Filled, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--store", filled.path, *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_help_tells_the_exit_codes_and_gives_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for words in (
        "irscope run train.py -- --steps 10",
        "exit codes:",
        "  0   captured",
        "  2   wrong usage",
        "  3   the environment",
    ):
        assert words in text


@pytest.mark.parametrize(("arguments", "wanted"), [([], None), (["--no-symbolic-trace"], False)])
def test_the_symbolic_trace_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], wanted: bool | None
) -> None:
    specs = []

    def execute(spec: RunSpec, store: Store, **_: Any) -> None:
        specs.append(spec)
        raise LookupError("nothing is run here")

    monkeypatch.setattr("irscope.cli.running.execute", execute)
    assert main(["run", "model.py", "--store", str(tmp_path / "runs.db"), *arguments]) == 2
    assert [spec.symbolic_trace for spec in specs] == [wanted]


def test_the_garbage_collector_is_afterwards_as_it_was(
    show: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(spec: RunSpec, store: Store, **_: Any) -> tuple[str, Outcome]:
        return store.create_run(spec.script, [], spec.lane, "digest"), an_outcome()

    monkeypatch.setattr("irscope.cli.running.execute", execute)
    show(command="list")
    assert gc.isenabled()
    assert main(["run", "model.py", "--store", str(tmp_path / "new.db")]) == 0
    assert gc.isenabled()
    gc.disable()
    try:
        show(command="list")
        assert not gc.isenabled()
    finally:
        gc.enable()
