"""The evidence of a run is read by another process, which knows only Python's own types and tensors."""

from __future__ import annotations

import enum
import json
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.runner.calls import small
from irscope.runner.evidence import ANSWER, REFERENCE, Evidence


class Format(str, enum.Enum):
    NCHW = "NCHW"


class Size(int):
    def __str__(self) -> str:
        raise AssertionError


def unreadable(*_: object, **__: object) -> Any:
    raise pickle.UnpicklingError


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=(), load=unreadable))


def test_values_of_types_of_their_own_are_kept_as_what_they_hold() -> None:
    given = {"a": Format.NCHW, "b": Size(3), "c": True, "d": None, "e": 2.5, "f": ["x"]}
    kept = small(given)
    assert [(type(value), value) for value in kept.values()] == [
        (str, "NCHW"), (int, 3), (bool, True), (type(None), None), (float, 2.5), (list, ["x"]),
    ]  # fmt: skip


def test_what_cannot_be_read_back_is_said_and_stays(tmp_path: Path) -> None:
    (tmp_path / REFERENCE).write_text("the original's")
    evidence = Evidence(str(tmp_path))
    evidence._results = {"f#0: the run's inputs": {}}
    evidence.serve()
    assert "cannot be read back" in json.loads((tmp_path / ANSWER).read_text())["problem"]
    assert (tmp_path / REFERENCE).read_text() == "the original's"
