"""The pipeline ``xla`` for real: lazy tensors of PyTorch/XLA down to LLVM IR and assembly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from five_models import SCRIPTS, TRAINING_SCRIPTS, lines_kept
from irscope.protocol import Severity
from irscope.provenance import Provenance
from irscope.store.store import Store
from support import Ran, lines_marked, run_captured, run_plain, write

RunXla = Callable[[Path, str], Ran]
GRAPHS = ("0/0/lazy-graph", "0/0/hlo", "0/0/hlo-optimized")
TEXTS = ("lazy-ir", "stablehlo", "hlo-text", "hlo-optimized-text", "buffer-assignment")


@pytest.fixture(scope="module")
def ran_xla(python_with: Callable[[str], str]) -> RunXla:
    python = python_with("xla")

    def run(folder: Path, source: str) -> Ran:
        return run_captured(write(folder, source), folder / "runs.db", lane="deep", pipeline="xla", python=python)

    return run


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_models(ran_xla: RunXla, name: str, tmp_path: Path) -> None:
    """Numbers agree (the script checks them), and operations keep the lines of the model down to the kernels."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_xla(tmp_path, SCRIPTS[name])
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree"), ran.report.outcome
    names = [stage.name for stage in ran.compile("0/0").stages]
    assert set(TEXTS) <= set(names)
    for stage in GRAPHS:
        kept, count = lines_kept(ran, stage)
        assert count > 0
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
    kernels = ran.report.kernels
    assert sum(bool(one.origins) for one in kernels) >= 0.95 * len(kernels) > 0


@pytest.mark.parametrize("name", list(TRAINING_SCRIPTS))
def test_training(ran_xla: RunXla, name: str, tmp_path: Path) -> None:
    """Gradients agree, and the backward has stages with the lines of the forward."""
    if name not in ("mlp", "conv"):
        pytest.importorskip("transformers")
    ran = ran_xla(tmp_path, TRAINING_SCRIPTS[name])
    assert (ran.report.capture_gaps, ran.report.findings) == ((), ())
    assert ran.stdout.startswith("agree"), ran.report.outcome
    for stage in [f"{graph}{side}" for graph in GRAPHS for side in ("", "-backward")]:
        kept, count = lines_kept(ran, stage)
        assert count > 0
        assert kept >= 0.95 * count, f"{kept} of {count} in {stage}"
