"""A script that stops or kills the processes around its own: the run ends, and the next one works."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Budget, Lane, Outcome, OutcomeKind
from irscope.store.store import Store
from irscope.worker.client import Worker, WorkerState, can_fork, wait_for
from irscope.worker.process import ForkedProcess
from light_torch import light_torch
from support import Instant, late, write

pytestmark = pytest.mark.skipif(not can_fork(), reason="forking with torch is not safe on this system")

STOPS = "import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\nprint('stopped', flush=True)\n"


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """One of its own: it does not live on."""
    worker = Worker(sys.executable, light_torch(tmp_path / "light"))
    assert wait_for(worker, 120) is WorkerState.READY, worker.reason
    yield worker
    worker.stop()


def run(script: Path, worker: Worker | None, *, seconds: float = 60, cancel: threading.Event | None = None) -> Outcome:
    spec = RunSpec(str(script), lane=Lane.FAST, budget=Budget(seconds))
    with Store(str(script.parent / "runs.db")) as store:
        return execute(
            spec, store, worker=worker, cancel=cancel, on_output=lambda *_: cancel.set() if cancel else None
        )[1]


@pytest.mark.parametrize("forked", [True, False])
@pytest.mark.parametrize("end", ["budget", pytest.param("cancel", marks=pytest.mark.nightly)])
def test_a_script_that_stops_its_parent_is_ended(
    end: str, forked: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    worker: Worker | None = request.getfixturevalue("worker") if forked else None
    script = write(tmp_path, STOPS + "time.sleep(1000)\n")
    cancel = threading.Event() if end == "cancel" else None
    begun = Instant()
    outcome = run(script, worker, seconds=2 if end == "budget" else 60, cancel=cancel)
    assert outcome.kind is (OutcomeKind.BUDGET if end == "budget" else OutcomeKind.CANCELLED)
    assert not late(begun, 15)
    if worker is not None:
        assert worker.state is WorkerState.CRASHED and "did not answer" in worker.reason
        assert run(write(tmp_path, "print(1)", "next.py"), worker).kind is OutcomeKind.COMPLETED  # in a fresh process


def test_a_script_that_stops_its_worker_and_ends(worker: Worker, tmp_path: Path) -> None:
    begun = Instant()
    outcome = run(write(tmp_path, STOPS), worker)
    assert outcome.kind is OutcomeKind.CRASHED
    assert not late(begun, 15) and worker.state is WorkerState.CRASHED


def test_a_worker_that_was_stopped_between_two_runs(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run does not wait for it for ever."""
    monkeypatch.setattr(ForkedProcess, "PATIENCE_SECONDS", 2.0)
    assert run(write(tmp_path, "print(0)", "first.py"), worker).kind is OutcomeKind.COMPLETED
    assert worker._process is not None
    worker._process.send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    assert run(write(tmp_path, "print(1)"), worker).kind is OutcomeKind.COMPLETED
    assert worker.state is WorkerState.CRASHED
