"""Processes that a script starts are captured as it is, and nothing is different for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from irscope.protocol import Budget, Limit, Report
from irscope.store.store import Store
from support import Ran, run_captured, run_forked, run_plain, write

ENGINE = Path(__file__).parents[2] / "cases" / "engine"


def line_of(file: str, mark: str) -> int:
    lines = (ENGINE / file).read_text(encoding="utf-8").split("\n")
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


def processes(report: Report) -> list[tuple[int, str, int]]:
    return [(one.rank, re.sub(r", pid \d+$", "", one.process), one.compiles) for one in report.ranks]


def test_an_engine_s_recompilation_leads_to_the_request(tmp_path: Path) -> None:
    ran = run_captured(ENGINE / "serve.py", tmp_path / "runs.db", args=("4", "7"))
    report = ran.report
    assert ran.stdout.split("\n")[-2:] == ["exit 0", ""], ran.stderr
    script, *workers = processes(report)
    assert script == (0, "serve.py", 0)
    assert sorted((title, compiles) for _, title, compiles in workers) == [("Worker-0", 3), ("Worker-1", 3)]
    assert "2 processes that it started compiled something" in report.outcome.message
    (finding,) = report.findings
    assert finding.kind == "recompilation"
    assert finding.ranks == (1, 2) and "size 4 → 7 in dimension 0" in finding.message
    assert any(
        Path(one.file).name == "worker.py" and one.range.start.line == line_of("worker.py", "step")
        for one in finding.related
    )
    assert report.capture_gaps == ()
    with Store(ran.store) as store:
        assert store.find_run(None) == report.run, "the script's run is the newest"
        assert [store.report(one.run).outcome.message for one in report.ranks[1:]] == [
            "The process ran to its end."
        ] * 2
        for one in report.ranks[1:]:  # Inductor compiles the pieces before and after attention
            stages = [stage.id for stage in store.report(one.run).compiles[0].stages]
            assert {"0/0/output-code", "0/0/output-code-2"} <= {*stages}


@pytest.mark.nightly
def test_an_engine_is_stopped_when_all_its_workers_are_steady(tmp_path: Path) -> None:
    budget = Budget(steady_calls=200, seconds=240)
    ran = run_captured(ENGINE / "serve.py", tmp_path / "runs.db", args=("4", "forever"), budget=budget)
    assert ran.report.outcome.limit is Limit.STEADY_STATE
    assert [compiles for _, _, compiles in processes(ran.report)] == [0, 2, 2]


JOB = """\
import os, sys
import torch

def work(more=0):
    @torch.compile(dynamic=False, backend="eager")
    def f(x):
        return x.sin() * 2  # recompiles
    for size in (3, 4):
        f(torch.ones(size + more))

if __name__ == "__main__":
    print(sys.argv[1:], os.environ.get("PYTHONPATH"), os.environ.get("IRSCOPE_PROCESS"), "irscope" in repr(sys.path))
    work()
"""
SCRIPT = """\
import multiprocessing, os, subprocess, sys

if __name__ == "__main__":
    import job
    way = sys.argv[1]
    if way == "subprocess":
        subprocess.run([sys.executable, "job.py", "a"], check=True, env={{**os.environ, "PYTHONPATH": "/nowhere"}})
        print(subprocess.run(["env"], capture_output=True, text=True, check=True).stdout.count("IRSCOPE_PROCESS"))
    elif way == "exec":
        os.execv(sys.executable, [sys.executable, "job.py", "x"])
    elif way == "torch":
        import torch.multiprocessing
        torch.multiprocessing.spawn(job.work, nprocs=2)
    else:
        {first}
        process = multiprocessing.get_context(way).Process(target=job.work, args=(1,))
        process.start()
        process.join()
        print(process.exitcode, os.environ.get("PYTHONPATH"))
"""


def run_way(folder: Path, way: str, first: str = "pass", forked: bool = False) -> Ran:
    write(folder, JOB, "job.py")
    script = write(folder, SCRIPT.format(first=first))
    run = run_forked if forked else run_captured
    ran: Ran = run(script, folder / "runs.db", args=(way,), cwd=str(folder))
    plain = run_plain(script, [way], cwd=folder)
    assert (ran.stdout, ran.stderr) == (plain.stdout, plain.stderr)
    return ran


def test_a_fork_of_a_script_that_compiles(tmp_path: Path) -> None:
    report = run_way(tmp_path, "fork", "job.work(5)", forked=True).report
    assert [compiles for _, _, compiles in processes(report)] == [2, 2]
    assert [one.ranks for one in report.findings] == [(0, 1)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("way", "started"), [("fork", 1), ("spawn", 1), ("forkserver", 1), ("subprocess", 1), ("exec", 1), ("torch", 2)]
)
def test_ways_to_start_a_process(tmp_path: Path, way: str, started: int) -> None:
    report = run_way(tmp_path, way).report
    assert [compiles for _, _, compiles in processes(report)] == [0] + [2] * started
    (finding,) = report.findings
    assert (Path(finding.file).name, finding.range.start.line) == ("job.py", 6)
    assert finding.ranks == tuple(range(1, started + 1))
    assert report.capture_gaps == ()
