"""Programs that the script exports by itself: stages, whatever the lane and the pipeline."""

from __future__ import annotations

from pathlib import Path

from irscope.worker.client import Worker
from support import run_captured, write

SCRIPT = """\
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum().int().item() > 3:
            return x * 2
        return x + 1

torch.export.draft_export(Net(), (torch.ones(4),))
torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
"""


def test_what_the_script_exports_is_stages(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(write(tmp_path, SCRIPT), tmp_path / "runs.db", worker=shared_worker)
    assert ran.report.outcome.message == "The script ran to its end."
    drafted, linear = ran.report.compiles
    assert [(one.id, one.title) for one in (drafted, linear)] == [("exported-0/0", "Net"), ("exported-1/0", "Linear")]
    assert (drafted.callers[0].line, linear.callers[0].line) == (9, 10)
    assert "torch.ops.aten.mul.Tensor(x, 2)" in ran.text("exported-0/0/exported-program")
    assert "data-dependent-error" in ran.text("exported-0/0/draft-export")
    assert [stage.name for stage in linear.stages] == ["exported-program"], "export.export has no such report"
    (finding,) = ran.report.findings
    assert (finding.code, finding.range.start.line) == ("data-dependent-error", 5)
