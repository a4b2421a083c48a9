"""Helpers that draw with NumPy: what is verified, and what only looks right is not."""

from __future__ import annotations

from pathlib import Path

from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Proof, Prover, Status
from irscope.fixing.proposals import proposals
from irscope.fixing.texts import applied
from irscope.protocol import Finding, Position, Range, Severity
from support import run_forked, shared_worker, write

DRAW = "Draw with NumPy in one operation of the graph"
SPANS = """\
import numpy as np
import torch


def spans(shape: tuple[int, int], share: float) -> np.ndarray:
    rows, columns = shape
    mask = np.zeros((rows, columns), dtype=bool)
    count = int(share * columns + np.random.rand(1).item())
    if count > 0:
        mask[:, np.random.choice(columns, count, replace=False)] = True
    return mask


@torch.compile
def f(x):
    mask = torch.tensor(spans((x.shape[0], x.shape[1]), SHARE), dtype=torch.bool)
    return torch.where(mask, 0.0, x.sin())


f(torch.randn(3, 10))
""".replace("SHARE", "0.2")
TEXT = SPANS.replace("0.2", "0").replace("share * columns", "len(str(share))")
"""The operator makes a float of the integer, so the helper counts other letters."""


def proof_of(tmp_path: Path, text: str, title: str) -> Proof:
    """The proof of the fix of this title, of the first break of a script."""
    script = write(tmp_path, text)
    with Prover(RunSpec(str(script), cwd=str(tmp_path)), shared_worker()) as prover:
        finding = prover.begin().findings[0]
        fix = next(one for one in proposals(finding, text) if one.title == title)
        return prover.prove({finding.file: applied(text, fix.edits)}, finding)[0]


def test_it_is_verified(tmp_path: Path) -> None:
    proof = proof_of(tmp_path, SPANS, DRAW)
    assert proof.status is Status.VERIFIED, proof


def test_what_changes_results_is_not(tmp_path: Path) -> None:
    proof = proof_of(tmp_path, TEXT, DRAW)
    assert (proof.status, "The results differ: " in proof.reason) == (Status.DISPROVEN, True), proof


TWICE = """

def g(x):
    first, second = (torch.tensor(spans((x.shape[0], x.shape[1]), 0.2), dtype=torch.bool) for _ in range(2))
    return torch.where(first, 0.0, x.sin()) + torch.where(second, 0.0, x.exp())


def called(function):
    np.random.seed(3)
    x = torch.arange(30.0).reshape(3, 10).requires_grad_()
    result = function(x)
    result.sum().backward()
    return torch.stack([result, x.grad, torch.full_like(x, np.random.rand())])


print(torch.allclose(called(g), called(torch.compile(g, backend="aot_eager_decomp_partition", fullgraph=True))))
"""
"""That backend merges equal calls, as Inductor does; runs that prove fixes have a backend that merges nothing."""


def test_equal_draws_stay_two(tmp_path: Path) -> None:
    (row,) = (number for number, line in enumerate(SPANS.split("\n"), 1) if line.startswith("    count = int("))
    place = Range(Position(row, 4), Position(row, 9))
    finding = Finding("graph-break", "GB0033", Severity.WARNING, "", "", (), None, "script.py", place, 1, ())
    fix = next(one for one in proposals(finding, SPANS) if one.title == DRAW)
    script = write(tmp_path, applied(SPANS, fix.edits).partition("@torch.compile\n")[0] + TWICE)
    ran = run_forked(script, tmp_path / "runs.db", lane="deep")
    assert ran.stdout.strip() == "True", ran
