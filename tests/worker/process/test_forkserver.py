"""The worker: runs in forks of a process that has imported torch already."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Budget, FindingSeen, Lane, Message, Outcome, OutcomeKind, Report
from irscope.store.store import Store
from irscope.system import processes
from irscope.worker.client import Worker, WorkerState, can_fork, wait_for
from light_torch import light_torch
from support import Instant, at_rest, children_but_spares, ends, late, name_of, run_plain, write

pytestmark = pytest.mark.skipif(not can_fork(), reason="forking with torch is not safe on this system")

BREAKS = """
    import torch

    @torch.compile
    def f(x):
        if x.sum() > 0:
            x = x + 1
        return x * 2

    for n in (4, 5):
        f(torch.ones(n))
    print("done")
"""


@dataclass
class Warm:
    """A worker, and runs in it."""

    worker: Worker
    store: Path
    printed: list[str] = field(default_factory=list)

    def run(self, script: Path, worker: bool = True, **options: Any) -> tuple[Outcome, Report]:
        self.printed.clear()
        budget = Budget(seconds=options.pop("budget_seconds", 100.0))
        spec = RunSpec(str(script), lane=Lane.FAST, cwd=str(script.parent), budget=budget)
        with Store(str(self.store)) as store:
            run, outcome = execute(
                spec,
                store,
                worker=self.worker if worker else None,
                on_output=lambda _stream, text: self.printed.append(text),
                **options,
            )
            return outcome, store.report(run)

    @property
    def output(self) -> str:
        return "".join(self.printed)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(sys.executable)
    assert wait_for(worker, 120) is WorkerState.READY, worker.reason
    yield worker
    worker.stop()


@pytest.fixture
def warm(worker: Worker, tmp_path: Path) -> Warm:
    return Warm(worker, tmp_path / "runs.db")


def facts(report: Report) -> object:
    return (
        [(f.kind, f.code, f.range, f.count, f.compiles) for f in report.findings],
        [(c.id, c.function, c.outcome, c.graph_ops, [s.id for s in c.stages]) for c in report.compiles],
        report.capture_gaps,
    )


def test_a_fork_finds_what_a_fresh_process_finds(warm: Warm, tmp_path: Path) -> None:
    script = write(tmp_path, BREAKS)
    outcome, forked = warm.run(script)
    assert outcome.kind is OutcomeKind.COMPLETED and "done" in warm.output
    _, fresh = warm.run(script, worker=False)
    assert facts(forked) == facts(fresh)
    assert {finding.code for finding in forked.findings} >= {"GB0170", "recompile-size"}


def test_it_really_is_a_fork(warm: Warm, tmp_path: Path) -> None:
    script = write(tmp_path, "import os; print(os.getppid(), __name__, __file__, __import__('sys').argv)")
    warm.run(script)
    assert warm.output.split() == [str(warm.worker._process.pid), "__main__", str(script), f"['{script}']"]  # type: ignore[union-attr]


def test_runs_do_not_see_each_other(warm: Warm, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        """
        import os, random, sys, torch
        print(hasattr(torch, "left_behind"), random.random(), torch.rand(1).item(), os.environ.get("LEFT"), sys.path[0], end=" ")
        print(__import__("numpy").random.random())
        torch.left_behind = True
        os.environ["LEFT"] = "yes"
        """,
    )
    warm.run(script)
    first = warm.output.split()
    warm.run(script)
    second = warm.output.split()
    assert (first[0], first[3]) == (second[0], second[3]) == ("False", "None")
    assert first[1] != second[1], "Python's random numbers differ from run to run, as in fresh processes"
    assert first[2] != second[2], "torch's, too"
    assert first[5] != second[5], "and numpy's"
    assert first[4] == str(tmp_path)


def test_a_variable_that_torch_reads_at_import_gives_a_fresh_process(warm: Warm, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        """
        import os
        os.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "1"
        import torch, torch._inductor.config
        print("autotune", torch._inductor.config.max_autotune)
        """,
    )
    outcome, _ = warm.run(script)
    assert outcome.kind is OutcomeKind.COMPLETED
    assert warm.output.strip() == "autotune True"
    assert any("TORCHINDUCTOR_MAX_AUTOTUNE" in reason for reason in warm.worker.unfit.values())


@pytest.mark.parametrize(
    ("source", "kind", "code", "says"),
    [
        ("import sys; sys.exit(3)", OutcomeKind.SCRIPT_ERROR, 3, "sys.exit(3)"),
        ("1/0", OutcomeKind.SCRIPT_ERROR, 1, "ZeroDivisionError"),
        ("import os; os._exit(5)", OutcomeKind.SCRIPT_ERROR, 5, "os._exit"),
        ("import ctypes; ctypes.string_at(0)", OutcomeKind.CRASHED, None, "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", OutcomeKind.CRASHED, None, "SIGKILL"),
        ("x = (", OutcomeKind.SCRIPT_ERROR, 1, "SyntaxError"),
    ],
)
def test_a_fork_that_fails_leaves_the_worker_alone(
    warm: Warm, tmp_path: Path, source: str, kind: OutcomeKind, code: int | None, says: str
) -> None:
    outcome, _ = warm.run(write(tmp_path, source))
    assert (outcome.kind, outcome.exit_code) == (kind, code)
    assert says in outcome.message
    assert warm.worker.wait_until_ready(0) is WorkerState.READY


def test_the_first_compile_imports_nothing_of_torch_and_nothing_was_compiled_before(warm: Warm, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        """
        import os, sys, torch
        before = set(sys.modules)
        counters = torch._dynamo.utils.counters
        print(len(os.listdir("/proc/self/task")), dict(counters), torch.distributions.Distribution._validate_args)
        f = torch.compile(lambda x: x.sin() + 1, backend=lambda graph, inputs: graph)
        f(torch.ones(3))
        print([name for name in sys.modules if name not in before and name.startswith(("torch.", "sympy."))])
        print(counters["stats"]["unique_graphs"], len(torch._dynamo.utils._compilation_metrics))
        """,
    )
    _, report = warm.run(script)
    assert warm.output.splitlines() == ["1 {} True", "[]", "1 1"]
    assert [compile.id for compile in report.compiles] == ["0/0"]
    assert len(os.listdir(f"/proc/{warm.worker._process.pid}/task")) == 1  # type: ignore[union-attr]


def test_the_first_break_waits_for_no_import_of_advice(warm: Warm, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        """
        import sys, torch
        before = set(sys.modules)
        @torch.compile
        def f(x):
            print("in the graph")
            return x + 1
        f(torch.ones(3))
        print([name for name in sys.modules if name not in before and name.startswith("irscope.fixing")])
        """,
    )
    _, report = warm.run(script)
    assert [finding.code for finding in report.findings] == ["GB0059"]
    assert warm.output.splitlines() == ["in the graph", "[]"]


# What a script does at its very end, when the interpreter goes.
ENDS = {
    "finalizer": """
        class C:
            def __del__(self):
                print("del", sys.modules["__main__"] is None if "__main__" in sys.modules else "gone")
        import sys
        c = C()
        cycle = [C()]
        cycle.append(cycle)
    """,
    "finalizer_and_file_below_torch": """
        import torch
        class C:
            def __del__(self): print("del")
        torch.left = C()
        torch.left_as_well = open("out.txt", "w")
        torch.left_as_well.write("written")
    """,
    "file_that_is_not_closed": "file = open('out.txt', 'w')\nfile.write('written')",
    "generator": """
        def g():
            try:
                yield 1
            finally:
                print("closed")
        h = g()
        next(h)
    """,
    "at_exit": "import atexit, sys\natexit.register(print, 'at exit')\nsys.exit(3)",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()",
    "daemon": """
        import threading, time
        def work():
            while True:
                helper()
        def helper():
            time.sleep(0.001)
        threading.Thread(target=work, daemon=True).start()
    """,
    "own_stdout": "import io, sys\nsys.stdout = io.TextIOWrapper(open(1, 'wb', closefd=False))\nprint('mine')",
    "closed_stdout": "import os, sys\nsys.stdout.write('lost')\nos.close(1)",
    "printed_by_c": "import ctypes\nctypes.CDLL(None).printf(b'from C %d\\n', 3)",
    "module": "import neighbour\nprint(neighbour)",
    "raises_in_a_finalizer": "class C:\n    def __del__(self): raise ValueError\nc = C()",
    "imports_in_a_finalizer": "class C:\n    def __del__(self): import io\nc = C()",
    "exits_with_text": "import sys\nsys.exit('why')",
    "exits_negative": "import sys\nsys.exit(-1)",
    "forks": """
        import os, sys
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
        print("child" if pid == 0 else "parent")
        sys.exit(0 if pid else 7)
    """,
}


@pytest.mark.parametrize("name", ENDS)
def test_a_fork_ends_as_an_interpreter_does(warm: Warm, tmp_path: Path, name: str) -> None:
    ended = []
    write(tmp_path, "class N:\n    def __del__(self): print('neighbour')\nn = N()\n__all__ = []", "neighbour.py")
    script = write(tmp_path, ENDS[name])
    plain = run_plain(script, cwd=tmp_path)
    for run in ("fork", "plain"):
        out = tmp_path / "out.txt"
        if run == "fork":
            out.unlink(missing_ok=True)
            outcome, _ = warm.run(script)
            ended.append(
                (re.sub("0x[0-9a-f]+", "", warm.output), outcome.exit_code, out.read_text() if out.exists() else "")
            )
        else:
            ended.append(
                (
                    re.sub("0x[0-9a-f]+", "", plain.stdout + plain.stderr),
                    plain.returncode,
                    out.read_text() if out.exists() else "",
                )
            )
    assert ended[0] == ended[1], "the same but for addresses"


def test_the_end_is_a_short_one(warm: Warm, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        """
        import os, torch
        def ended(code, print=print, leave=os._exit):
            print("short", flush=True)
            leave(code)
        os._exit = ended
        """,
    )
    warm.run(script)
    assert warm.output == "short\n"


def test_the_budget_ends_an_endless_loop(warm: Warm, tmp_path: Path) -> None:
    outcome, _ = warm.run(write(tmp_path, "while True: pass"), budget_seconds=1.0)
    assert outcome.kind is OutcomeKind.BUDGET


def test_cancelling_ends_the_run_and_all_its_children(warm: Warm, tmp_path: Path) -> None:
    script = write(
        tmp_path,
        """
        import os, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        print(os.getpid(), child.pid, flush=True)
        time.sleep(1000)
        """,
    )
    cancel = threading.Event()
    printed: list[str] = []

    def hear(_stream: str, text: str) -> None:  # in as many pieces as the script's stdout makes of it
        printed.append(text)
        if text.endswith("\n"):
            cancel.set()

    with Store(str(warm.store)) as store:
        _, outcome = execute(
            RunSpec(str(script), lane=Lane.FAST), store, worker=warm.worker, on_output=hear, cancel=cancel
        )
    assert outcome.kind is OutcomeKind.CANCELLED
    seen = [int(pid) for pid in "".join(printed).split()]
    assert len(seen) == 2 and all(ends(pid, 1.0) for pid in seen)


def test_findings_come_while_the_script_runs(warm: Warm, tmp_path: Path) -> None:
    script = write(tmp_path, BREAKS.replace('print("done")', "import time; time.sleep(1000)"))
    cancel = threading.Event()

    def hear(message: Message) -> None:
        if isinstance(message, FindingSeen):
            cancel.set()

    with Store(str(warm.store)) as store:
        run, outcome = execute(
            RunSpec(str(script), lane=Lane.FAST, budget=Budget(seconds=60)), store, worker=warm.worker,
            on_message=hear, on_output=lambda *_: None, cancel=cancel,
        )  # fmt: skip
        assert outcome.kind is OutcomeKind.CANCELLED
        assert [finding.code for finding in store.report(run).findings][:1] == ["GB0170"]


@pytest.mark.nightly  # its namesake in test_unbreakable looks at the same and at more
def test_many_runs_leave_nothing_open(warm: Warm, tmp_path: Path) -> None:
    script = write(tmp_path, "print('x')")
    pid = warm.worker._process.pid  # type: ignore[union-attr]
    warm.run(script)
    at_rest(pid)
    before = len(os.listdir(f"/proc/{pid}/fd"))
    ours = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        outcome, _ = warm.run(script)
        assert outcome.kind is OutcomeKind.COMPLETED
    spare = at_rest(pid)
    assert len(os.listdir(f"/proc/{pid}/fd")) == before
    assert len(os.listdir("/proc/self/fd")) == ours
    assert processes.children_of(pid) == [spare], "every child has been waited for"


def test_killing_the_worker_ends_its_runs_and_is_told(tmp_path: Path) -> None:
    worker = Worker(sys.executable, light_torch(tmp_path / "light"))
    assert wait_for(worker, 120) is WorkerState.READY
    warm = Warm(worker, tmp_path / "runs.db")
    script = write(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(1000)")
    pids: list[int] = []

    def hear(_stream: str, text: str) -> None:
        if not text.strip():
            return
        pids.append(int(text))
        os.kill(worker._process.pid, signal.SIGKILL)  # type: ignore[union-attr]

    with Store(str(warm.store)) as store:
        _, outcome = execute(RunSpec(str(script), lane=Lane.FAST), store, worker=worker, on_output=hear)
        assert outcome.kind is OutcomeKind.CRASHED
        assert pids and ends(pids[0], 1.0)
        _, outcome = execute(
            RunSpec(str(write(tmp_path, "print('still works')")), lane=Lane.FAST), store, worker=worker,
            on_output=lambda _stream, text: warm.printed.append(text),
        )  # fmt: skip
    assert outcome.kind is OutcomeKind.COMPLETED and "still works" in warm.output
    assert worker.state is WorkerState.CRASHED
    worker.stop()


def test_the_worker_ends_with_the_one_who_started_it(tmp_path: Path) -> None:
    worker = Worker(sys.executable, light_torch(tmp_path / "light"))
    assert wait_for(worker, 120) is WorkerState.READY
    pid = worker._process.pid  # type: ignore[union-attr]
    worker._socket.close()  # type: ignore[union-attr]  # what a killed language server leaves behind
    worker._process.wait(timeout=60)  # type: ignore[union-attr]
    assert ends(pid, 1.0)


def test_no_torch_is_a_reason() -> None:
    worker = Worker(sys.executable, {"PYTHONPATH": "", "PYTHONNOUSERSITE": "1", "IRSCOPE_TEST": "1"})
    worker.stop()
    assert worker.state is WorkerState.STOPPED
    refused = Worker("/nonexistent/python")
    assert refused.state is WorkerState.REFUSED and "/nonexistent/python" in refused.reason


FAULTS = """
import os, resource, torch
@torch.compile
def f(x):
    return torch.relu(x @ x) + 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
f(torch.ones(3, 3))
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(os.getpid(), os.getppid(), faults, open("/proc/self/comm").read().strip())
"""


def test_a_run_takes_the_spare_which_has_its_pages(warm: Warm, tmp_path: Path) -> None:
    """Page faults, since the time that they take cannot be relied on."""
    script = write(tmp_path, FAULTS)
    pid = warm.worker._process.pid  # type: ignore[union-attr]
    spare = at_rest(pid)
    assert warm.run(script)[0].kind is OutcomeKind.COMPLETED
    ran, parent, with_spare, name = warm.output.split()
    assert int(ran) == spare and int(parent) == pid and name == name_of(pid), (
        "it is called what any other run is called"
    )
    other = at_rest(pid)
    assert other != spare
    os.kill(other, signal.SIGKILL)
    assert ends(other, 10.0)  # a run that is given to one that is just ending goes on in a new process
    assert warm.run(script)[0].kind is OutcomeKind.COMPLETED
    ran, parent, without, _ = warm.output.split()
    assert int(ran) != other and int(parent) == pid, "a spare that was killed is missed by nobody"
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (5, 14):
        assert int(with_spare) < 0.8 * int(without)
    assert at_rest(pid) != other, "there is another after the next run"
    begun = Instant()
    while left := children_but_spares(pid):  # what the worker forked just now has the worker's name for a moment
        assert not late(begun, 10.0), left
        time.sleep(0.02)
