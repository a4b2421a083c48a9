"""The corpus of `tests/cases`: thirty scripts and everything that is true of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import run_captured
from truth import case_names, compare, script_of


@pytest.mark.parametrize("name", case_names())
def test_case(name: str, tmp_path: Path) -> None:
    ran = run_captured(script_of(name), tmp_path / "runs.db", "fast", cwd=str(tmp_path))
    assert compare(name, ran.report).problems == []
    assert ran.report.capture_gaps == ()
    if name.startswith("ok_"):
        assert ran.report.findings == (), "nothing of any kind is to be said of a clean script"
