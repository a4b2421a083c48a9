"""Runs scripts as plain Python, without irscope, in forks of a process that has imported torch and its compiler.

`support.run_plain_forked` starts it and writes a JSON object a line to it: ``script``, ``args``, ``cwd``, the
files ``stdout`` and ``stderr`` for what the script prints, and ``before``, which is executed first.  It answers each with
the exit code in a line.  Its arguments are the modules that it imports ahead.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import sys
import traceback
from typing import Any, NoReturn


def main() -> None:
    """Answers until its stdin is closed."""
    answers = os.fdopen(os.dup(1), "w")
    for name in sys.argv[1:]:
        importlib.import_module(name)
    with contextlib.suppress(Exception):  # Inductor would read all of torch's files in each fork
        sys.modules["torch._inductor.codecache"].torch_key()
    with contextlib.suppress(Exception):  # and register a hundred patterns
        register_patterns()
    gc.collect()
    gc.freeze()  # so that a child's collector does not copy the pages that it shares
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            run(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def register_patterns() -> None:
    """What comes before a process's first pass on a graph, as in `irscope.worker.machine_facts`."""
    passes = [importlib.import_module(f"torch._inductor.fx_passes.{name}") for name in ("pad_mm", "fuse_attention")]

    def register(input_device: Any = None) -> None:
        passes[0]._pad_mm_init(input_device)
        passes[1]._sfdp_init(input_device)

    matcher, counters = sys.modules["torch._inductor.pattern_matcher"], sys.modules["torch._dynamo.utils"].counters
    matcher.init_once_fakemode(register)(sys.modules["torch"].device("cpu"))
    counters.clear()


def run(request: dict[str, Any]) -> NoReturn:
    """The script, in this process, up to its exit code."""
    code = 1
    try:
        for number, path in ((0, os.devnull), (1, request["stdout"]), (2, request["stderr"])):
            opened = os.open(path, os.O_WRONLY if number else os.O_RDONLY)
            os.dup2(opened, number)
            os.close(opened)
        os.chdir(request["cwd"])
        sys.argv = [request["script"], *request["args"]]
        sys.path[0] = os.path.dirname(request["script"])
        exec(request["before"], {})
        code = exit_code_of(request["script"])
    except Exception:  # noqa: BLE001  of `before`
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def exit_code_of(script: str) -> int:
    """What the interpreter would exit with."""
    code: object = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001  as an interpreter does
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        return 1
    return code & 0xFF


if __name__ == "__main__":
    main()
