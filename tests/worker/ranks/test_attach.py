"""What ``irscope attach`` says of a job that does not go on: where each rank is, and which is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import IRSCOPE, lines_marked, run_cli, write
from truth import CASES

HANGS = (CASES / "hangs" / "hangs.py").read_text(encoding="utf-8")
IN_TIME = 120
"""Seconds for a job to begin to hang."""


@contextmanager
def job(folder: Path, case: str, world: int, armed: bool = True) -> Iterator[int]:
    """A job that hangs, under `irscope run` or without irscope; the number of its launcher."""
    script = write(folder, HANGS)
    ranks = ["--nproc-per-node", str(world)]
    if armed:
        command = [
            IRSCOPE,
            "run",
            *ranks,
            "--lane",
            "fast",
            "--store",
            str(folder / "runs.db"),
            str(script),
            "--",
            case,
        ]
    else:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *ranks, str(script), case]
    with open(folder / "printed", "wb") as printed:
        launcher = subprocess.Popen(command, stdout=printed, stderr=printed)
    try:
        yield launcher.pid
    finally:
        launcher.terminate()
        launcher.wait(60)


def attached(what: object, until: Callable[[Any], bool]) -> Any:
    """What it says, asked again until the job is where it hangs."""
    end = time.monotonic() + IN_TIME
    while True:
        done = run_cli("attach", str(what), "--json", "--store", "/nowhere/runs.db")
        found = json.loads(done.stdout) if done.returncode == 0 else {"hangs": (), "processes": (), "why": done.stderr}
        if until(found) or time.monotonic() > end:
            return found
        time.sleep(0.3)


def line(mark: str) -> int:
    (found,) = lines_marked(HANGS, f"# {mark}")
    return found


def places(found: Any) -> dict[int, int]:
    return {one["rank"]: one["line"] for one in found["processes"]}


def hangs_at(number: int) -> Callable[[Any], bool]:
    return lambda found: any(hang["number"] == number for hang in found["hangs"])


def test_a_rank_in_an_endless_loop(tmp_path: Path) -> None:
    with job(tmp_path, "loop", 2) as launcher:
        found = attached(launcher, lambda found: hangs_at(4)(found) and places(found).get(1) == line("spin"))
        of_store = run_cli("attach", tmp_path, "--store", "runs.db").stdout
    (hang,) = found["hangs"]
    assert (hang["operation"], hang["waiting"], hang["missing"]) == ("all_reduce", [0], [1])
    assert places(found) == {0: line("all"), 1: line("spin")} and hang["line"] == line("all")
    assert "Rank 1 has not come to it." in of_store and "runs spin" in of_store


@pytest.mark.nightly
def test_a_rank_that_compiles_for_a_minute(tmp_path: Path) -> None:
    with job(tmp_path, "compile", 3) as launcher:
        found = attached(launcher, lambda found: hangs_at(4)(found) and places(found).get(1) == line("slow"))
        time.sleep(3)
        later = attached(launcher, hangs_at(4))
    (hang,) = found["hangs"]
    assert (hang["waiting"], hang["missing"]) == ([0, 2], [1])
    compiling = [one["compiling"] for one in later["processes"]]
    assert compiling[0] == compiling[2] == ""
    assert compiling[1].startswith(f"step (script.py:{line('step') - 1}, 0/0) for "), compiling
    assert "compiling frame 1, for" in compiling[1]


@pytest.mark.nightly
def test_collectives_that_do_not_match(tmp_path: Path) -> None:
    with job(tmp_path, "mismatch", 3) as launcher:
        found = attached(launcher, lambda found: any(len(hang["differing"]) == 3 for hang in found["hangs"]))
    (hang,) = found["hangs"]
    assert hang["missing"] == []
    assert {rank: words.split()[0] for rank, words in hang["differing"].items()} == {
        "0": "all_reduce", "1": "broadcast", "2": "all_reduce",
    }  # fmt: skip
    assert places(found) == {0: line("all"), 1: line("broadcast"), 2: line("all")}


@pytest.mark.nightly
def test_a_rank_that_is_dead(tmp_path: Path) -> None:
    """`irscope run` stops the others ten seconds later."""
    with job(tmp_path, "dead", 2) as launcher:
        found = attached(launcher, lambda found: places(found) == {0: line("asleep")})
        said = run_cli("attach", str(launcher)).stdout
    assert places(found) == {0: line("asleep")}
    assert "Rank 1 has no process" in said


@pytest.mark.nightly
@pytest.mark.skipif(
    shutil.which("py-spy", path=os.path.dirname(sys.executable)) is None, reason="py-spy is not installed"
)
@pytest.mark.parametrize(("case", "at"), [("loop", "spin"), ("compile", "slow"), ("mismatch", "broadcast")])
def test_a_job_that_irscope_has_not_started(tmp_path: Path, case: str, at: str) -> None:
    with job(tmp_path, case, 2, armed=False) as launcher:
        wanted = {0: line("all"), 1: line(at)}
        found = attached(launcher, lambda found: places(found) == wanted)
    assert places(found) == wanted
    (hang,) = found["hangs"]
    if case == "mismatch":
        assert hang["differing"] == {"0": "all_reduce", "1": "broadcast"}
    else:
        assert (hang["operation"], hang["waiting"], hang["missing"]) == ("all_reduce", [0], [1])
    assert bool(found["processes"][1]["compiling"]) == (case == "compile")
