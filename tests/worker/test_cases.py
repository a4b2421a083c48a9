"""The corpus of `tests/cases`: thirty scripts and everything that is true of each.

Every third runs in a fresh process, as on the command line, the others in forks, as in the editor.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.worker.client import Worker
from support import run_captured
from truth import case_names, compare, script_of

FRESH = frozenset(case_names()[::3])


@pytest.mark.parametrize("name", case_names())
def test_case(name: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    worker = None if name in FRESH else shared_worker
    ran = run_captured(script_of(name), tmp_path / "runs.db", "fast", cwd=str(tmp_path), worker=worker)
    assert compare(name, ran.report).problems == []
    assert ran.report.capture_gaps == ()
    if name.startswith("ok_"):
        assert ran.report.findings == (), "nothing of any kind is to be said of a clean script"
