"""The corpus of `tests/cases`: thirty scripts and everything that is true of each.

`npm test` runs those that only break graphs one after the other in one run; at night each has a run of its own, in a
fork, as in the editor, and every tenth one also in a fresh process, as on the command line.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from irscope.protocol import Report
from irscope.worker.client import Worker
from script_runs import run_all
from support import run_captured
from truth import case_names, compare, script_of, truth_of
from versions import OWN, torch_version

ONLY_SINCE = {
    "gb_context_class": ("2.13", "2.9 and 2.11 give up in `__enter__`, at another line"),
    "gb_deepcopy_state": ("2.13", "2.9 and 2.11 have another break, for `copy.deepcopy` of anything"),
    "gb_raise_validation": ("2.11", "2.9 gives up at each frame by itself"),
    "gb_train_loop_log": ("2.11", "2.9 has no id for a logger's break"),
}
"""The truth of a case is that of the version which it was written with."""


def only_breaks(name: str) -> bool:
    """Whether it can run before and after others: it does not end by an error, and no compile is to be told by its id,
    which other scripts use, too."""
    truth = truth_of(name)
    return not truth["errors"] and not truth["recompiles"]


def of_versions(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.since_torch(*ONLY_SINCE[name])] if name in ONLY_SINCE else []


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    # What is found in those that only break graphs is looked at in test_cases_in_one_run, too.
    return [*of_versions(name), pytest.mark.nightly] if only_breaks(name) else of_versions(name)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in case_names()])
def test_case(name: str, tmp_path: Path, shared_worker: Worker | None) -> None:
    run_and_check(name, tmp_path, shared_worker)


@pytest.mark.nightly  # test_markers has a script that runs in a fresh process every time
@pytest.mark.parametrize("name", [pytest.param(name, marks=of_versions(name)) for name in case_names()[::10]])
def test_case_in_a_fresh_process(name: str, tmp_path: Path) -> None:
    run_and_check(name, tmp_path, None)


def run_and_check(name: str, folder: Path, worker: Worker | None) -> None:
    ran = run_captured(script_of(name), folder / "runs.db", "fast", cwd=str(folder), worker=worker)
    assert ran.report.capture_gaps == ()
    check(name, ran.report)


@pytest.mark.skipif(
    torch_version() != OWN, reason="the truth of a case is that of the version which it was written with"
)
def test_cases_in_one_run(tmp_path: Path) -> None:
    """What is found in a script does not depend on what ran before it, with Dynamo reset in between."""
    names = [name for name in case_names() if only_breaks(name)]
    assert len(names) > 15
    report = run_all(tmp_path, "driver", [script_of(name) for name in names]).report
    for name in names:
        mine = files_of(name)
        check(name, dataclasses.replace(report, findings=tuple(one for one in report.findings if one.file in mine)))
    of_any = {file for name in names for file in files_of(name)}
    assert [one for one in report.findings if one.file not in of_any] == []


def files_of(name: str) -> set[str]:
    script = script_of(name)
    return {str(script), *map(str, script.with_name(f"{name}_lib").rglob("*.py"))}


def check(name: str, report: Report) -> None:
    assert compare(name, report).problems == []
    if name.startswith("ok_"):
        assert report.findings == (), "nothing of any kind is to be said of a clean script"
