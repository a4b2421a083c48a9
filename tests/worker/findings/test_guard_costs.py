"""What single guards cost: measured in the deep lane for real, and without any effect on the script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from irscope.ir.guards import Guard, guards_of
from irscope.store.store import Store
from irscope.worker.client import Worker
from support import Ran, run_captured, write

# Two tensors make a guard that compares the two and keeps a state (NO_TENSOR_ALIASING); a class of the user's says
# whenever something looks at it; a condition on a size is a guard of its own.
SCRIPT = """\
import torch

class Loud:
    def __getattribute__(self, name):
        print("looked at", name)
        return object.__getattribute__(self, name)
    def __eq__(self, other):
        print("compared")
        return True
    __hash__ = object.__hash__

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.settings = {"scale": 2.0}
        self.key = Loud()

    def forward(self, x, y, number):
        if x.shape[0] > 3:
            x = x + 1
        return self.fc(x) * self.settings["scale"] * number + y

net = torch.compile(Net(), backend="eager", dynamic=True)
for size in (5, 6, 7):
    print(net(torch.ones(size, 4), torch.zeros(size, 4), 3).shape)
"""


@pytest.fixture(scope="module")
def deep_and_fast(tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None) -> tuple[Ran, Ran]:
    folder = tmp_path_factory.mktemp("guard_costs")
    script = write(folder, SCRIPT)
    deep, fast = (run_captured(script, folder / "runs.db", lane, worker=shared_worker) for lane in ("deep", "fast"))
    return deep, fast


def guards_in(ran: Ran) -> list[Guard]:
    with Store(ran.store) as store:
        costs = store.stage_data(ran.report.run, "0/0/guards")
    compile = ran.compile("0/0")
    return list(guards_of(compile, ran.text("0/0/guards"), ran.report.compiles, costs).guards)


def test_each_kind_has_a_cost(deep_and_fast: tuple[Ran, Ran]) -> None:
    """Loud when PyTorch's guards are not found on the stack any more, or cannot be called."""
    guards = guards_in(deep_and_fast[0])
    cost = {(guard.kind, guard.source): guard.nanoseconds for guard in guards}
    for kind, source in (
        ("TENSOR_MATCH", "x"),
        ("TENSOR_MATCH", "self.fc.weight"),
    ):
        found = cost[kind, source]
        assert found is not None and 0 < found < 100_000, (kind, source, found)
    least = {
        kind: min(ns for (k, _), ns in cost.items() if k == kind and ns is not None)
        for kind in ("TENSOR_MATCH", "TYPE_MATCH")
    }
    assert least["TENSOR_MATCH"] > least["TYPE_MATCH"]  # more than ten things are compared, not one
    assert cost["NO_TENSOR_ALIASING", "x"] is None  # it keeps a state
    assert sum(guard.nanoseconds is not None for guard in guards) > len(guards) / 2


def test_nothing_of_the_script_changes(deep_and_fast: tuple[Ran, Ran]) -> None:
    deep, fast = deep_and_fast
    assert deep.stdout == fast.stdout
    assert (
        [compile.id for compile in deep.report.compiles] == [compile.id for compile in fast.report.compiles] == ["0/0"]
    )
    assert deep.report.capture_gaps == ()


def test_the_fast_lane_measures_none(deep_and_fast: tuple[Ran, Ran]) -> None:
    assert {guard.nanoseconds for guard in guards_in(deep_and_fast[1])} == {None}


# The first measurement of PyTorch says what it says where another process has the processor meanwhile.
DISTURBED = """\
import torch
from torch._dynamo import guards

guards.profile_guard_manager = lambda *args: 1100.0
net = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(8)))

@torch.compile(backend="eager")
def f(x):
    return net(x)

f(torch.ones(2, 4))
"""


def test_a_disturbed_measurement_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_worker: Worker | None
) -> None:
    """Guards that take microseconds with warm caches are not slow, whatever the one measurement with cold ones says."""
    script = write(tmp_path, DISTURBED)
    monkeypatch.delenv("IRSCOPE_SLOW_GUARDS_US", raising=False)
    ran = run_captured(script, tmp_path / "runs.db", "fast", worker=shared_worker)
    assert "Guard latency = 1100.00 us" in ran.text("0/0/guards")
    assert ran.findings("slow-guards") == [] and ran.report.capture_gaps == ()
    monkeypatch.setenv("IRSCOPE_SLOW_GUARDS_US", "0.01")
    again = run_captured(script, tmp_path / "runs.db", "fast", worker=shared_worker)
    [finding] = again.findings("slow-guards")
    assert re.fullmatch(
        r"\d+ guards are checked before every call, which takes [\d.]+ µs, and 1\.1 ms with cold caches\.",
        finding.message,
    )
