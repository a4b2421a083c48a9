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


@pytest.mark.parametrize(
    ("text", "scope", "kind"),
    [
        (
            "/** A click zooms in on a box, drawing the pointer over the chart on what is drawn over. */",
            "docstrings",
            "ends in a preposition",
        ),
        (
            "Of the FX graph cache; of a forward and a backward that which costs more counts.",
            "docstrings",
            "begins with Of",
        ),
        ("The sizes; None if its\n    parameters are others.", "docstrings", "are others"),
        ("/** The pointer is drawn, and does not click, from here on. */", "docstrings", "from here on"),
        ("The one that costs more\n * than that which runs.", "docstrings", "that which"),
        ("The box that a node\nis a part of.", "docstrings", "ends in a preposition"),
        ("`print` and its like", "docs", "the like"),
        ("Returns 0 where none was found.", "docstrings", "a value where"),
        ("/** Those that are open. */", "docstrings", "begins with Those"),
        ("That nobody reads.", "docstrings", "begins with That"),
        ("So many of them at most.", "docstrings", "so many"),
        ("The newest; failing that, the first.", "strings", "failing that"),
        ("Raises LookupError for what is not a run.", "docstrings", "what is not"),
    ],
)
def test_what_nobody_would_say(check: types.ModuleType, text: str, scope: str, kind: str) -> None:
    found = check.unsaid([check.Piece(ROOT / "x.md", 7, text, scope)])
    assert any(line.startswith("x.md:") and line.endswith(f"({kind})") for line in found)


@pytest.mark.parametrize(
    "text",
    [
        "Of course it is there.",
        "The types of all nodes. It tells of 3 of them.",
        "It does nothing if the list is empty.",
        "The others that are open come last.",
        "What the pass did is over.",
        "A list of those that were left out.",
        "The file that a line belongs to, and what it is for.",
    ],
)
def test_what_people_say(check: types.ModuleType, text: str) -> None:
    assert check.unsaid([check.Piece(ROOT / "x.md", 1, text, "docs")]) == []
