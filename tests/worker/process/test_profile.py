"""`irscope profile`: a real script with a graph break and a backward, measured on the CPU."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from irscope.pipelines.registry import role_of
from irscope.store.store import Store
from irscope.vocabulary.stages import Role
from support import run_cli, run_cli_forked, write

pytestmark = pytest.mark.worker

SMALL = """\
import torch


def f(x):
    y = x @ x
    return torch.relu(y) * 2


fast = torch.compile(f)
print("printed", fast(torch.ones(16, 16)).sum().item())
"""
NET = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        y = torch.relu(self.first(x)) * 2
        torch._dynamo.graph_break()
        y = y.sort(-1)[0]
        return self.second(y).softmax(-1)


torch.manual_seed(0)
net = Net()
fast = torch.compile(net)
loss = fast(torch.ones(4, 8)).square().sum()
loss.backward()
print("printed", loss.item(), net.first.weight.grad.sum().item())
"""


def profiled(script: Path, store: Path) -> dict[str, Any]:
    """The profile of a script: all time has an owner, and what was measured is what the output code calls."""
    done = run_cli_forked("profile", script, "--calls", "3", "--json", "--store", store)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert len(re.findall("printed", done.stderr)) == 1, "what repeated calls print is not the script's output"
    assert found["steps"] == 3 and all(one["origins"] and one["seconds"] > 0 for one in found["kernels"])
    with Store(str(store)) as opened:
        assert opened.profile(found["run"]) == found
        report = opened.report(found["run"])
        codes = [one for each in report.compiles for one in each.stages if role_of(one.name) is Role.CODE]
        calls = Counter(
            (call["kernel"], stage.id) for stage in codes for call in opened.stage_data(report.run, stage.id)["calls"]
        )
        texts = [opened.stage_text(report.run, one.stage) for one in report.kernels if one.language == "cpp"]
    assert {(one["name"], one["stage"]): one["calls"] for one in found["kernels"]} == calls
    assert texts and all(text.count("RAIIAtenRecordFunctionHandle") == 1 for text in texts)
    assert "unknown" not in {one["kind"] for one in found["gaps"]}
    total = sum(one["seconds"] for one in found["kernels"]) + sum(one["seconds"] for one in found["gaps"])
    assert total == pytest.approx(found["step_seconds"])
    assert found["owned_seconds"] >= 0.95 * found["step_seconds"]
    for nodes in (found["by_module"]["nodes"], found["by_frame"]["nodes"]):
        assert nodes[0]["inclusive"][0] == pytest.approx(found["device_seconds"])
        assert sum(node["exclusive"][0] for node in nodes) == pytest.approx(found["device_seconds"])
    return found


def test_each_line_has_its_kernels_and_all_time_an_owner(tmp_path: Path) -> None:
    found = profiled(write(tmp_path, SMALL), tmp_path / "runs.db")
    assert {one["line"]: one["kernels"] for one in found["lines"]} == {
        5: ["extern_kernels.mm"], 6: ["cpp_fused_mul_relu_0"],
    }  # fmt: skip
    assert all(one["bound_seconds"] > 0 for one in found["lines"])
    frames = found["by_frame"]["nodes"]
    assert [(one["name"], one["kind"], frames[one["parent"]]["name"]) for one in frames if one["exclusive"][0]] == [
        ("script.py:5", "f", "script.py:10"), ("script.py:6", "f", "script.py:10"),
    ]  # fmt: skip
    assert found["profiled_seconds"] > 0 and len(found["programs"][0]["samples"]) >= 3
    assert found["programs"][0]["eager_seconds"] > 0 and found["programs"][0]["compile_seconds"] > 0
    shown = run_cli_forked("show", "--store", tmp_path / "runs.db")
    assert "without compile" in shown.stdout and "cpp_fused_mul_relu_0" in shown.stdout
    (region,) = found["regions"]
    assert (region["compile"], region["why_not"]) == ("0/0", "")
    for side in (
        region["compiled"],
        region["eager"],
        found["programs"][0]["spread"],
        found["programs"][0]["eager_spread"],
    ):
        assert 0 < side["low"] <= side["median"] <= side["high"] and side["calls"] >= 9
    assert {"guards", "generated wrapper", "python"} <= {one["kind"] for one in found["gaps"]}


@pytest.mark.nightly
def test_a_break_and_a_backward(tmp_path: Path) -> None:
    found = profiled(write(tmp_path, NET), tmp_path / "runs.db")
    assert [one["backward"] for one in found["programs"]] == [True]
    by_line = {one["line"]: one["kernels"] for one in found["lines"]}
    assert set(by_line) == {10, 12, 13}
    assert "torch.ops.aten.sort.stable" in by_line[12] and "extern_kernels.addmm" in by_line[10]
    assert "autograd" in {one["kind"] for one in found["gaps"]}
    assert [(one["compile"], one["backward"], one["why_not"]) for one in found["regions"]] == [
        ("0/0", True, ""),
        ("1/0", True, ""),
    ]
    assert any(one["stage"].endswith("-backward") for one in found["kernels"])


@pytest.mark.nightly
def test_kernels_of_a_module_of_pytorch_are_on_the_line_that_calls_it(tmp_path: Path) -> None:
    found = profiled(
        write(
            tmp_path,
            "import torch\nnet = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()))\nprint('printed', net(torch.ones(2, 8)).shape)\n",
        ),
        tmp_path / "runs.db",
    )
    assert [one["line"] for one in found["lines"]] == [3]
    assert [(one["function"], one["line"], one["is_foreign"]) for one in found["programs"]] == [("Sequential", 3, True)]


@pytest.mark.nightly
def test_a_break_is_measured_by_running_without_it(tmp_path: Path) -> None:
    body = SMALL.replace("    y = x @ x\n", "    y = x @ x\n    torch._dynamo.graph_break()\n")
    script, store = write(tmp_path, body), tmp_path / "runs.db"
    done = run_cli("profile", script, "--calls", "3", "--json", "--without-breaks", "--store", store)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    [cost] = found["breaks"]
    assert (cost["line"], cost["removed"]["why_not"]) == (6, "") and cost["removed"]["title"]
    assert cost["removed"]["before"]["calls"] == cost["removed"]["after"]["calls"] == 18
    assert script.read_text() == body, "files stay as they are"
    with Store(str(store)) as opened:
        assert opened.profile(found["run"]) == found and len(opened.runs()) == 1


def test_nothing_to_measure_is_said(tmp_path: Path) -> None:
    script = write(tmp_path, "import torch\nprint(torch.ones(2).sum())\n")
    done = run_cli_forked("profile", script, "--store", tmp_path / "runs.db")
    assert done.returncode == 3 and "Nothing to measure" in done.stderr


@pytest.mark.nightly
def test_graphs_between_breaks_are_timed_through_another_pipeline(tmp_path: Path) -> None:
    script = write(tmp_path, NET.replace("loss.backward()\n", "").replace(", net.first.weight.grad.sum().item()", ""))
    done = run_cli(
        "profile", script, "--calls", "3", "--json", "--against", "aotinductor", "--store", tmp_path / "runs.db"
    )
    assert done.returncode == 0, done.stderr
    regions = json.loads(done.stdout)["regions"]
    assert [[one["pipeline"] for one in region["elsewhere"]] for region in regions] == [["aotinductor"]] * 2
    for one in (one for region in regions for one in region["elsewhere"]):
        assert one["why_not"] == "" and one["seconds"]["calls"] == one["inductor"]["calls"] == 18


@pytest.mark.nightly
def test_each_measured_call_begins_with_the_same_state(tmp_path: Path) -> None:
    """A counter in a guard would have each call compiled again."""
    text = """\
    import torch


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return torch.relu(x) * self.calls


    net = torch.compile(Net())
    for _ in range(3):
        y = net(torch.ones(8))
    print("printed", y.sum().item(), net.calls)
    """
    done = run_cli_forked(
        "profile", write(tmp_path, textwrap.dedent(text)), "--calls", "3", "--json", "--store", tmp_path / "runs.db"
    )
    found = json.loads(done.stdout)
    assert found["programs"][0]["put_back"] == ["self.calls"] and found["programs"][0]["compiled_again"] == ""
    with Store(str(tmp_path / "runs.db")) as store:
        assert [one.id for one in store.report(found["run"]).compiles] == ["0/0", "0/1", "0/2"], "none is the profile's"


def test_a_compiled_module_that_a_compiled_function_calls_is_a_part_of_it(tmp_path: Path) -> None:
    """Called without compile, too, to be compared: no further program begins then."""
    text = """\
    import torch

    inner = torch.compile(torch.nn.BatchNorm1d(8))


    @torch.compile
    def outer(x):
        return inner(x).relu()


    outer(torch.randn(4, 8))
    """
    done = run_cli_forked(
        "profile", write(tmp_path, textwrap.dedent(text)), "--calls", "2", "--json", "--store", tmp_path / "runs.db"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(one["function"], one["why_not"]) for one in found["programs"]] == [("outer", "")]
    with Store(str(tmp_path / "runs.db")) as store:
        assert store.report(found["run"]).findings == (), "nothing of irscope breaks the graph"
