"""How soon after a script is opened the editor says how it stands, as a ratio to what the plain script needs to its first step.

    python benchmarks/opening.py SCRIPT [--rounds 5] [--python PYTHON]

The script must print a line when its first step is done; what PyTorch keeps on disk is warm for both, after a round that
does not count.  The plain script and the editor take turns.  Each of the editor's rounds starts a new language server
with an empty store, opens the script, and ends when the fast run has ended and the sentence of its summary is sent.
Printed are the medians; where the goal is missed the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from latency import Editor

GOAL = 1.3


def to_first_step(script: Path, python: str) -> float:
    """Seconds until the plain script prints its first line."""
    begun = time.perf_counter()
    with subprocess.Popen([python, "-u", str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"{script} ended without a line of output.")
        seconds = time.perf_counter() - begun
        process.kill()
    return seconds


def to_summary(script: Path, python: str) -> float:
    """Seconds from the start of the server, with the script open, until its run has ended and its summary is known."""

    def ended(method: str, params: dict[str, Any]) -> bool:
        return method == "irscope/runsChanged" and not params["running"]

    with tempfile.TemporaryDirectory() as folder:
        uri, begun = script.as_uri(), time.perf_counter()
        editor = Editor([sys.executable, "-m", "irscope_server"])
        editor.initialize({"storePath": str(Path(folder) / "runs.db"), "python": python})
        document = {"uri": uri, "languageId": "python", "version": 1, "text": script.read_text()}
        editor.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        seconds = editor.wait_for(begun, ended, 600.0) - begun
        editor.close()
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the script")
    arguments = parser.parse_args()
    script, rounds = arguments.script.resolve(), []
    for number in range(arguments.rounds + 1):
        plain, opened = to_first_step(script, arguments.python), to_summary(script, arguments.python)
        print(f"plain {plain:.2f} s, editor {opened:.2f} s", file=sys.stderr)
        if number:
            rounds.append((plain, opened))
    ratio = statistics.median(opened / plain for plain, opened in rounds)
    figures = {
        "plain script to its first step, s": statistics.median(plain for plain, _ in rounds),
        "opened to summary, s": statistics.median(opened for _, opened in rounds),
        "ratio": ratio,
    }
    print(json.dumps({**{name: round(value, 3) for name, value in figures.items()}, "processors": os.cpu_count()}))
    return int(ratio > GOAL)


if __name__ == "__main__":
    sys.exit(main())
