"""Runs through the pipeline TorchScript, for its tests."""

from __future__ import annotations

from pathlib import Path

from irscope.ir.nodes import facts_of
from irscope.store.store import Store
from support import Ran, run_forked, write


def ran(folder: Path, source: str) -> Ran:
    """Runs a script to its end."""
    script = write(folder, source)
    found = run_forked(script, folder / "runs.db", "deep", pipeline="torchscript")
    assert found.report.outcome is not None
    assert found.report.outcome.kind.value == "completed", found.stderr
    return found


def share_with_lines(found: Ran, stage: str) -> float:
    """The share of a stage's operations that have a line of a file that is not torch's own."""
    with Store(found.store) as store:
        data = store.stage_data(found.report.run, stage)
    nodes = [one for one in facts_of(data) if one.target.startswith("aten.")]
    assert nodes
    lined = [one for one in nodes if any("/torch/" not in frame.file for frame in one.stack)]
    return len(lined) / len(nodes)
