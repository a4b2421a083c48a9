"""How soon a save in the editor shows what the script does, as ratios to `python -c "import torch"`.

    python benchmarks/latency.py [--rounds 5]

The whole chain is in it: the language server gets `didSave`, forks its worker, and publishes diagnostics.  The worker
is warm, as it is from the second save on.  Before each save the line with the graph break is edited, so that the
finding of the save before is gone, and the first publication with a finding is that of this save.

The import of torch is timed once in each round, next to the saves, since the machine may be busy with other things.
Printed are the medians over the rounds; where the goal is missed the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from server import Client

SCRIPT = """\
import torch


@torch.compile
def f(x):
    y = torch.relu(x @ x)
    print("round {number}")
    return y.sin() + 1


f(torch.randn(4, 4))
"""
GOAL = 0.06


class Editor(Client):
    """A client that keeps the time at which each notification came."""

    def __init__(self, command: list[str]) -> None:
        self.notes: list[tuple[float, str, dict[str, Any]]] = []
        self.noted = threading.Condition()
        super().__init__(command)

    def heard(self, now: float, message: dict[str, Any]) -> None:
        with self.noted:
            self.notes.append((now, message["method"], message.get("params") or {}))
            self.noted.notify_all()

    def wait_for(self, since: float, wanted: Any, seconds: float = 120.0) -> float:
        """When the first notification that fits came after a moment."""

        def first() -> float | None:
            return next((when for when, method, params in self.notes if when > since and wanted(method, params)), None)

        with self.noted:
            if not self.noted.wait_for(lambda: first() is not None, timeout=seconds):
                raise TimeoutError("the server did not say it in time")
            found = first()
        assert found is not None
        return found


def import_torch(python: str) -> float:
    begun = time.perf_counter()
    subprocess.run([python, "-c", "import torch"], check=True)
    return time.perf_counter() - begun


def measure(rounds: int, folder: Path, python: str) -> list[tuple[float, float, float]]:
    """Seconds of the import of torch, to the first diagnostic and to the end of the run, for each round."""
    path = folder / "script.py"
    text = SCRIPT.format(number=0)
    path.write_text(text)
    uri = path.as_uri()
    editor = Editor([sys.executable, "-m", "irscope_server"])
    editor.initialize({"storePath": str(folder / "runs.db"), "python": python})
    document = {"uri": uri, "languageId": "python", "version": 1, "text": text}

    def ended(method: str, params: dict[str, Any]) -> bool:
        return method == "irscope/runsChanged" and not params["running"]

    def shown(method: str, params: dict[str, Any]) -> bool:
        return method == "textDocument/publishDiagnostics" and bool(params["diagnostics"])

    begun = time.perf_counter()
    editor.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
    editor.wait_for(begun, ended)
    found = []
    for number in range(1, rounds + 2):
        torch = import_torch(python)
        text = SCRIPT.format(number=number)
        path.write_text(text)
        changed = {"textDocument": {"uri": uri, "version": number + 1}, "contentChanges": [{"text": text}]}
        editor.send({"method": "textDocument/didChange", "params": changed})
        time.sleep(0.5)
        begun = time.perf_counter()
        editor.send({"method": "textDocument/didSave", "params": {"textDocument": {"uri": uri}}})
        first = editor.wait_for(begun, shown) - begun
        end = editor.wait_for(begun, ended) - begun
        if number > 1:  # the first save pays for what the server imports only with the first run
            found.append((torch, first, end))
            print(
                f"import torch {torch:.2f} s, first diagnostic {first:.3f} s, end of the run {end:.3f} s",
                file=sys.stderr,
            )
    editor.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the script")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rounds = measure(arguments.rounds, Path(name), arguments.python)
    figures = {
        "import torch, s": statistics.median(torch for torch, _, _ in rounds),
        "save to first diagnostic, s": statistics.median(first for _, first, _ in rounds),
        "save to end of the run, s": statistics.median(end for _, _, end in rounds),
        "first diagnostic, ratio": statistics.median(first / torch for torch, first, _ in rounds),
        "end of the run, ratio": statistics.median(end / torch for torch, _, end in rounds),
    }
    missed = figures["first diagnostic, ratio"] > GOAL
    if arguments.json:
        print(json.dumps({**figures, "processors": os.cpu_count()}))
        return int(missed)
    for name, value in figures.items():
        goal = f"  (goal {GOAL:g}: {'MISSED' if missed else 'kept'})" if name.startswith("first") else ""
        print(f"{name:28} {value:7.3f}{goal}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
