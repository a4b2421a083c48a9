"""Scripts that do to their process what takes the ground from under a capture: output, descriptors, modules, logging."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import CompileSeen, OutcomeKind, ScriptEnded, Started
from irscope.protocol.frames import frame
from irscope.store.store import Store
from irscope.worker.client import Worker
from support import BREAKS, Instant, RunScript, passed_at_this_load, run_captured, write


def test_output_is_not_kept_in_memory(tmp_path: Path) -> None:
    """Two hundred megabytes pass through in small pieces."""
    sizes: list[int] = []
    source = "import sys\nline = 'x' * 1_000_000 + '\\n'\nfor _ in range(200):\n    sys.stdout.write(line)\n"
    with Store(str(tmp_path / "runs.db")) as store:
        _, outcome = execute(
            RunSpec(str(write(tmp_path, source))), store, on_output=lambda _, text: sizes.append(len(text))
        )
    assert outcome.kind is OutcomeKind.COMPLETED
    assert sum(sizes) == 200 * 1_000_001
    assert max(sizes) <= 1 << 16


def test_a_character_cut_in_two_by_the_pipe(run_script: RunScript) -> None:
    ran = run_script("import sys\nsys.stdout.write('x' + 'é' * 200_000)\n")
    assert ran.stdout == "x" + "é" * 200_000


@pytest.mark.parametrize("new_session", [False, True])
def test_a_child_that_prints_on_and_on(run_script: RunScript, new_session: bool) -> None:
    ran = run_script(
        f"import subprocess\nsubprocess.Popen('yes & sleep 20; kill $!', shell=True, start_new_session={new_session})\n"
    )
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED


def test_a_script_that_closes_every_descriptor(run_script: RunScript, tmp_path: Path) -> None:
    """And opens its own in their place: they must stay its own."""
    ran = run_script(
        BREAKS
        + f"""
import os
os.closerange(3, 4096)
files = [open({str(tmp_path)!r} + f"/mine-{{i}}", "w") for i in range(300)]
for file in files:
    file.write("mine alone")
    file.flush()
f(torch.ones(3, 3))
f(torch.ones(3, 3, 3))
print("end", flush=True)
""",
        "fast",
    )
    assert ran.stdout.endswith("end\n")
    assert {path.read_text() for path in tmp_path.glob("mine-*")} == {"mine alone"}
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    assert ran.report.outcome.exit_code == 0


LOCKS = """
import sqlite3
db = sqlite3.connect(STORE, isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
f(torch.ones(3, 3))
f(torch.ones(3, 3, 3))
print("end", flush=True)
"""


def test_a_script_that_locks_the_store_does_not_wait_and_loses_nothing(
    tmp_path: Path, shared_worker: Worker | None
) -> None:
    """SQLite alone would wait half a minute.  What it compiles meanwhile is stored when its process has ended."""
    store = tmp_path / "runs.db"
    begun = Instant()
    ran = run_captured(write(tmp_path, BREAKS + LOCKS.replace("STORE", repr(str(store)))), store, worker=shared_worker)
    assert passed_at_this_load(begun) < 12.0
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    assert ran.report.capture_gaps == () and len(ran.report.compiles) > 2


def test_a_script_that_may_not_write_long_files_is_stored_whole(tmp_path: Path, shared_worker: Worker | None) -> None:
    """The store is written by another process."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    ran = run_captured(write(tmp_path, limit + BREAKS), tmp_path / "runs.db", worker=shared_worker)
    assert ran.report.outcome.message == "The script ran to its end."
    assert ran.report.capture_gaps == () and ran.report.compiles


NO_STORE = """
import os
names = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
print("store:", [name for name in names if "runs.db" in name], [line for line in open("/proc/self/maps") if "runs.db" in line])
"""


@pytest.mark.parametrize("lane", ["fast", pytest.param("deep", marks=pytest.mark.nightly)])
def test_the_script_s_process_has_no_descriptor_of_the_store(
    lane: str, run_script: RunScript, shared_worker: Worker | None
) -> None:
    ran = run_script(BREAKS + NO_STORE, lane, worker=shared_worker)
    assert ran.stdout.endswith("store: [] []\n")


RUDE = """
import os
for fd in range(3, 1024):
    for write in (lambda: os.pwrite(fd, b"garbage!" * 512, 0), lambda: os.write(fd, b"garbage!" * 512)):
        try:
            write()
        except OSError:
            pass
f(torch.ones(3, 3, 3))
print("end", flush=True)
"""


@pytest.mark.parametrize("forked", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_script_that_writes_rubbish_everywhere_destroys_no_run(
    forked: bool, shared_worker: Worker | None, tmp_path: Path
) -> None:
    store = tmp_path / "runs.db"
    worker = shared_worker if forked else None
    first = run_captured(write(tmp_path, BREAKS), store, worker=worker)
    rude = run_captured(write(tmp_path, BREAKS + RUDE), store, worker=worker)
    assert rude.stdout.endswith("end\n") and rude.report.outcome.kind is OutcomeKind.COMPLETED
    assert len(rude.report.compiles) > len(first.report.compiles), "the next good message is found"
    [gap] = rude.report.capture_gaps
    assert gap.what == "a part of what was captured" and "4,096 bytes were of none" in gap.why
    with Store(str(store)) as opened:
        assert opened.report(first.report.run) == first.report


def test_a_script_that_writes_into_every_descriptor(run_script: RunScript, shared_worker: Worker | None) -> None:
    ran = run_script(
        BREAKS
        + """
import os, stat
for fd in range(3, 1024):
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.write(fd, b'\\xff nonsense {"is": "Refused"}\\n[1]\\n\\n{"is": "Nothing"}\\n3\\n\\xf5irf' + b'\\0' * 30)
    except OSError:
        pass
""",
        worker=shared_worker,
    )
    assert ran.findings("graph-break")


# What a script may write where its run sends messages: too deep, of wrong types, unfit twice, not encodable.
FORGED_TEXTS = (
    "[" * 100_000,
    '{"is": "Unfit", "reason": {"a": 1}}',
    '{"is": "Unfit", "reason": ""}',
    '{"is": "Refused", "reason": {"a": 1}}',
    '{"is": "Refused", "reason": "forged"}',
    '{"is": "LimitReached", "limit": "seconds", "message": [1]}',
    '{"is": "Progress", "phase": "\\ud800", "text": "\\ud800", "done": 1, "total": 1' + "0" * 400 + "}",
    '{"is": "GapSeen", "gap": {"what": "\\ud800 forged", "why": "\\ud800"}}',
    '{"is": "FactsWritten", "facts": {"args": [1], "device": 3, "files": "x"}}',
    '{"is": "StageWritten", "compile": "0/0", "stage": {"id": "0/0/x", "name": "x", "language": "", "bytes": 1}, "position": 0.0, "texts": {"text": 9}}',
    '{"is": "KernelsWritten", "kernels": [1]}',
)


FORGED = [frame(1_000_000 + number, text.encode()) for number, text in enumerate(FORGED_TEXTS)]


@pytest.mark.parametrize("forked", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_script_that_forges_messages(forked: bool, shared_worker: Worker | None, tmp_path: Path) -> None:
    source = (
        BREAKS
        + f"""
import os, stat
for fd in range(3, 1024):
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            for message in {FORGED!r}:
                os.write(fd, message)
    except OSError:
        pass
print("end", flush=True)
"""
    )
    ran = run_captured(write(tmp_path, source), tmp_path / "runs.db", worker=shared_worker if forked else None)
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED, ran.report.outcome.message
    assert ran.stdout.endswith("end\n") and ran.findings("graph-break")
    assert "forged" in str(ran.report.capture_gaps), "what was written did reach the driver"
    print(ran.report.capture_gaps)  # can be encoded


def test_the_text_of_an_exception_is_cut(run_script: RunScript) -> None:
    ran = run_script("raise ValueError('x' * 50_000_000)")
    outcome = ran.report.outcome
    assert outcome.kind is OutcomeKind.SCRIPT_ERROR and "ValueError: xxx" in outcome.message
    assert "(50000" in outcome.message[-60:] and len(outcome.message) < 21_000


def test_a_script_that_breaks_the_modules_we_use(run_script: RunScript) -> None:
    ran = run_script(
        "import json, sys, logging, os\njson.dumps = json.loads = None\nlogging.disable(logging.CRITICAL)\nsys.meta_path.clear()\n"
        "print('still here')\n"
    )
    assert ran.stdout == "still here\n"
    assert ran.report.outcome.exit_code == 0


@pytest.mark.parametrize(
    "silence",
    [
        "logging.disable(logging.CRITICAL)",
        "logging.config.dictConfig({'version': 1})",
        "logging.getLogger('torch').setLevel(logging.CRITICAL)",
    ],
)
def test_a_script_that_silences_logging(silence: str, run_script: RunScript, shared_worker: Worker | None) -> None:
    """What irscope reads from PyTorch's loggers still comes; what the script silenced is not printed."""
    source = f"""
import logging, logging.config
{silence}
import torch
{silence}

@torch.compile
def f(x, tag):
    print("hi")
    return x + len(tag)

for n in range(12):
    f(torch.ones(3), "x" * n)
"""
    ran = run_script(source, worker=shared_worker)
    assert [finding.code for finding in ran.findings("graph-break")] == ["GB0059"]
    assert ran.findings("recompilation")
    assert [finding.code for finding in ran.findings("recompile-limit")] == ["GB0039"]
    assert ran.stderr == ""


def test_a_module_of_the_script_s_folder_named_like_ours(run_script: RunScript, tmp_path: Path) -> None:
    for name in ("protocol", "store", "source", "server", "runner", "capture", "graphs"):
        write(tmp_path, f"NAME = {name!r}\n", f"{name}.py")
    ran = run_script("import protocol, store, server\nprint(protocol.NAME, store.NAME, server.NAME)\n" + BREAKS)
    assert ran.stdout.startswith("protocol store server\n")
    assert ran.findings("graph-break")


def test_the_order_of_messages(run_script: RunScript, shared_worker: Worker | None) -> None:
    ran = run_script(BREAKS, worker=shared_worker)
    kinds = [type(message) for message in ran.messages]
    assert kinds[0] is Started
    assert kinds[-1] is ScriptEnded
    assert kinds.index(CompileSeen) > 0
    facts: Any = ran.messages[-1]
    assert (facts.exit_code, facts.error) == (0, "")
