"""`irscope profile --memory`: who holds the memory of a step at its peak, measured on the CPU."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support import run_cli_forked, write

pytestmark = pytest.mark.worker

TRAINING = """\
import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 512), torch.nn.Linear(512, 64)

    def forward(self, x):
        hidden = torch.sigmoid(self.up(x)).exp().sin()
        return self.down(hidden).square().mean(), hidden


net = Net()
optimizer = torch.optim.Adam(net.parameters())
fast = torch.compile(net)
losses = []
table = torch.randn(500_000)
head = table[:100]
del table
for _ in range(5):
    loss, hidden = fast(torch.ones(2048, 64))
    losses.append(loss)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("printed", len(losses))
"""
HIDDEN = 2048 * 512 * 4
WEIGHTS = (64 * 512 * 2 + 512 + 64) * 4


def memory_of(script: Path, store: Path) -> dict[str, Any]:
    done = run_cli_forked("profile", script, "--calls", "1", "--memory", "--json", "--store", store)
    assert done.returncode == 0, done.stderr
    assert "printed 5" in done.stderr
    return json.loads(done.stdout)["memory"]  # type: ignore[no-any-return]


def test_a_step_s_peak_is_what_is_held_and_for_what(tmp_path: Path) -> None:
    script = write(tmp_path, TRAINING)
    found = memory_of(script, tmp_path / "runs.db")
    assert (found["what"], found["is_device"], found["reserved_bytes"]) == ("step", False, None)
    assert found["peak_in"] == "backward of 0/0"
    by_kind = Counter[str]()
    for block in found["held"]:
        by_kind[block["kind"]] += block["bytes"]
    assert sum(by_kind.values()) == found["peak_bytes"] == found["by_kind"]["nodes"][0]["inclusive"][0]
    assert max(size for _, size in found["curve"]) == found["peak_bytes"]
    assert by_kind["parameters"] == WEIGHTS and by_kind["not known"] == 0
    assert 2 * WEIGHTS <= by_kind["optimizer state"] < 2.01 * WEIGHTS
    assert by_kind["outputs of graphs"] >= HIDDEN <= by_kind["zeros for outputs without a gradient"]
    saved = next(one for one in found["held"] if one["kind"] == "saved for the backward")
    assert (saved["bytes"], saved["module"], Path(saved["file"]).name, saved["line"]) == (HIDDEN, "up", "script.py", 12)
    why = {one["name"]: one["why"] for one in found["held"] if one["kind"] == "variables" and one["why"]}
    assert why == {"head": "a small view of it is used", "losses": "with the graph of its backward"}
    shown = run_cli_forked("show", "--json", "--store", tmp_path / "runs.db")
    codes = {one["code"]: one["range"]["start"]["line"] for one in json.loads(shown.stdout)["findings"]}
    assert codes == {"memory-saved": 12, "memory-unused-outputs": 26, "memory-kept-graphs": 25, "memory-view": 21}


@pytest.mark.nightly
@pytest.mark.parametrize("before", ["    loss, hidden", "    loss.backward()"])
def test_a_script_that_profiles_itself_has_the_profiler(tmp_path: Path, before: str) -> None:
    """Also if it starts one in the middle of a step that is being noted: two cannot run at once."""
    starts = "    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])\n    profiler.start()\n"
    body = TRAINING.replace(before, starts + before)
    body = body.replace("    optimizer.zero_grad()\n", "    optimizer.zero_grad()\n    profiler.stop()\n")
    body += "assert len(profiler.key_averages()) > 0\n"
    found = memory_of(write(tmp_path, body), tmp_path / "runs.db")
    assert found["what"] == "call", "what was begun was given up for the script's"


def test_what_pytorch_notes_is_what_is_read() -> None:
    """The private names of `irscope.internals.allocations` exist in this torch, and give lines."""
    import torch
    from irscope.internals.allocations import MemoryProfiler

    profiler = MemoryProfiler()
    assert profiler.start() and profiler.is_running
    kept = torch.ones(1000)
    noted, line = profiler.stop(), sys._getframe().f_lineno - 1
    assert not profiler.is_running and len(kept) == 1000
    (block,) = (one for one in noted["blocks"] if one[2] == 4000)
    around, at = [], block[6]
    while at >= 0:
        around.append(noted["spans"][at])
        at = around[-1][0]
    assert [__file__, line] in [[span[2], span[3]] for span in around]
