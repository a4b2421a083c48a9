"""Misses in the FX graph cache: what changed since an earlier run, and nothing where the user's own run would hit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from irscope.protocol import Finding
from irscope.worker.client import Worker
from support import Ran, run_captured, write

# Matrix products only: no kernel is compiled, so that a run is short.
SCRIPT = """\
import os
import torch

torch._inductor.config.epilogue_fusion = os.environ["EPILOGUE"] == "1"

@torch.compile
def set_otherwise(a):
    return a @ a

@torch.compile
def hit(a, b):
    return a @ b

@torch.compile
def edited(a):
    return a @ a @ a

@torch.compile(options={"epilogue_fusion": True})
def of_another_size(a, b):
    return b @ a

@torch.compile(options={"epilogue_fusion": True})
def always_the_same(a):
    return (a @ a).T @ a

hit(torch.ones(3, 3), torch.ones(3, 3))
if __name__ == "__main__" and "only-hit" not in os.environ.get("WHAT", ""):
    set_otherwise(torch.ones(4, 4))
    edited(torch.ones(4, 4))
    of_another_size(torch.ones(5, 5), torch.ones(int(os.environ["ROWS"]), 5))
    always_the_same(torch.ones(6, 6))
"""
BEFORE = {"EPILOGUE": "1", "ROWS": "5"}
AFTER = {"EPILOGUE": "0", "ROWS": "7"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None) -> list[Ran]:
    """The script as it was, twice with other settings and an edit; before them, `hit` alone without irscope."""
    folder = tmp_path_factory.mktemp("caches")
    store, cache = folder / "runs.db", {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    script = write(folder, SCRIPT)

    def run(settings: dict[str, str]) -> Ran:
        return run_captured(script, store, "deep", env={**os.environ, **cache, **settings}, worker=shared_worker)

    ran = [run(BEFORE)]
    plain = {**os.environ, **cache, **AFTER, "WHAT": "only-hit"}
    subprocess.run([sys.executable, str(script)], env=plain, check=True, timeout=300)
    write(folder, SCRIPT.replace("a @ a @ a", "a @ (a @ a)"))
    return [*ran, run(AFTER), run(AFTER)]


def misses(ran: Ran) -> dict[str, Finding]:
    """By the function at which they stand."""
    assert ran.report.outcome.kind.value == "completed", ran.stderr[-3000:]
    assert ran.report.capture_gaps == ()
    lines = Path(ran.report.script).read_text().split("\n")
    at = {finding: finding.range.start for finding in ran.findings("cache-miss")}
    return {lines[start.line - 1].split("def ")[1].split("(")[0]: finding for finding, start in at.items()}


def test_a_first_miss_is_no_finding(runs: list[Ran]) -> None:
    assert misses(runs[0]) == {}
    names = [stage.name for compile in runs[0].report.compiles for stage in compile.stages]
    assert names.count("cache-key") == 5


def test_what_changed_is_named(runs: list[Ran]) -> None:
    """Not for what was edited, nor for what is the same, nor for what the user's own run finds in the cache."""
    found = misses(runs[1])
    assert set(found) == {"set_otherwise", "of_another_size"}
    assert "`torch._inductor.config.epilogue_fusion` became False (was True)." in found["set_otherwise"].message
    assert "the size of `b` became [7, 5] (was [5, 5])." in found["of_another_size"].message
    assert {finding.code for finding in found.values()} == {"fx-graph-cache-miss"}


def test_what_was_seen_before_is_no_change(runs: list[Ran]) -> None:
    assert misses(runs[2]) == {}


def test_every_stage_is_there_whatever_the_cache_holds(runs: list[Ran]) -> None:
    for ran in runs:
        assert sum(stage.name == "output-code" for compile in ran.report.compiles for stage in compile.stages) == 5
