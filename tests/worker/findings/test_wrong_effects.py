"""No effect of a function that is another one after a fix goes unseen, and the right fix is the same as the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import FoundEvidence, Lane, OutcomeKind
from irscope.runner import draws
from irscope.runner.compared import AT_END, compared, settled, settled_at_end
from irscope.runner.evidence import REFERENCE
from irscope.store.store import Store
from irscope.usercode.left_out import left_out
from irscope.worker.client import Worker
from support import write
from wrong_effects import EFFECTS, Effect, script

# What only a run shows, one of each kind; `npm run test:all` has all.
DAILY = (
    "a parameter is frozen", "another memory format", "two results that are the same", "the order of entries",
    "a queue", "a generator's numbers", "the precision", "a class of errors",
)  # fmt: skip
OF_TORCH = ("NumPy's stream", "a stream of Python's")
"""Compiled code draws from another stream than eager mode: the right one is not verified either."""
UNSEEN = {"other strides", "the copy of an input", "a filter of warnings", "the words of an error"}
"""The limits in `docs/fixes.md`, and what only matters to what is done later."""


def differences(effects: dict[str, Effect], folder: Path, worker: Worker | None) -> dict[str, tuple[str, str]]:
    """What differs from the original in the wrong and in the right function, by the effect's name: all in one script."""
    sides = {"original": (False, False), "right": (True, False), "wrong": (True, True)}
    runs = {
        name: _evidence(script(*side, effects), folder / name, name == "original", worker)
        for name, side in sides.items()
    }
    return {
        name: (
            _difference(runs["original"], runs["wrong"], number),
            _difference(runs["original"], runs["right"], number),
        )
        for number, name in enumerate(effects)
    }


def _evidence(text: str, folder: Path, without_compile: bool, worker: Worker | None) -> list[Any]:
    torch = pytest.importorskip("torch")
    folder.mkdir()
    spec = RunSpec(
        str(write(folder.parent, text)), (), Lane.FAST, without_compile=without_compile, evidence=str(folder)
    )
    with Store(str(folder / "runs.db")) as store:
        _, outcome = execute(spec, store, worker=worker)
    assert outcome.kind is OutcomeKind.COMPLETED, outcome.message
    return list(torch.load(folder / REFERENCE, weights_only=True))


def _difference(original: list[Any], other: list[Any], number: int) -> str:
    places: dict[str, bool] = {
        place: is_clock for name, place, is_clock in original[1] if name == f"f{number}#{number}"
    }
    expected, found = (
        {
            name: (settled_at_end if name.endswith(AT_END) else settled)(places, call)
            for name, call in run[0].items()
            if name.startswith(f"f{number}#") and not name.endswith(draws.PUSHED)  # of runs without compile alone
        }
        for run in (original, other)
    )
    assert expected
    answer = FoundEvidence()
    compared(expected, found, answer)
    return next(iter(answer.differences + answer.types), "")


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(DAILY, id="daily"),
        # Two scripts: a proof sees the first 64 programs of one.
        *(pytest.param(tuple(EFFECTS)[half::2], marks=pytest.mark.nightly, id=f"half {half}") for half in (0, 1)),
    ],
)
def test_each_effect_is_seen(names: tuple[str, ...], tmp_path: Path, shared_worker: Worker | None) -> None:
    effects = {name: EFFECTS[name] for name in names}
    seen = differences(effects, tmp_path, shared_worker)
    missed = [name for name, (wrong, _) in seen.items() if not wrong and not _by_text(effects[name])]
    alarms = {name: right for name, (_, right) in seen.items() if right and name not in OF_TORCH}
    assert set(missed) <= UNSEEN and not alarms


def _by_text(effect: Effect) -> bool:
    return bool(left_out(effect.text(0, True, False), effect.text(0, True, True)))
