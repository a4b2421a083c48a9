"""`irscope run` as a command: its exit code, and what it does where its output goes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from irscope.protocol import OutcomeKind
from irscope.store.store import Store
from support import IRSCOPE, run_cli, run_plain, write

ENDS = """\
import os, signal, sys
print("hello", flush=True)
how = sys.argv[1]
if how == "raise":
    raise ValueError("x")
if how == "_exit":
    os._exit(7)
if how.startswith("SIG"):
    os.kill(os.getpid(), getattr(signal, how))
sys.exit(int(how))
"""
BYTES = """\
import sys
sys.stdout.buffer.write(b"\\xff\\xe9 \\xe5\\x90")
sys.stdout.flush()
sys.stdout.buffer.write(b"\\x8d end")
"""


# 300 is an exit code, too, SIGTERM a signal; how a script ends with `os._exit` is in test_abrupt_ends.py.
@pytest.mark.parametrize(
    "how",
    [
        "0",
        "300",
        "raise",
        "SIGTERM",
        *(pytest.param(how, marks=pytest.mark.nightly) for how in ("5", "_exit", "SIGSEGV", "SIGKILL")),
    ],
)
def test_exit_code_is_the_scripts(how: str, tmp_path: Path) -> None:
    script = write(tmp_path, ENDS)
    plain = run_plain(script, [how]).returncode
    as_shell = 128 - plain if plain < 0 else plain
    ran = run_cli("run", script, "--lane", "fast", "--exit-code", "--", how)
    assert ran.returncode == as_shell, ran.stderr
    assert ran.stdout.startswith("hello\n")


def test_exit_codes_that_are_irscopes(tmp_path: Path) -> None:
    script = write(tmp_path, ENDS)
    assert run_cli("run", script, "--lane", "fast", "--", "5").returncode == 0
    assert run_cli("run", tmp_path / "none.py", "--exit-code").returncode == 3
    endless = write(tmp_path, "import time\ntime.sleep(1000)\n", "endless.py")
    assert run_cli("run", endless, "--lane", "fast", "--exit-code", "--budget", "3").returncode == 124


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "options",
    [[], pytest.param(["--json"], marks=pytest.mark.nightly), ["--output-budget", "5"]],  # written as the report is
    ids=" ".join,
)
def test_a_run_is_stored_if_its_report_cannot_be_printed(options: list[str], tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    for number, end in enumerate((">/dev/full", ">&-"), 1):
        # What it writes to a closed output goes nowhere: another file may not have got that number.
        write_it = "os.write(1, b'!')" if end == ">&-" else ""
        script = write(tmp_path, f"import os, sys\n{write_it}\nsys.exit(6)\n")
        command = [IRSCOPE, "run", str(script), "--lane", "fast", "--store", str(store), *options]
        done = subprocess.run(
            ["bash", "-c", f'"$@" {end}', "bash", *command], capture_output=True, text=True, timeout=120, check=False
        )
        with Store(str(store)) as opened:
            runs = opened.runs(limit=9)
        assert len(runs) == number
        assert runs[0].outcome is not None and runs[0].outcome.kind is OutcomeKind.SCRIPT_ERROR
        assert runs[0].outcome.exit_code == 6  # the script itself came to its end
        assert done.returncode == 74
        assert done.stderr.count("\n") == 1 and f"The run is stored: irscope show {runs[0].run}" in done.stderr


@pytest.mark.parametrize("options", [[], ["--output-budget", "5"]], ids=" ".join)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_the_script_prints_keeps_its_bytes(options: list[str], encoding: str, tmp_path: Path) -> None:
    script = write(tmp_path, BYTES)
    done = subprocess.run(
        [IRSCOPE, "run", str(script), "--lane", "fast", *options], capture_output=True, timeout=120, check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"\xff\xe9 \xe5\x90\x8d end")


def test_a_script_sees_the_streams_that_it_would_see(tmp_path: Path) -> None:
    """Standard input, output and error of the script are irscope's own, byte for byte."""
    script = write(tmp_path, "import os, sys\nprint(sys.stdin.read(), os.fstat(1).st_ino == os.fstat(2).st_ino)\n")
    with open(tmp_path / "both", "wb") as both:
        subprocess.run(
            [IRSCOPE, "run", str(script), "--lane", "fast"], input=b"given", stdout=both, stderr=both, timeout=120,
            check=True,
        )  # fmt: skip
    assert (tmp_path / "both").read_bytes().startswith(b"given True\n")
