"""The edits of docs/tutorial.md, applied one after the other to the example that it begins with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from irscope.worker.client import Worker
from support import Ran, run_captured, write

ROOT = Path(__file__).parents[3]
FOUND = [{"graph-break", "recompilation"}, None, {"recompilation"}, set(), set(), set()]
"""Kinds of findings in the fast lane before the first edit and after each; None where one step has two edits."""


def edits() -> Iterator[tuple[str, str]]:
    """What each edit replaces, and by what."""
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    for text in re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        lines = text.splitlines(keepends=True)
        yield (
            "".join(line[1:] for line in lines if line[0] != "+"),
            "".join(line[1:] for line in lines if line[0] != "-"),
        )


def versions() -> list[str]:
    example = (ROOT / "examples" / "gpt_training.py").read_text("utf-8")
    assert example.count("layers: int = 2") == 1
    made = [example.replace("layers: int = 2", "layers: int = 1")]  # a second one breaks and recompiles nothing more
    for before, after in edits():
        assert made[-1].count(before) == 1, before
        made.append(made[-1].replace(before, after))
    return made


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None) -> list[Ran | None]:
    folder, made = tmp_path_factory.mktemp("tutorial"), versions()
    assert len(made) == len(FOUND)
    return [
        None if kinds is None else run_captured(write(folder, source), folder / "runs.db", worker=shared_worker)
        for source, kinds in zip(made, FOUND, strict=True)
    ]


def test_each_step_removes_its_finding(runs: list[Ran | None]) -> None:
    assert [ran and {finding.kind for finding in ran.report.findings} for ran in runs] == FOUND


def test_no_step_changes_what_the_script_prints(runs: list[Ran | None]) -> None:
    printed = [ran.stdout for ran in runs if ran is not None]
    assert "step 5: length 25" in printed[0]
    assert printed == [printed[0]] * len(printed)
