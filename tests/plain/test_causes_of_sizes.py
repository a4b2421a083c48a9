"""A size for which something is compiled again: what fixed it is tried first."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.driver.fixing.trying import Trying
from irscope.fixing.texts import edits_between
from irscope.protocol import Finding, Fix, Position, Range, Severity

TEXT = "compiled(x)\n"


def finding(kind: str, code: str, file: str = "user.py") -> Finding:
    place = Range(Position(1, 0), Position(1, 11))
    return Finding(kind, code, Severity.WARNING, "", "", (), None, file, place, 1, ())


def propose(one: Finding, text: str) -> list[Fix]:
    return [Fix(one.code, "", edits_between(text, f"{text}# {one.code}\n"))]


def titles(one: Finding, *others: Finding, texts: Any = None) -> list[str]:
    prover: Any = SimpleNamespace(
        original=SimpleNamespace(compiles=(), findings=(one, *others)), text_of=lambda path: TEXT
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("irscope.driver.fixing.trying.proposals", propose)
        return [fix.title for fix in Trying(prover, 1)._fixes(one, texts or {})]


def test_what_fixed_the_size_is_tried_first() -> None:
    """Then with what makes the size dynamic, since its first change is one more compile, and then that alone."""
    again, fixed = finding("recompilation", "recompile-size"), finding("specialization", "specialize-value")
    assert titles(again, fixed) == ["specialize-value", "specialize-value; then recompile-size", "recompile-size"]
    assert titles(again, dataclasses.replace(fixed, file="other.py")) == ["recompile-size"]
    assert titles(finding("recompilation", "recompile-dtype"), fixed) == ["recompile-dtype"]
    assert titles(again, fixed, texts={"user.py": TEXT}) == ["recompile-size"]  # those of a changed text are not known
