"""The corpus of `tests/cases`: thirty scripts and everything that is true of each.

Every tenth runs in a fresh process, as on the command line, the others in forks, as in the editor.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.worker.client import Worker
from support import run_captured
from truth import case_names, compare, script_of

FRESH = frozenset(case_names()[::10])


ONLY_SINCE = {
    "gb_context_class": ("2.13", "2.9 and 2.11 give up in `__enter__`, at another line"),
    "gb_deepcopy_state": ("2.13", "2.9 and 2.11 have another break, for `copy.deepcopy` of anything"),
    "gb_raise_validation": ("2.11", "2.9 gives up at each frame by itself"),
    "gb_train_loop_log": ("2.11", "2.9 has no id for a logger's break"),
}
"""The truth of a case is that of the version which it was written with."""
NAMES = [
    pytest.param(name, marks=pytest.mark.since_torch(*ONLY_SINCE[name])) if name in ONLY_SINCE else name
    for name in case_names()
]


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    worker = None if name in FRESH else shared_worker
    ran = run_captured(script_of(name), tmp_path / "runs.db", "fast", cwd=str(tmp_path), worker=worker)
    assert compare(name, ran.report).problems == []
    assert ran.report.capture_gaps == ()
    if name.startswith("ok_"):
        assert ran.report.findings == (), "nothing of any kind is to be said of a clean script"
