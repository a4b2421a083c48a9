"""Whatever is killed, whenever: the store opens again and holds what was committed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

from irscope.protocol import OutcomeKind
from irscope.store.store import Store
from support import IRSCOPE, run_forked, write

BREAKS = """\
import os, signal, time
import torch

@torch.compile
def f(x):
    print("hi")
    return x.sin() * 2 + 1

"""
IN_THE_MIDDLE = (
    BREAKS
    + """
def kill_itself(graph, inputs):
    os.kill(os.getpid(), signal.SIGKILL)

@torch.compile(backend=kill_itself)
def g(x):
    return x.cos()

f(torch.ones(3))
g(torch.ones(3))
"""
)
IN_A_PACKAGE = (
    BREAKS.replace('    print("hi")\n', "")
    + """
import glob, tempfile
import torch._inductor.codecache

def kill_itself(*args, **kwargs):
    with open(__file__ + ".folders", "w") as file:
        print(*glob.glob(tempfile.gettempdir() + "/irscope-*"), file=file)
    os.kill(os.getpid(), signal.SIGKILL)

torch._inductor.codecache.AotCodeCompiler.compile = kill_itself
f(torch.ones(3))
"""
)
ENDLESS = BREAKS + "f(torch.ones(3))\nprint('at work', os.getpid(), flush=True)\ntime.sleep(300)\n"


def test_the_script_s_process_in_the_middle_of_a_compile(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, IN_THE_MIDDLE), tmp_path / "runs.db", "deep")
    assert ran.report.outcome.kind is OutcomeKind.CRASHED
    assert ran.report.outcome.message == "The script's process was killed by SIGKILL."
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    *ended, last = ran.report.compiles
    assert {compile.outcome.value for compile in ended} <= {"compiled", "graph-break"}
    assert (last.function, last.outcome.value) == ("g", "running")
    assert "x.cos()" in ran.text(f"{last.id}/dynamo-graph") or "cos" in ran.text(f"{last.id}/dynamo-graph")
    assert len(ran.kernels("cpp")) == 1
    assert _is_sound(ran.store)


def test_no_folder_is_left_of_a_pipeline_that_was_writing_into_one(tmp_path: Path) -> None:
    ran = run_forked(write(tmp_path, IN_A_PACKAGE), tmp_path / "runs.db", "deep", pipeline="aotinductor")
    assert ran.report.outcome.message == "The script's process was killed by SIGKILL."
    there = (tmp_path / "script.py.folders").read_text().split()
    [folder] = [one for one in there if ran.report.run in one]
    assert not os.path.exists(folder)


def test_irscope_itself(tmp_path: Path) -> None:
    """The script ends with it; see also test_unbreakable.py."""
    script, path = write(tmp_path, ENDLESS), tmp_path / "runs.db"
    command = [IRSCOPE, "run", str(script), "--lane", "fast", "--store", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any("at work" in line for line in process.stdout)
    process.kill()
    process.wait()
    process.stdout.close()
    with Store(str(path)) as store:
        report = store.report(store.find_run())
        assert store.stage_text(report.run, "0/0/guards")
        assert store.runs()[0].outcome is None
    assert [finding.code for finding in report.findings] == ["GB0059"]
    assert "has not ended, or it was killed" in report.outcome.message
    again = run_forked(write(tmp_path, BREAKS + "f(torch.ones(3))\n"), path, "fast")
    assert again.report.outcome.kind is OutcomeKind.COMPLETED
    assert _is_sound(str(path))
    with Store(str(path)) as store:
        assert len(store.runs()) == 2


def _is_sound(path: str) -> bool:
    db = sqlite3.connect(path)
    try:
        return bool(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        db.close()
