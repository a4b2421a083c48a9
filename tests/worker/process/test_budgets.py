"""The limits of a run: each stops it, is named in the outcome, and keeps what was found."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from irscope.protocol import Budget, Limit, OutcomeKind
from irscope.runner.steady import QUIET_SECONDS
from irscope.system import processes
from irscope.worker.client import Worker
from support import Instant, Ran, passed_at_this_load, run_captured, run_cli, run_plain_forked, write

HEAD = """\
import time
import torch

@torch.compile
def f(x):
    if x.sum() > 0:
        x = x + 1
    return x * 2

"""
RunBounded = Callable[..., Ran]


@pytest.fixture
def run_bounded(shared_worker: Worker | None, tmp_path: Path) -> RunBounded:
    """``run_bounded(source, steady_calls=8, …)`` runs a script with these limits in a fork of the worker."""

    def run(source: str, forked: bool = True, seconds: float = 60, **limits: int) -> Ran:
        script = write(tmp_path, source)
        budget = Budget(seconds=seconds, **limits)
        return run_captured(script, tmp_path / "runs.db", budget=budget, worker=shared_worker if forked else None)

    return run


def stopped_by(ran: Ran, limit: Limit) -> str:
    outcome = ran.report.outcome
    assert (outcome.kind, outcome.limit, outcome.exit_code) == (OutcomeKind.BUDGET, limit, None), outcome
    return outcome.message


# --- seconds, output, memory ------------------------------------------------------------------------------------------


def test_seconds(run_bounded: RunBounded) -> None:
    ran = run_bounded(HEAD + "f(torch.ones(3))\ntime.sleep(1000)\n", seconds=3)
    message = stopped_by(ran, Limit.SECONDS)
    assert message.startswith("Stopped after 3 s (time limit). Findings up to then are kept. To run longer")
    assert ran.findings("graph-break")


@pytest.mark.parametrize("forked", [True, False])
def test_output(forked: bool, run_bounded: RunBounded) -> None:
    begun = Instant()
    ran = run_bounded("while True:\n    print('x' * 99)\n", forked, output=2_000_000)
    message = stopped_by(ran, Limit.OUTPUT)
    assert message.startswith("Stopped after it printed 2 MB (output limit). That output and the findings")
    assert 2_000_000 < len(ran.stdout) < 2_200_000, "all until then is kept, and little more"
    assert set(ran.stdout[:2_000_000].split("\n")[:-1]) == {"x" * 99}
    assert passed_at_this_load(begun) < 15


@pytest.mark.parametrize("forked", [True, False])
def test_memory(forked: bool, run_bounded: RunBounded) -> None:
    """Of all its processes together: each of the four holds less than the limit."""
    source = """
        import os, time
        os.fork()
        os.fork()
        held = []
        for _ in range(20):
            held.append(bytearray(os.urandom(1)) * 5_000_000)
            time.sleep(0.02)
        time.sleep(5)
    """
    ran = run_bounded(source, forked, memory=300_000_000)
    message = stopped_by(ran, Limit.MEMORY)
    assert "of memory together (proportional set size), more than the limit of 300 MB. Findings" in message


def test_pages_that_are_shared_with_the_worker_do_not_count(run_bounded: RunBounded) -> None:
    """A fork has all of torch in its resident set, but holds little of it."""
    ran = run_bounded("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(0.5)\n", memory=250_000_000)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.report.outcome


def test_what_the_memory_of_processes_is() -> None:
    pids = processes.tree(1)
    assert 1 in pids and pids.index(1) == 0

    own = [os.getpid()]
    before = processes.resident_bytes(own), processes.proportional_bytes(own)
    held = bytearray(os.urandom(1)) * 60_000_000
    after = processes.resident_bytes(own), processes.proportional_bytes(own)
    for low, high in zip(before, after, strict=True):
        assert 50_000_000 < high - low < 80_000_000
    assert after[1] <= after[0]
    del held
    assert processes.tree(4194304) == [] and processes.resident_bytes([4194304]) == 0


def test_a_system_that_does_not_tell_leaves_a_gap(run_bounded: RunBounded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "can_measure", lambda: False)
    ran = run_bounded("print(1)", memory=10_000_000_000)
    assert [gap.what for gap in ran.report.capture_gaps] == ["the memory limit"]


# --- the steady state -------------------------------------------------------------------------------------------------

LOOP = HEAD + "for step in range(10**9):\n    f(torch.ones(3))\n    time.sleep(0.001)\n"
LIBRARY = """\
import functools, time, torch

@torch.compile(backend="aot_eager")
def step(x):
    return x.sin() + 1

def train():  # the only caller is C code
    any(map(lambda x: step(x) is None, iter(functools.partial(torch.ones, 2), None)))
"""


def test_a_loop_in_which_nothing_is_compiled_any_more(run_bounded: RunBounded) -> None:
    ran = run_bounded(LOOP, steady_calls=16)
    message = stopped_by(ran, Limit.STEADY_STATE)
    assert message.startswith("Stopped: no new compile or finding in the last ")
    assert "setting irscope.run.steadyCalls" in message
    assert QUIET_SECONDS < ran.report.outcome.seconds < 20
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0170"]
    assert ran.report.capture_gaps == ()
    assert {compile.file for compile in ran.report.compiles} == {ran.report.script}, "none of irscope's own functions"


def test_compiled_code_that_a_library_calls(run_bounded: RunBounded, tmp_path: Path) -> None:
    write(tmp_path, LIBRARY, "library.py")
    stopped_by(run_bounded("import library\nlibrary.train()\n", steady_calls=16), Limit.STEADY_STATE)


def test_a_loop_that_compiles_late_goes_on(run_bounded: RunBounded) -> None:
    """A new size comes after two thirds of the quiet time, twice; then all is quiet."""
    source = (
        HEAD
        + f"""
begun = time.monotonic()
while (passed := time.monotonic() - begun) < 60:
    f(torch.ones(3 if passed < {QUIET_SECONDS * 0.67} else 4 if passed < {QUIET_SECONDS * 1.34} else 3).expand(2, -1))
    time.sleep(0.001)
"""
    )
    ran = run_bounded(source, steady_calls=16)
    stopped_by(ran, Limit.STEADY_STATE)
    assert ran.findings("recompilation")
    assert ran.report.outcome.seconds > QUIET_SECONDS * 1.67


def test_few_slow_calls_are_no_steady_state(run_bounded: RunBounded) -> None:
    source = HEAD + f"for _ in range(6):\n    f(torch.ones(3))\n    time.sleep({QUIET_SECONDS / 3})\n"
    ran = run_bounded(source, steady_calls=16)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED


def test_at_the_recompile_limit(run_bounded: RunBounded) -> None:
    """Where Dynamo has given up on a function its calls look for compiled code still."""
    source = (
        HEAD
        + "torch._dynamo.config.recompile_limit = 2\n"
        + """
@torch.compile
def g(x, word):
    return x * len(word)

step = 0
while True:
    step += 1
    g(torch.ones(3), "x" * min(step, 20))
    time.sleep(0.001)
"""
    )
    ran = run_bounded(source, steady_calls=16)
    stopped_by(ran, Limit.STEADY_STATE)
    assert ran.findings("recompile-limit")


COUNTED = """\
import sys
import torch
from torch._dynamo.eval_frame import set_guard_complete_hook
sys.path.insert(0, COMPILER)
from irscope.runner import steady

@torch.compile(backend="eager")
def f(x):
    return x + 1

x = torch.ones(3)
f(x)
set_guard_complete_hook(steady.SteadyState(10**9, None)._called)
called = []

def profile(frame, event, what):
    if event == "call" and frame.f_code.co_filename == steady.__file__:
        called.append(frame.f_code.co_name)
    elif event == "c_call" and frame.f_code.co_filename == steady.__file__:
        called.append(what.__name__)

sys.setprofile(profile)
for _ in range(50):
    f(x)
sys.setprofile(None)
print(called == ["_called"] * 50, called[:9])
"""


def test_counting_is_one_call_that_calls_nothing(tmp_path: Path) -> None:
    """What that takes is measured in ``benchmarks/counting.py``: a test cannot tell, on a machine that does other things."""
    source = COUNTED.replace("COMPILER", repr(str(Path(processes.__file__).parents[2])))
    done = run_plain_forked(write(tmp_path, source))
    assert done.stdout.startswith("True"), done.stdout + done.stderr


def test_on_the_command_line(tmp_path: Path) -> None:
    script = write(
        tmp_path, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nwhile True:\n    print('x' * 999)\n"
    )
    done = run_cli("run", script, "--lane", "fast", "--output-budget", "0.5", "--steady-calls", "0")
    assert done.returncode == 0
    assert done.stdout.startswith("out\n" + "x" * 999)
    assert done.stderr == "err\n"
    assert "\nbudget: Stopped after it printed 500 kB (output limit)." in done.stdout
