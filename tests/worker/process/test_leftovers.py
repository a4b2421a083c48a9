"""Killed processes leave nothing behind that they would have removed themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from irscope.lowering import tools
from irscope.protocol import Budget, OutcomeKind
from irscope.system import commands
from irscope.system.commands import run_bounded
from irscope.system.ending import end_tree
from irscope.system.processes import is_running
from irscope.worker.client import Worker
from support import run_captured, write

POOL = """\
import multiprocessing, time
from multiprocessing import synchronize

def wait(lock):
    with lock:
        time.sleep(300)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    lock, events = context.Lock(), [context.Event() for _ in range(3)]
    process = context.Process(target=wait, args=(lock,))
    process.start()
    made = [lock, *(part for event in events for part in (event._flag, event._cond._lock))]
    print("started", *(part._semlock.name for part in made), flush=True)
    time.sleep(300)
"""
# The compiler waits for the end of its input, with the temporary file for its assembly open.
COMPILER = """\
import subprocess, sys, time
process = subprocess.Popen(["g++", "-x", "c++", "-c", "-", "-o", "/dev/null"], stdin=subprocess.PIPE)
time.sleep(300)
"""
NO_COMPILER = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="semaphores have no files here")
@pytest.mark.parametrize("in_worker", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_semaphores_of_a_pool(tmp_path: Path, shared_worker: Worker | None, in_worker: bool) -> None:
    ran = run_captured(
        write(tmp_path, POOL),
        tmp_path / "runs.db",
        budget=Budget(seconds=4),
        worker=shared_worker if in_worker else None,
    )
    assert ran.report.outcome.kind is OutcomeKind.BUDGET
    started, *names = ran.stdout.split()
    assert started == "started" and len(names) == 7
    assert [name for name in names if os.path.exists(f"/dev/shm/sem.{name.removeprefix('/')}")] == []


@NO_COMPILER
@pytest.mark.parametrize("in_worker", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_temporary_files_of_a_compiler(tmp_path: Path, shared_worker: Worker | None, in_worker: bool) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    ran = run_captured(
        write(tmp_path, COMPILER),
        tmp_path / "runs.db",
        env={"TMPDIR": str(temporary)},
        budget=Budget(seconds=3),
        worker=shared_worker if in_worker else None,
    )
    assert ran.report.outcome.kind is OutcomeKind.BUDGET
    assert list(temporary.iterdir()) == []


@NO_COMPILER
def test_a_command_that_takes_too_long_ends_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the assembly of a kernel is made on demand: the compiler proper is a child of the command."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tools, "_SECONDS", 1)
    fifo = tmp_path / "endless.cpp"
    os.mkfifo(fifo)
    with pytest.raises(tools.LoweringError, match="took longer than 1 s"):
        tools.output_of(["g++", "-c", str(fifo), "-o", os.devnull])
    assert list(tmp_path.iterdir()) == [fifo]
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(fifo) not in processes


def test_a_process_that_only_looks_as_if_it_cleaned_up(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(300)", "multiprocessing.resource_tracker"]
    )
    started = time.monotonic()
    end_tree(process.pid)
    process.wait(10)
    assert time.monotonic() - started < 10


def test_what_a_command_prints(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read()); print('é', file=sys.stderr); sys.exit(3)"
    done = run_bounded([sys.executable, "-c", code], 60, text="in", env={"PYTHONIOENCODING": "utf-8"})
    assert (done.stdout, done.stderr, done.returncode) == ("in\n", "é\n", 3)
    with pytest.raises(subprocess.TimeoutExpired):
        run_bounded([sys.executable, "-c", "import time; time.sleep(300)"], 0.5)
    assert not is_running(0)


TAKES_TURNS = """\
import time
for _ in range(12):
    until = time.process_time() + 0.03
    while time.process_time() < until:
        pass
    time.sleep(0.2)
"""
COMPUTES = "import time\nwhile time.process_time() < 20: pass"


def below(code: str) -> list[str]:
    """Runs it in a child of the command: what that computes counts, too."""
    return [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"]


def test_a_patient_limit_counts_what_a_command_computes_and_not_how_long_it_waits() -> None:
    """As on a machine that is busy: it waits for its turn, and then computes a little."""
    assert run_bounded(below(TAKES_TURNS), 1.5, patient=True, text="").returncode == 0
    with pytest.raises(subprocess.TimeoutExpired):
        run_bounded(below(TAKES_TURNS), 1.5)


@pytest.mark.parametrize("code", [COMPUTES, "import time; time.sleep(20)"])
def test_a_patient_limit_ends_what_computes_too_long_and_what_only_waits(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_PATIENCE", 1000)
    started = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired) as ended:
        run_bounded(below(code), 0.5, patient=True)
    assert 0.5 <= ended.value.timeout <= time.monotonic() - started


def test_a_patient_limit_where_the_processor_time_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "processor_seconds", lambda root: None)
    with pytest.raises(subprocess.TimeoutExpired) as ended:
        run_bounded([sys.executable, "-c", "import time; time.sleep(20)"], 0.4, patient=True)
    assert ended.value.timeout >= 3 * 0.4


WAITS = """\
import os, sys, threading, time
from irscope.system import commands
from irscope.system.processes import is_running

def compile():
    with commands.temporary_folder() as folder:
        print(folder, flush=True)
        commands.run_bounded([sys.executable, "-c", "import time; time.sleep(300)"], 300)

threading.Thread(target=compile).start()
while not commands._running:
    time.sleep(0.01)
command, = commands._running
print(command, flush=True)
commands.leave_nothing()
print(is_running(command), flush=True)
os._exit(0)
"""


def test_a_process_that_ends_without_its_threads_leaves_no_command_and_no_folder() -> None:
    done = run_bounded([sys.executable, "-c", WAITS], 60)
    folder, pid, still_running = done.stdout.split()
    assert not os.path.exists(folder)
    assert still_running == "False" and not is_running(int(pid))


MAKES_MORE = """\
import os, sys, threading
from irscope.system import commands

def try_one_after_the_other():
    while True:
        try:
            with commands.temporary_folder() as folder:
                commands.run_bounded([sys.executable, "-c", "import time; time.sleep(300)"], 300)
        except OSError:
            pass

for _ in range(8):
    threading.Thread(target=try_one_after_the_other).start()
while len(commands._running) < 8:
    pass
commands.leave_nothing()
os._exit(0)
"""


def test_nothing_new_is_made_in_a_process_that_ends(tmp_path: Path) -> None:
    """A thread whose command was ended goes on with the next one, as trials of pipelines do."""
    done = run_bounded([sys.executable, "-c", MAKES_MORE], 60, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path) == []
