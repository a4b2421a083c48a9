"""Runs scripts for tests: under capture, on the command line, and as plain Python."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import select
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest.mock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from irscope.cli.main import main
from irscope.driver.driver import RunSpec, execute
from irscope.internals.first_compile import MODULES
from irscope.protocol import Compile, Finding, Kernel, Lane, Message, Report
from irscope.store.store import Store
from irscope.system import processes
from irscope.worker.client import Worker, WorkerState, can_fork, wait_for
from irscope.worker.errand import TRIAL
from irscope.worker.spare import SPARE
from versions import KNOWN_GAPS, torch_version

IRSCOPE = str(Path(sys.executable).parent / "irscope")
REPOSITORY = Path(__file__).parents[1]
TIMEOUT_SECONDS = 300

COMPILED = """\
import torch

@torch.compile
def f(x):
    return x.sin() * 2 + 1

f(torch.ones(3))
"""
BREAKS = COMPILED.replace("    return", "    print('hi')\n    return")


@dataclass(frozen=True)
class Ran:
    """What a run under capture gave."""

    report: Report
    stdout: str
    stderr: str
    messages: tuple[Message, ...]
    store: str

    def text(self, stage: str) -> str:
        with Store(self.store) as store:
            return store.stage_text(self.report.run, stage)

    def compile(self, id: str) -> Compile:
        return next(compile for compile in self.report.compiles if compile.id == id)

    def findings(self, kind: str) -> list[Finding]:
        return [finding for finding in self.report.findings if finding.kind == kind]

    def kernels(self, language: str) -> list[Kernel]:
        return [kernel for kernel in self.report.kernels if kernel.language == language]


RunScript = Callable[..., Ran]


def write(folder: Path, source: str, name: str = "script.py") -> Path:
    """A script; its text may be indented as the test is."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


def run_captured(
    script: Path,
    store: Path,
    lane: str = "fast",
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    worker: Worker | None = None,
    **spec: object,
) -> Ran:
    """Runs a script under capture to its end, in a fork of the worker where one is given."""
    printed: dict[str, list[str]] = {"stdout": [], "stderr": []}
    messages: list[Message] = []
    with Store(str(store)) as opened:
        run, _ = execute(
            RunSpec(str(script), tuple(args), Lane(lane), env=env, **spec),  # type: ignore[arg-type]
            opened,
            on_message=messages.append,
            on_output=lambda stream, text: printed[stream].append(text),
            worker=worker,
        )
        report = opened.report(run)
    known = KNOWN_GAPS.get(torch_version(), ())
    report = dataclasses.replace(report, capture_gaps=tuple(g for g in report.capture_gaps if g.what not in known))
    return Ran(report, "".join(printed["stdout"]), "".join(printed["stderr"]), tuple(messages), str(store))


@functools.cache
def shared_worker() -> Worker | None:
    """A fork server for tests whose subject it is not: a run in a fork saves the import of torch, seconds each.

    None on systems where forking is not safe: the runs are fresh processes then.
    """
    if not can_fork():
        return None
    worker = Worker(sys.executable, {"PYTHONDONTWRITEBYTECODE": "1"})
    assert wait_for(worker, 120) is WorkerState.READY, worker.reason
    wait_until_it_knows_the_machine(worker)
    return worker


def wait_until_it_knows_the_machine(worker: Worker) -> None:
    """What it finds out when nothing runs saves each run a second; a spare that does not know it is replaced then."""
    assert worker._process is not None
    first = at_rest(worker._process.pid)
    begun = Instant()
    while at_rest(worker._process.pid) == first and not late(begun, 60.0):
        time.sleep(0.1)


@contextmanager
def triton_importable() -> Iterator[None]:
    """Fresh processes can import triton; skips the test where it is not installed.

    It lies beside the environment's packages, since most users of a CPU lack it.
    """
    beside = Path(sys.prefix) / "triton" / "site-packages"
    if not beside.is_dir() and find_spec("triton") is None:
        pytest.skip("the package triton is not installed")
    with pytest.MonkeyPatch.context() as patch:
        if beside.is_dir():
            patch.setenv("PYTHONPATH", str(beside), prepend=os.pathsep)
        yield


def run_forked(script: Path, store: Path, lane: str = "fast", args: Sequence[str] = (), **options: object) -> Ran:
    """`run_captured` in a fork of the shared worker; not with variables of its own, some of which torch reads when it is
    imported, other than folders of compiled kernels, which are looked up at each compile."""
    folders = {"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}
    worker = None if {*(options.get("env") or ())} - folders else shared_worker()  # type: ignore[misc]
    return run_captured(script, store, lane, args, worker=worker, **options)  # type: ignore[arg-type]


def run_cli(
    *args: object, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The console script of this environment, with a store of its own (see conftest.py)."""
    return subprocess.run(
        [IRSCOPE, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )


def run_cli_forked(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`run_cli` in this process, with its runs in forks of the shared worker."""
    code, before, outputs = 2, Path.cwd(), (sys.stdout, sys.stderr)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, ExitStack() as undo:
        for number, file in enumerate((out, err), 1):
            kept = os.dup(number)
            undo.callback(os.close, kept)
            undo.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
        undo.callback(setattr, sys, "stdout", outputs[0])
        undo.callback(setattr, sys, "stderr", outputs[1])
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        undo.callback(os.chdir, before)
        os.chdir(cwd or before)
        undo.enter_context(unittest.mock.patch.dict(execute.__kwdefaults__, worker=shared_worker()))
        try:
            code = main(list(map(str, args)))
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode())
    return subprocess.CompletedProcess(["irscope", *map(str, args)], code, *printed)


def run_plain(
    script: Path, args: Sequence[str] = (), env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """``python script.py`` without irscope."""
    done = subprocess.run(
        [sys.executable, str(script), *args],
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def log_as(variables: Mapping[str, str]) -> str:
    """What a plain fork executes before a script, so that PyTorch logs and traces as these variables say."""
    start = "import os, torch._logging._internal as logs\nlogs.LOG_TRACE_HANDLER = None\n"
    return start + f"os.environ.update({dict(variables)!r})\nlogs._init_logs()\n"


@functools.cache
def plain_forks() -> subprocess.Popen[str]:
    """What `run_plain_forked` forks."""
    # Workers that compile in the background would import torch, too.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, str(REPOSITORY / "tests" / "plain_fork.py"), "torch", *MODULES]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_plain_forked(
    script: Path, args: Sequence[str] = (), cwd: Path | None = None, before: str = ""
) -> subprocess.CompletedProcess[str]:
    """`run_plain` without the import of torch, for what a script computes and prints; not for how an interpreter begins
    and ends, nor for a traceback.  ``before`` is executed first, as Python."""
    if not can_fork() and not before:
        return run_plain(script, args, cwd=cwd)
    server = plain_forks()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        folder = str(cwd or Path.cwd())
        request = {
            "script": str(script), "args": [*args], "cwd": folder, "stdout": out.name, "stderr": err.name, "before": before,
        }  # fmt: skip
        print(json.dumps(request), file=server.stdin, flush=True)
        if not select.select([server.stdout], [], [], TIMEOUT_SECONDS)[0]:
            server.kill()
            raise subprocess.TimeoutExpired(str(script), TIMEOUT_SECONDS)
        code = int(server.stdout.readline())
        printed = [file.read().decode("utf-8", "replace") for file in (out, err)]
    return subprocess.CompletedProcess([str(script), *args], code, *printed)


def stop_shared() -> None:
    """Ends what tests share, if any has used it."""
    if shared_worker.cache_info().currsize and (worker := shared_worker()) is not None:
        worker.stop()
    if plain_forks.cache_info().currsize:
        plain_forks().communicate()


def lines_marked(source: str, mark: str) -> set[int]:
    """The 1-based lines of a text that carry a marker comment, as in ``y = x.sin()  # @kernel``."""
    return {number for number, line in enumerate(source.split("\n"), 1) if mark in line}


def children_but_spares(pid: int) -> list[int]:
    """The children of a worker without those that wait for a run, or find out what one will need."""
    return [child for child in processes.children_of(pid) if name_of(child) not in (SPARE, TRIAL)]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def at_rest(worker: int) -> int:
    """Waits until a worker has nothing to do but to keep its spare; the spare."""
    begun = Instant()
    while True:
        names = {child: name_of(child) for child in processes.children_of(worker)}
        spare = next((child for child, name in names.items() if name == SPARE), None)
        if spare is not None and TRIAL not in names.values():
            return spare
        assert not late(begun, 60.0), f"no spare among {names}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ends(pid: int, seconds: float) -> bool:
    """Waits until a process has ended, so many seconds at most."""
    begun = Instant()
    while alive(pid):
        if late(begun, seconds):
            return False
        time.sleep(0.02)
    return True


# Bounds of time are those of a machine that has nothing else to do.


class Instant(float):
    """A time of `time.monotonic`: now."""

    stalled: float

    def __new__(cls) -> Instant:
        moment = super().__new__(cls, time.monotonic())
        moment.stalled = stalled()
        return moment


def late(begun: Instant, seconds: float) -> bool:
    """Whether more than these seconds have passed since a moment."""
    return time.monotonic() - begun > seconds and passed_at_this_load(begun) > seconds


def passed_at_this_load(begun: Instant) -> float:
    """Seconds since a moment, as they would be on a machine that has nothing else to do.

    Other work may have gone meanwhile, so that what share of a core there is now says too little; time in which
    anything waited for a processor says it then, but down to a fifth of the seconds only, since that wait may be others'.
    """
    passed = time.monotonic() - begun
    without_waiting = max(passed - (stalled() - begun.stalled), passed / 5)
    return min(passed * share_of_a_core(), without_waiting)


def stalled() -> float:
    """Seconds in which some process of this machine has waited for a processor; 0 where the system does not tell."""
    try:
        first = Path("/proc/pressure/cpu").read_text().split("\n")[0]
    except OSError:
        return 0.0
    return int(first.rpartition("total=")[2]) / 1e6


def share_of_a_core() -> float:
    """How much of a core a process gets now, from 0 to 1, where others want it too: a loop that does nothing but count
    takes as much longer than its processor time."""
    start, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < 0.1:
        pass
    return min(1.0, (time.thread_time() - used) / (time.monotonic() - start))
