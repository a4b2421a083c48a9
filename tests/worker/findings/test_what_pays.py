"""What pays is found, and what changes numbers is not called so, with planted candidates whose gain is in seconds of sleep."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Status
from irscope.driver.tuning import tuning
from irscope.driver.tuning.candidates import Candidate, Facts
from irscope.fixing.source import Source
from support import write

SCRIPT = """\
import time
import torch

wait, factor = 0.04, 2.0


class Model(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x) * factor


model = Model(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model = torch.compile(model, backend="eager")
while True:
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    time.sleep(wait)
"""


def _replaced(source: Source, facts: Facts, changes: dict[str, str]) -> str:
    text = source.text
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def _planted(name: str, **changes: str) -> Candidate:
    texts = {"wait, factor = 0.04, 2.0": f"wait, factor = {changes['wait']}, {changes['factor']}"}
    return Candidate(name, name, functools.partial(_replaced, changes=texts))


@pytest.mark.nightly
def test_what_pays_is_first_and_what_changes_numbers_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = (_planted("no wait", wait="0.0", factor="2.0"), _planted("wrong", wait="0.0", factor="2.01"))
    for name, value in {"CANDIDATES": planted, "_NAMES": ["no wait", "wrong"], "ROUNDS": 6}.items():
        monkeypatch.setattr(tuning, name, value)
    monkeypatch.setattr(tuning, "candidates_for", lambda facts: list(planted))
    script = write(tmp_path, SCRIPT)
    found = tuning.tuned(RunSpec(str(script)), 500.0)
    assert not found.problem
    assert found.best is not None, (found.notes, found.ended_early, found.rows)
    assert (found.best.name, found.best.pays) == ("no wait", True)
    right, wrong = found.rows
    assert right.status is Status.VERIFIED
    assert any("gradient" in check for check in right.checks)
    assert wrong.gain is not None
    assert wrong.gain.is_faster
    assert (wrong.status, wrong.pays) == (Status.DISPROVEN, False)
    assert "differ" in wrong.reason
    assert script.read_text() == SCRIPT


def test_a_script_without_enough_steps_says_so(tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT.replace("while True", "for _ in range(3)"))
    found = tuning.tuned(RunSpec(str(script)), 300.0)
    assert "only 3 steps" in found.problem


def test_a_script_that_fails_before_its_steps_are_timed_says_so(tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT.replace("    time.sleep(wait)", "    raise KeyError('lost')"))
    found = tuning.tuned(RunSpec(str(script)), 300.0)
    assert "lost" in found.problem
    assert not found.rows


def test_when_the_time_is_over_it_ends_with_what_it_has(tmp_path: Path) -> None:
    found = tuning.tuned(RunSpec(str(write(tmp_path, SCRIPT))), 0.5)
    assert "budget" in found.ended_early
    assert found.best is None
