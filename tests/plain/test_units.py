"""Numbers and units read as the table says that the TypeScript module is held to as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from irscope.vocabulary import units

CASES = json.loads((Path(__file__).parents[1] / "units.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("name", "arguments", "text"), [(name, *case) for name, cases in CASES.items() for case in cases]
)
def test_text(name: str, arguments: list[Any], text: str) -> None:
    assert getattr(units, name)(*arguments) == text


def test_exact_size() -> None:
    assert [units.exact_size(n) for n in (1, 812, 12_288)] == ["1 byte", "812 bytes", "12,288 bytes (12.3 kB)"]
