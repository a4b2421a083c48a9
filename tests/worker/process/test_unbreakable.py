"""Scripts do everything that a process can do: each ends with a clear outcome, keeps what was found, and leaves nothing
behind.  See also test_bad_input.py (failures), test_budgets.py (endless ones) and test_unchanged.py (same outputs)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Budget, Lane, OutcomeKind, Progress
from irscope.store.store import Store
from irscope.system import processes
from irscope.worker.client import Worker, WorkerState, can_fork, wait_for
from light_torch import light_torch
from support import (
    IRSCOPE,
    Instant,
    Ran,
    at_rest,
    children_but_spares,
    ends,
    late,
    passed_at_this_load,
    run_captured,
    write,
)

pytestmark = pytest.mark.skipif(not can_fork(), reason="forking with torch is not safe on this system")

BREAKS = """
import torch

@torch.compile(backend="eager")
def f(x):
    print("in the middle")
    return x.sin() * 2 + 1

"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(sys.executable)
    assert wait_for(worker, 120) is WorkerState.READY, worker.reason
    yield worker
    assert worker.wait_until_ready(0) is WorkerState.READY, "no script has broken it"
    worker.stop()


RunForked = Callable[..., Ran]


@pytest.fixture
def run_forked(worker: Worker, tmp_path: Path) -> RunForked:
    def run(source: str, **options: object) -> Ran:
        return run_captured(write(tmp_path, source), tmp_path / "store" / "runs.db", worker=worker, **options)  # type: ignore[arg-type]

    return run


# --- what scripts do --------------------------------------------------------------------------------------------------

# name → script (after BREAKS), what it prints but for the break's own line
SCRIPTS = {
    "sys.exit in a thread": (
        "import sys, threading\nf(torch.ones(3))\nt = threading.Thread(target=sys.exit, args=(3,))\nt.start(); t.join()\nprint('end')\n",
        "end\n",
    ),
    "compiled in threads that outlive main": (
        "import threading, time\ndef late():\n    time.sleep(0.2)\n    f(torch.ones(3))\n    print('late')\n"
        "threading.Thread(target=late).start()\nprint('main')\n",
        "main\nlate\n",
    ),
    "a daemon thread that prints on and on": (
        "import threading, sys, time\nf(torch.ones(3))\n"
        "threading.Thread(target=lambda: [sys.stderr.write('x') for _ in iter(int, 1)], daemon=True).start()\ntime.sleep(0.1)\nprint('end')\n",
        "end\n",
    ),
    "asyncio.run": (
        "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    f(torch.ones(3))\n    return await asyncio.to_thread(lambda: 3)\nprint(asyncio.run(main()))\n",
        "3\n",
    ),
    "reads from stdin": (
        "import sys\nprint(repr(sys.stdin.read()))\nf(torch.ones(3))\ntry:\n    input()\nexcept EOFError:\n    print('no input')\n",
        "''\nno input\n",
    ),
    "changes of directory, path, locale": (
        "import locale, os, sys\nos.chdir('/')\nsys.path[:] = []\nsys.argv = None\nlocale.setlocale(locale.LC_ALL, 'C.UTF-8')\nos.umask(0o777)\nos.environ.clear()\nf(torch.ones(3))\nprint(os.getcwd())\n",
        "/\n",
    ),
    "signal handlers": (
        "import signal, os\nfor s in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGALRM):\n    signal.signal(s, lambda n, _: print('got', signal.Signals(n).name))\n"
        "f(torch.ones(3))\nos.kill(os.getpid(), signal.SIGTERM)\nsignal.alarm(1)\nsignal.pause()\n",
        "got SIGTERM\ngot SIGALRM\n",
    ),
    "ignores all signals": (
        "import signal\nfor s in range(1, 65):\n    try:\n        signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError):\n        pass\nf(torch.ones(3))\nprint('end')\n",
        "end\n",
    ),
    "another stdout": (
        "import sys, io, os\nold = sys.stdout\nsys.stdout = io.StringIO()\nf(torch.ones(3))\nkept = sys.stdout.getvalue()\nsys.stdout = old\nprint(kept, end='')\nos.dup2(2, 1)\nsys.stdout.close()\nos.write(2, b'to the old stderr')\n",
        "",
    ),
    "overwrites itself": (
        "open(__file__, 'w').write('1/0')\nf(torch.ones(3))\nprint('end')\n",
        "end\n",
    ),
    "deletes its folder": (
        "import os, shutil\nos.chdir('/')\nos.remove(__file__)\nf(torch.ones(3))\nprint('end')\n",
        "end\n",
    ),
    "a default device": (
        "torch.set_default_device('meta')\nprint(f(torch.ones(3)).device)\ntorch.set_default_dtype(torch.float64)\nprint(f(torch.ones(3)).dtype)\n",
        "meta\ntorch.float64\n",
    ),
    "torch._dynamo.reset and config": (
        "import torch._dynamo.config as c\nf(torch.ones(3))\ntorch._dynamo.reset()\nc.recompile_limit = 1\nc.suppress_errors = True\nwith c.patch(verbose=True):\n    f(torch.ones(4))\nprint(c.recompile_limit)\n",
        "1\n",
    ),
    "fork": (
        "import os, sys\nf(torch.ones(3))\nsys.stdout.flush()\npid = os.fork()\nif pid == 0:\n    f(torch.ones(4))\n    sys.stdout.flush()\n    os._exit(7)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n",
        "7\n",
    ),
    "a child that nobody waits for": (
        "import os, time\nf(torch.ones(3))\nimport sys; sys.stdout.flush()\nif os.fork() == 0:\n    time.sleep(1000)\nprint('end')\n",
        "end\n",
    ),
    "a module that is none": (
        "import sys\nclass Odd:\n    @property\n    def __dict__(self):\n        raise RuntimeError('no context')\nsys.modules['odd'] = Odd()\nf(torch.ones(3))\nprint('end')\n",
        "end\n",
    ),
    "many threads at the end": (
        "import threading, time\nf(torch.ones(3))\nfor _ in range(50):\n    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\nprint('end')\n",
        "end\n",
    ),
    "breaks what its process needs": (
        "f(torch.ones(3))\nimport builtins, os, sys, json, sqlite3, logging\nfor m in (json, sqlite3, logging, os.path):\n    for n in list(vars(m)):\n        if not n.startswith('_'):\n            setattr(m, n, None)\nsys.modules.clear()\nos.write(1, b'end\\n')\n",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_scripts_do(name: str, run_forked: RunForked) -> None:
    source, printed = SCRIPTS[name]
    ran = run_forked(BREAKS + source)
    if printed is not None:
        assert (ran.report.outcome.kind, ran.report.outcome.exit_code) == (OutcomeKind.COMPLETED, 0), ran
        assert ran.stdout.replace("in the middle\n", "") == printed, ran.stderr
        assert "session.py" not in ran.stderr, ran.stderr
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    (finding,) = ran.findings("graph-break")
    assert finding.range.start.line == 6


def test_the_names_of_compiles_after_a_reset(run_forked: RunForked) -> None:
    ran = run_forked(BREAKS + "f(torch.ones(3))\ntorch._dynamo.reset()\nf(torch.ones(3))\n")
    assert [compile.id for compile in ran.report.compiles] == ["0/0", "1/0", "0/0#2", "1/0#2"]


DATA = """
import multiprocessing, os, sys
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        return f(torch.full((2,), float(i))).sum(), os.getpid() != MAIN

def work(n):
    return n * n

MAIN = int(os.environ.setdefault("OF_MAIN", str(os.getpid())))
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))
    for method in sys.argv[1:]:
        loader = DataLoader(Numbers(), batch_size=3, num_workers=1, multiprocessing_context=method, persistent_workers=True)
        print(method, [(x.shape[0], all(other)) for x, other in loader])
    f(torch.ones(3))
"""


# In a fresh process there is also test_unchanged.py, "multiprocessing".
@pytest.mark.parametrize(
    ("forked", "methods"), [(True, ("fork", "spawn")), pytest.param(False, ("fork",), marks=pytest.mark.nightly)]
)
def test_multiprocessing_and_data_loader_workers(
    forked: bool, methods: tuple[str, ...], worker: Worker, tmp_path: Path
) -> None:
    """Fork and spawn; what their processes compile is theirs, and none of them outlives the run."""
    script = write(tmp_path, BREAKS + DATA)
    ran = run_captured(script, tmp_path / "runs.db", args=methods, worker=worker if forked else None)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran
    lines = [line for line in ran.stdout.splitlines() if line != "in the middle"]
    assert lines == ["[1, 4, 9]", *(f"{method} [(3, True), (3, True)]" for method in methods)]
    assert [compile.id for compile in ran.report.compiles] == ["0/0", "1/0"]
    assert not remaining(str(script))


# --- killed from outside ----------------------------------------------------------------------------------------------

WAITS = BREAKS + "import os, time\nf(torch.ones(3))\nprint('at work', os.getpid(), flush=True)\ntime.sleep(1000)\n"


@pytest.mark.parametrize(
    # In a fresh process there is also test_bad_input.py, "killed".
    ("forked", "number"),
    [(True, signal.SIGTERM), (True, signal.SIGKILL), pytest.param(False, signal.SIGTERM, marks=pytest.mark.nightly)],
)
def test_the_script_s_process_is_killed(forked: bool, number: signal.Signals, worker: Worker, tmp_path: Path) -> None:
    printed: list[str] = []

    def kill(_stream: str, text: str) -> None:
        printed.append(text)
        if found := re.search(r"at work (\d+)\n", "".join(printed)):
            os.kill(int(found[1]), number)

    spec = RunSpec(str(write(tmp_path, WAITS)), lane=Lane.FAST, budget=Budget(60))
    with Store(str(tmp_path / "runs.db")) as store:
        run, outcome = execute(spec, store, worker=worker if forked else None, on_output=kill)
        report = store.report(run)
    assert (outcome.kind, outcome.exit_code) == (OutcomeKind.CRASHED, None)
    assert outcome.message == f"The script's process was killed by {number.name}."
    assert [finding.code for finding in report.findings] == ["GB0059"]


# --- nothing is left behind -------------------------------------------------------------------------------------------

# Busy children that got away: in a session of its own, of a parent that is gone, deaf to SIGTERM.
GETS_AWAY = """
import os, signal, subprocess, sys, time
BUSY = "import signal, time as t\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nend = t.time() + 60\\nwhile t.time() < end: pass"
def start(*command, **options):
    return subprocess.Popen([*command, sys.executable, "-c", BUSY, __file__], **options)
start()
start(start_new_session=True)
subprocess.run(["sh", "-c", '"$0" "$@" &', "setsid", sys.executable, "-c", BUSY, __file__])
print("at work", flush=True)
"""


def remaining(word: str, seconds: float = 1.0) -> list[str]:
    """The command lines of processes that have a word among their arguments, after at most so many seconds."""
    begun = Instant()
    while True:
        found = []
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if word in line:
                found.append(f"{pid} {line}")
        if not found or late(begun, seconds):
            return found
        time.sleep(0.02)


@pytest.mark.parametrize("forked", [True, False])
@pytest.mark.parametrize("end", ["", "os._exit(3)", "os.abort()"])
def test_a_run_leaves_no_process_behind(end: str, forked: bool, worker: Worker, tmp_path: Path) -> None:
    script = write(tmp_path, GETS_AWAY + end)
    ran = run_captured(script, tmp_path / "runs.db", worker=worker if forked else None)
    assert ran.stdout == "at work\n"
    assert not remaining(str(script))


@pytest.mark.parametrize("forked", [True, False])
def test_cancel_frees_everything_in_under_a_second(forked: bool, worker: Worker, tmp_path: Path) -> None:
    script = write(tmp_path, GETS_AWAY + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nexec(BUSY)\n")
    cancel, cancelled = threading.Event(), []

    def on_output(_stream: str, _text: str) -> None:
        cancelled.append(Instant())
        cancel.set()

    with Store(str(tmp_path / "runs.db")) as store:
        spec = RunSpec(str(script), lane=Lane.FAST, budget=Budget(60))
        _, outcome = execute(spec, store, worker=worker if forked else None, on_output=on_output, cancel=cancel)
    assert outcome.kind is OutcomeKind.CANCELLED
    assert passed_at_this_load(cancelled[0]) < 1.0
    assert not remaining(str(script))
    assert passed_at_this_load(cancelled[0]) < 1.0


def test_cancel_in_the_middle_of_inductor(tmp_path: Path) -> None:
    """Its pool of compile workers and the C++ compiler end, too."""
    source = """
        import torch

        @torch.compile
        def f(x):
            return torch.softmax(x.sin() @ x, -1)

        f(torch.ones(32, 32))
    """
    cancel = threading.Event()
    cancelled: list[Instant] = []
    root: list[int] = []

    def on_message(message: object) -> None:
        if isinstance(message, Progress) and ": compiling kernel " in message.text and not cancelled:
            root.extend(processes.tree(os.getpid())[1:])
            cancelled.append(Instant())
            cancel.set()

    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cold")}
    with Store(str(tmp_path / "runs.db")) as store:
        spec = RunSpec(str(write(tmp_path, source)), lane=Lane.DEEP, env=env)
        _, outcome = execute(spec, store, on_message=on_message, on_output=lambda *_: None, cancel=cancel)
    assert outcome.kind is OutcomeKind.CANCELLED
    assert passed_at_this_load(cancelled[0]) < 1.0
    assert len(root) >= 2
    assert not remaining(str(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_orphan_when_irscope_is_killed(number: signal.Signals, tmp_path: Path) -> None:
    script = write(tmp_path, GETS_AWAY + "print('running', flush=True)\nexec(BUSY)\n")
    process = subprocess.Popen(
        [IRSCOPE, "run", str(script), "--lane", "fast", "--store", str(tmp_path / "runs.db")],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert any("running" in line for line in process.stdout)
    process.send_signal(number)
    process.wait()
    process.stdout.close()
    assert not remaining(str(script))


HOST = """
import os, sys, threading
sys.path.insert(0, COMPILER)
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Lane
from irscope.store.store import Store
from irscope.worker.client import Worker, wait_for

worker = Worker(sys.executable)
wait_for(worker, 100)
with Store(sys.argv[1]) as store:
    execute(RunSpec(sys.argv[2], lane=Lane.FAST), store, worker=worker, on_output=lambda _, text: print(worker._process.pid, text, flush=True))
"""


@pytest.mark.parametrize(
    "both",
    [
        pytest.param(False, id="the server", marks=pytest.mark.nightly),
        pytest.param(True, id="the server and the fork server"),
    ],
)
def test_no_orphan_when_the_host_of_a_worker_is_killed(both: bool, tmp_path: Path) -> None:
    """As an editor that kills the language server, or all of its processes that it knows of."""
    host = write(tmp_path, HOST.replace("COMPILER", repr(str(Path(processes.__file__).parents[2]))), "host.py")
    script = write(tmp_path, GETS_AWAY + "print('running', flush=True)\nexec(BUSY)\n")
    process = subprocess.Popen(
        [sys.executable, str(host), str(tmp_path / "runs.db"), str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **light_torch(tmp_path / "light")},
    )
    assert process.stdout is not None
    line = next(line for line in process.stdout if "at work" in line)
    worker = int(line.split()[0])
    run = children_but_spares(worker)
    assert len(run) >= 1
    if both:
        process.send_signal(signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
    process.kill()
    process.wait()
    process.stdout.close()
    assert all(ends(pid, 5.0) for pid in (worker, run[0]))
    if both:  # nobody is left who knew of the daemons, which keep the processor busy
        for daemon in remaining(str(script), 0.0):
            os.kill(int(daemon.split()[0]), signal.SIGKILL)
    else:
        assert not remaining(str(script))


@pytest.mark.parametrize("runs", [30, pytest.param(200, marks=pytest.mark.nightly)])
def test_many_runs_leave_nothing(runs: int, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, no descriptor, no thread, no temporary file, and no memory worth the name."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    compiles, prints = write(tmp_path, BREAKS + "f(torch.ones(3))\n"), write(tmp_path, "print(1)", "prints.py")
    pid = worker._process.pid  # type: ignore[union-attr]

    def facts() -> tuple[int, ...]:
        at_rest(pid)
        descriptors = (len(os.listdir(f"/proc/{p}/fd")) for p in (pid, os.getpid()))
        return (*descriptors, len(children_but_spares(pid)), threading.active_count(), len(os.listdir(folder)))

    def held_by(process: int) -> int:
        dirty = re.search(r"Private_Dirty:\s+(\d+)", Path(f"/proc/{process}/smaps_rollup").read_text())
        assert dirty
        return int(dirty[1])

    def held() -> int:
        return held_by(pid) + held_by(os.getpid())

    with Store(str(tmp_path / "runs.db")) as store:
        before: tuple[tuple[int, ...], int] | None = None
        for number in range(runs):
            spec = RunSpec(str(prints if number % 4 else compiles), lane=Lane.FAST)
            run, outcome = execute(spec, store, worker=worker, on_output=lambda *_: None)
            assert outcome.kind is OutcomeKind.COMPLETED
            assert len(store.report(run).findings) == (0 if number % 4 else 1)
            if number == 20:
                before = facts(), held()
    assert before is not None
    assert all(now <= then for now, then in zip(facts(), before[0], strict=True)), (facts(), before)
    assert facts()[2:] == (0, 1, 0)
    assert held() - before[1] < 8_000 * runs / 200, "kB of private memory"


# --- a full disk ------------------------------------------------------------------------------------------------------


def test_a_full_disk(tmp_path: Path) -> None:
    """Files of more than so many blocks cannot be written: to SQLite that is an error of the disk like any other."""
    source = BREAKS + "for n in range(3, 12):\n    torch._dynamo.reset()\n    f(torch.ones(n))\nprint('end')\n"
    script, store = write(tmp_path, source), tmp_path / "runs.db"
    command = f"ulimit -f 200; exec {IRSCOPE} run {script} --lane fast --store {store}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("in the middle\n" * 9 + "end\n") and done.stderr == "", "the script is as ever"
    assert f"not captured: the run store: a part of this run is not kept ({store}: " in done.stdout
    assert "\ncompleted: The script ran to its end" in done.stdout
    assert "GB0059" in done.stdout, "what was found first is kept"
    with Store(str(store)) as opened:
        report = opened.report(opened.find_run())
    assert [finding.code for finding in report.findings] == ["GB0059"]
    assert 0 < len(report.compiles) <= 18
