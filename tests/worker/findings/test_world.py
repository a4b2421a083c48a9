"""Scripts after public reports (`tests/data/world`): what is said of them is what was found out without irscope."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Prover, Status
from irscope.protocol import Lane, RecompilationFacts
from irscope.worker.client import Worker
from support import run_captured

SCRIPTS = Path(__file__).parents[2] / "data" / "world"
STEP = "    opt.step()\n"
SKIPPED = "    if not torch.compiler.is_compiling():\n        opt.step()\n"


@pytest.mark.parametrize(
    ("name", "breaks"),
    [
        ("if_step", {"GB0008", "GB0025", "GB0123"}),
        ("if_step_silent", {"GB0007", "GB0025"}),
        pytest.param("if_step_sched", {"GB0007", "GB0025"}, marks=pytest.mark.nightly),
        pytest.param("plateau", {"GB0008", "GB0025", "GB0123"}, marks=pytest.mark.nightly),
        ("amp_step", {"GB0008", "GB0025"}),
    ],
)
def test_no_hint_leaves_a_step_out(name: str, breaks: set[str], tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    cut = [finding for finding in ran.report.findings if finding.kind == "graph-break"]
    assert {finding.code for finding in cut} == breaks
    assert not [finding for finding in cut if "is_compiling" in str(finding) or "line of the library" in str(finding)]
    for finding in cut:
        if finding.code == "GB0123":  # the optimizer steps after the backward, wherever that is
            assert any("loss.backward()\n    opt.step()" in hint for hint in finding.hints), finding.hints


@pytest.mark.parametrize("name", ["if_step_silent", pytest.param("if_step_sched", marks=pytest.mark.nightly)])
def test_a_step_that_is_left_out_is_never_verified(name: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    """Also where the text is not looked at: the weights show it."""
    script = SCRIPTS / f"{name}.py"
    text = script.read_text()
    with Prover(RunSpec(str(script), (), Lane.FAST), shared_worker) as prover:
        original = prover.begin()
        (finding,) = [finding for finding in original.findings if finding.code == "GB0007"]
        changed = {str(script): text.replace(STEP, SKIPPED)}
        proof, _ = prover.prove(changed, finding)
        prover._left_out = lambda texts: ""  # type: ignore[method-assign]
        by_run, _ = prover.prove(changed, finding)
    assert (proof.status, by_run.status) == (Status.UNPROVEN, Status.DISPROVEN), by_run.reason
    assert "opt.step()" in proof.reason
    assert "The results differ" in by_run.reason


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        (
            "nearest",
            [
                ("grad_mode", ["0/1", "0/3"]),
                ("x", ["0/2"]),
                ("num_threads", ["0/4"]),
                ("inference_mode", ["0/5"]),
                ("inference_tensor", ["0/6"]),
            ],
        ),
        ("nearest_dtype", [("x", ["0/1"]), ("flip", ["0/2", "0/4"]), ("x", ["0/3"])]),
        ("cache_len", [("x", ["0/1"])]),
    ],
)
def test_the_cause_is_the_smallest_change(
    name: str, causes: list[tuple[str, list[str]]], tmp_path: Path, shared_worker: Worker | None
) -> None:
    ran = run_captured(SCRIPTS / f"{name}.py", tmp_path / "runs.db", worker=shared_worker)
    facts = [(finding, finding.facts) for finding in ran.findings("recompilation")]
    found = [
        (known.state or known.source, list(finding.compiles))
        for finding, known in facts
        if isinstance(known, RecompilationFacts)
    ]
    assert sorted(found, key=lambda cause: cause[1]) == causes
    if name == "cache_len":
        assert "; and `cache.seen` was 0 when this was compiled" in facts[0][0].message
