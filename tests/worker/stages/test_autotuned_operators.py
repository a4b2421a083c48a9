"""Autotuning of real operators on a CPU: what was timed is kept, and the choice is PyTorch's."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.store.store import Store
from support import run_forked, write

pytestmark = [pytest.mark.worker, pytest.mark.nightly]

SCRIPT = """\
import torch
import torch._inductor.config as config

torch.manual_seed(0)
config.freezing = True
config.max_autotune_gemm_backends = "CPP,ATEN"
net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32)).eval()
fast = torch.compile(net, mode="max-autotune")
with torch.no_grad():
    fast(torch.randn(64, 64))
"""


def test_each_operator_has_its_choices_with_times(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, SCRIPT), tmp_path / "runs.db", "deep")
    assert not [gap for gap in ran.report.capture_gaps if "autotuning" in gap.what]
    with Store(str(tmp_path / "runs.db")) as store:
        operators = store.stage_data(ran.report.run, "0/0/autotuning")["operators"]
        names = [one.name for one in ran.report.compiles[0].stages]
    assert names.count("autotuning") == 1 and "timed-choices" not in names
    assert [(one["decision"], one["chosen"], len(one["choices"])) for one in operators] == [("template", 0, 2)] * 2
    assert all(one["key"].startswith(f"{one['operator']} ") for one in operators)
    for one in operators:
        assert {each["kind"] for each in one["choices"]} == {"template", "library"}
        seconds = [each["seconds"] for each in one["choices"]]
        assert seconds == sorted(seconds) and 0 < seconds[0] < 1
