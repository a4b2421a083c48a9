"""The fuzzers' limit of an answer: what a process needs for it, not what a busy machine makes of that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))
from asking import Asking

_COMPUTES = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.nice(5)
print("ready", flush=True)
sys.stdin.readline()
begun = time.process_time()
while time.process_time() - begun < 0.2: pass
print("done", flush=True)
"""
_SPINS = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint('ready', flush=True)\nwhile True: pass"
_SLEEPS = (
    "import sys, time\nprint('ready', flush=True)\nsys.stdin.readline()\ntime.sleep(0.3)\nprint('done', flush=True)"
)

pytestmark = pytest.mark.skipif(
    not Path("/proc/pressure/cpu").exists() or sys.platform != "linux", reason="the system does not tell what waited"
)


def _child(code: str) -> subprocess.Popen[str]:
    core = str(min(os.sched_getaffinity(0)))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, core], text=True, **pipes)  # type: ignore[call-overload,no-any-return]


def _asked(child: subprocess.Popen[str]) -> Asking:
    """When it has answered."""
    assert child.stdin and child.stdout
    assert child.stdout.readline() == "ready\n"
    asked = Asking(child.pid)
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "done\n"
    return asked


def test_what_others_keep_from_the_processor_takes_no_longer() -> None:
    with _child(_SPINS) as spins, _child(_COMPUTES) as child:
        try:
            assert spins.stdout and spins.stdout.readline() == "ready\n"
            asked = _asked(child)
            assert asked.passed() > 0.5  # a third of a core, at most, for 0.2 s
            assert not asked.over(0.45)
            assert asked.over(0.1)
        finally:
            spins.kill()


def test_what_only_waits_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asking._stalled_by_disk", lambda: 0.0)
    monkeypatch.setattr("asking.stalled", lambda: 1e-9)  # as if nobody else did anything
    monkeypatch.setattr("support.stalled", lambda: 1e-9)
    monkeypatch.setattr("asking._REFRESHED_SECONDS", 0.0)
    with _child(_SLEEPS) as child:
        assert _asked(child).over(0.2)
