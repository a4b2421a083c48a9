"""What is said where kernels of a GPU are asked for, and triton is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from irscope.pipeline_captures.inductor.missing_triton import NEEDS, why_missing


def test_what_is_needed_is_what_the_package_declares() -> None:
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f"targets = [\"{NEEDS.to_install}; sys_platform == 'linux'\"]" in declared


@pytest.mark.parametrize(
    ("platform", "words"),
    [("linux", f"To install it: {sys.executable} -m pip install 'triton>="), ("darwin", "for Linux only")],
)
def test_it_says_what_to_do(platform: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert words in why_missing(platform)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert why_missing(platform) == ""
