"""Scripts whose process ends without a word: the run says what happened, in a fresh process and in a fork alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from irscope.protocol import OutcomeKind
from support import RunScript, run_captured, run_forked, write

OVER = "The script's process ended at once with exit code {0}, as os._exit({0}) does: functions at exit did not run. What was captured up to then is kept."
REPLACED = "The script replaced its own process with `{}` (os.exec), which {}. What was captured up to then is kept."
AFTER_EXEC = "what `{}` did (the script replaced its own process with it (os.exec))"
CLOSED = "what the script did after it closed irscope's pipe (it closed descriptors that it had not opened, as os.closerange(3, …) does)"
CLOSE = "import os\nos.closerange(3, 300)\n"
NOTHING = "The script ran to its end, and nothing was compiled"

# name → source, kind, message, capture gap
ENDS: dict[str, tuple[str, OutcomeKind, str, str]] = {
    "os._exit(0)": ("import os\nprint(1, flush=True)\nos._exit(0)", OutcomeKind.COMPLETED, OVER.format(0), ""),
    "os._exit(3)": ("import os\nos._exit(3)", OutcomeKind.SCRIPT_ERROR, OVER.format(3), ""),
    "in a thread": ("import os, threading\nthread = threading.Thread(target=os._exit, args=(5,))\nthread.start()\nthread.join()", OutcomeKind.SCRIPT_ERROR, OVER.format(5), ""),
    "sys.exit in a thread": ("import sys, threading\nthread = threading.Thread(target=sys.exit, args=(5,))\nthread.start()\nthread.join()\nprint(1)", OutcomeKind.COMPLETED, NOTHING, ""),
    "os.exec": ("import os\nos.execv('/bin/echo', ['echo', 'hello'])", OutcomeKind.COMPLETED, REPLACED.format("echo", "ended with exit code 0"), AFTER_EXEC.format("echo")),
    "os.exec that fails": ("import os\ntry:\n    os.execv('/no/such', ['such'])\nexcept OSError:\n    os._exit(7)", OutcomeKind.SCRIPT_ERROR, OVER.format(7), ""),
    "os.exec and an exit code": ("import os\nos.execvp('false', ['false'])", OutcomeKind.SCRIPT_ERROR, REPLACED.format("false", "ended with exit code 1"), AFTER_EXEC.format("false")),
    "os.exec and a signal": ("import os\nos.execv('/bin/sh', ['sh', '-c', 'kill -TERM $$'])", OutcomeKind.CRASHED, REPLACED.format("sh", "was killed by SIGTERM"), AFTER_EXEC.format("sh")),
    "descriptors closed": (f"{CLOSE}print(1)", OutcomeKind.COMPLETED, NOTHING, CLOSED),
    "descriptors closed, and an error": (f"{CLOSE}raise ValueError('no')", OutcomeKind.SCRIPT_ERROR, "ValueError: no (SCRIPT:3)", CLOSED),
    "descriptors closed, and an exit code": (f"{CLOSE}raise SystemExit(4)", OutcomeKind.SCRIPT_ERROR, "the script ended with sys.exit(4)", CLOSED),
    "a child of the script's ends": ("import os\nif os.fork() == 0:\n    os.closerange(3, 300)\n    raise SystemExit(9)\nos.wait()\nos._exit(2)", OutcomeKind.SCRIPT_ERROR, OVER.format(2), ""),
}  # fmt: skip


# Each way to end ends a fork every time; of fresh processes one of each sort: an exit, another program, no descriptors.
EACH_TIME = ("os._exit(3)", "os.exec and a signal", "descriptors closed, and an error")


@pytest.mark.parametrize(
    ("name", "run"),
    [
        *(pytest.param(name, run_forked, id=f"{name}-fork") for name in ENDS),
        *(
            pytest.param(name, run_captured, id=f"{name}-fresh", marks=[pytest.mark.nightly] * (name not in EACH_TIME))
            for name in ENDS
        ),
    ],
)
def test_what_happened_is_said(tmp_path: Path, name: str, run: RunScript) -> None:
    source, kind, message, gap = ENDS[name]
    script = write(tmp_path, source)
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True)
    ran = run(script, tmp_path / "runs.db")
    outcome = ran.report.outcome
    assert (outcome.kind, outcome.exit_code) == (kind, plain.returncode if plain.returncode >= 0 else None)
    assert outcome.message.startswith(message.replace("SCRIPT", str(script)))
    assert [f"{gap.what} ({gap.why})" for gap in ran.report.capture_gaps] == [gap][: bool(gap)]
    assert (ran.stdout, ran.stderr) == (plain.stdout, plain.stderr)


def test_a_daemon_is_ended_and_that_is_said(tmp_path: Path) -> None:
    source = "import os, signal\nif os.fork():\n    os._exit(0)\nos.setsid()\nsignal.pause()"
    ran = run_captured(write(tmp_path, source), tmp_path / "runs.db")
    assert ran.report.outcome.message == f"{OVER.format(0)} Processes that it left running were ended with it."
