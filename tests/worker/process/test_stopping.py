"""Runs that are stopped: by their budget, by who asked for them, by a listener that fails."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Budget, CompileSeen, Lane, Limit, Message, OutcomeKind
from irscope.store.store import Store
from irscope.worker.client import Worker
from support import BREAKS, RunScript, ends, write

ENDLESS = BREAKS + "import time\nprint('at work', flush=True)\nwhile True:\n    time.sleep(0.01)\n"


def test_a_budget(run_script: RunScript) -> None:
    ran = run_script("import time\nprint('at work', flush=True)\ntime.sleep(1000)\n", budget=Budget(seconds=3.0))
    assert ran.report.outcome.kind is OutcomeKind.BUDGET
    assert ran.report.outcome.limit is Limit.SECONDS
    assert ran.report.outcome.message.startswith(
        "Stopped after 3 s (time limit). Findings up to then are kept. To run longer, raise --budget "
    )
    assert ran.report.outcome.exit_code is None
    assert ran.stdout == "at work\n"


def test_cancel_ends_the_whole_group_and_keeps_what_was_found(tmp_path: Path) -> None:
    source = ENDLESS.replace(
        "import time\n",
        "import subprocess, sys, time\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\nprint('child', child.pid, flush=True)\n",
    )
    cancel, printed = threading.Event(), []

    def on_output(_: str, text: str) -> None:
        printed.append(text)
        if "at work" in text:
            cancel.set()

    with Store(str(tmp_path / "runs.db")) as store:
        run, outcome = execute(
            RunSpec(str(write(tmp_path, source)), lane=Lane.FAST), store, on_output=on_output, cancel=cancel
        )
        report = store.report(run)
    assert outcome.kind is OutcomeKind.CANCELLED
    assert outcome.message == "The run was cancelled. Findings up to then are kept."
    assert report.outcome == outcome
    assert [finding.code for finding in report.findings] == ["GB0059"]
    child = re.search(r"child (\d+)", "".join(printed))
    assert child is not None
    assert ends(int(child[1]), 10.0)


def test_cancelled_before_it_began(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with Store(str(tmp_path / "runs.db")) as store:
        _, outcome = execute(RunSpec(str(write(tmp_path, "print(1)"))), store, on_output=lambda *_: None, cancel=cancel)
    assert outcome.kind is OutcomeKind.CANCELLED


def test_interrupted_on_the_command_line(tmp_path: Path) -> None:
    script, store = write(tmp_path, ENDLESS), tmp_path / "runs.db"
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "irscope"), "run", str(script), "--lane", "fast", "--store", str(store)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert any("at work" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.terminate()  # the script never ends by itself
    assert process.returncode == 130
    assert "irscope: interrupted" in err
    with Store(str(store)) as opened:
        report = opened.report(opened.find_run())
    assert (report.outcome.kind, report.outcome.message) == (OutcomeKind.CANCELLED, "irscope was interrupted.")
    assert len(report.findings) == 1


def test_a_listener_that_fails_ends_the_run(tmp_path: Path, shared_worker: Worker | None) -> None:
    def on_message(message: Message) -> None:
        if isinstance(message, CompileSeen):
            raise RuntimeError("the listener's own")

    with Store(str(tmp_path / "runs.db")) as store:
        with pytest.raises(RuntimeError, match="the listener's own"):
            execute(
                RunSpec(str(write(tmp_path, ENDLESS)), lane=Lane.FAST),
                store,
                on_message=on_message,
                on_output=lambda *_: None,
                worker=shared_worker,
            )
        assert store.report(store.find_run()).outcome.kind is OutcomeKind.CANCELLED
