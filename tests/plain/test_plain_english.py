"""The check for phrases that read like a translation: it finds what it names, and leaves usual sentences alone."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("plain_english", ROOT / "scripts" / "plain_english.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "scope", "phrase"),
    [
        ("The line; nothing where it is missing.", "docstrings", "nothing where"),
        ("A long line that ends with nothing\n    where it is missing.", "docstrings", "nothing where"),
        ("For whoever asks.", "docs", "whoever"),
        ("There is no stage ptx in run 1.", "strings", "There is no stage"),
        ("The back end is unknown.", "strings", "back end"),
        ("A process of its own.", "strings", "A process of its own"),
        ("Empty where it has none.", "docs", "Empty where"),
    ],
)
def test_found(check: types.ModuleType, text: str, scope: str, phrase: str) -> None:
    (found,) = check.complaints([check.Piece(ROOT / "x.md", 7, text, scope)])
    assert f"{phrase!r} ({scope}); write: " in found


def test_the_line_of_the_phrase(check: types.ModuleType) -> None:
    (found,) = check.complaints([check.Piece(ROOT / "x.py", 7, "One.\nTwo, made anew.", "docstrings")])
    assert found.startswith("x.py:8: ")


@pytest.mark.parametrize(
    "text",
    [
        "It does nothing where a stub is enough.",
        "There is no run yet.",
        "There is no longer a run.",
        "A stand-alone script.",
    ],
)
def test_left_alone(check: types.ModuleType, text: str) -> None:
    assert not [*check.complaints([check.Piece(ROOT / "x.py", 1, text, scope) for scope in ("docs", "strings")])]
