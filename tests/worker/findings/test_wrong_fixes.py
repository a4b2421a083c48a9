"""A fix that is wrong in one effect is never verified, and nearly every right one is (`benchmarks/offered_fixes.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Proof, Prover, Status
from irscope.protocol import Lane
from irscope.worker.client import Worker
from support import write
from wrong_fixes import CASES, Case

# One of state, of results, of errors and of training; `npm run test:all` has all.
DAILY = ("a tensor of a module", "an input is returned", "another error", "a step is lost")
NAMES = [pytest.param(name, marks=() if name in DAILY else pytest.mark.nightly) for name in CASES]


def proofs(case: Case, folder: Path, worker: Worker | None) -> tuple[Proof, Proof]:
    """Of the wrong and of the right change."""
    script = write(folder, case.script)
    with Prover(RunSpec(str(script), (), Lane.FAST), worker) as prover:
        original = prover.begin()
        (finding,) = [finding for finding in original.findings if finding.code == "GB0170"]
        wrong, right = (prover.prove({str(script): text}, finding)[0] for text in (case.wrong, case.right))
    return wrong, right


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_effect_is_never_verified(name: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    wrong, right = proofs(CASES[name], tmp_path, shared_worker)
    assert wrong.status is not Status.VERIFIED
    if name in DAILY[:-1]:
        assert right.status is Status.VERIFIED, right.reason
