"""What PyTorch's own logs say of scripts, without irscope: the oracle of `foreign.py`.

Reads the paths of scripts from its input, and writes a line of JSON for each.  A script runs in a fork of this process,
which has imported torch and compiled nothing, with ``TORCH_LOGS=graph_breaks,recompiles``.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

SECONDS = 60
PREFIX = re.compile(r"^[VIWEC]\d{4} \S+ \d+ \S+\] (?:\[([^\]]*)\] )?\[__(graph_breaks|recompiles)\] ?(.*)$")
BREAK = re.compile(r"Graph break in user code at (.+):(\d+)$")
RECOMPILING = re.compile(r"Recompiling function (\S+) in (.+):(\d+)$")
FRAME = re.compile(r'  File "(.+)", line (\d+), in (\S+)')


def main() -> None:
    import torch._dynamo.test_case
    import torch._dynamo.testing  # noqa: F401

    for path in map(str.strip, sys.stdin):
        print(json.dumps(run(path)), flush=True)


def run(path: str) -> dict[str, Any]:
    """The breaks and recompilations of a script, and how it ended."""
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            run_here(path, output.fileno())
        status = os.waitpid(child, 0)[1]
        output.seek(0)
        text = output.read()
    breaks, recompilations = parsed(text)
    return {"path": path, "exit": status, "breaks": breaks, "recompilations": recompilations, "tail": text[-2000:]}


def run_here(path: str, output: int) -> None:
    """Becomes the script, and ends with it."""
    import torch._logging

    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.alarm(SECONDS)
    torch._logging.set_logs(graph_breaks=True, recompiles=True)
    sys.argv, sys.path[0] = [path], str(Path(path).parent)
    code = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:  # noqa: BLE001 - as the interpreter does
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def parsed(text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The records in the text of a log."""
    breaks: list[dict[str, Any]] = []
    recompilations: list[dict[str, Any]] = []
    for line in text.splitlines():
        if not (match := PREFIX.match(line)):
            continue
        compiling, log, said = match.groups()
        if found := BREAK.match(said):
            breaks.append({"compile": compiling, "file": found[1], "line": int(found[2]), "stack": [], "text": ""})
        elif log == "graph_breaks" and breaks:
            breaks[-1]["text"] += said + "\n"
            if frame := FRAME.match(said):
                breaks[-1]["stack"].append([frame[1], int(frame[2]), frame[3]])
        elif found := RECOMPILING.match(said):
            place = {"function": found[1], "file": found[2], "line": int(found[3])}
            recompilations.append({"compile": compiling, **place, "text": ""})
        elif log == "recompiles" and recompilations:
            recompilations[-1]["text"] += said + "\n"
    return breaks, recompilations


if __name__ == "__main__":
    main()
