"""What a process does, from the Python stacks of its threads: its own (`stacks`), or another's as py-spy prints them.

A frame is ``(file, line, function)``; a stack has the innermost frame first.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Sequence
from typing import Any

from irscope.usercode.user_files import is_user_file

Frame = tuple[str, int, str]

MOST_FRAMES = 400
"""The innermost frames of a stack that are kept; a compile takes two hundred."""
_COMPILES = ("/torch/_dynamo/convert_frame.py", "/torch/_inductor/compile_fx.py")
"""A frame of one of these files is on the stack of each compile, and of no call of compiled code (torch 2.11 and 2.13)."""
_PHASES = (
    ("/torch/_inductor/cpp_builder.py", "compiling a C++ kernel"),
    ("/torch/_inductor/codecache.py", "compiling kernels"),
    ("/torch/_inductor/async_compile.py", "waiting for kernels to be compiled"),
    ("/torch/_inductor/runtime/", "tuning kernels"),
    ("/torch/_inductor/select_algorithm.py", "choosing kernels by timing"),
    ("/torch/_inductor/codegen/", "generating code"),
    ("/torch/_inductor/scheduler.py", "fusing"),
    ("/torch/_inductor/fx_passes/", "passes on the graph"),
    ("/torch/_inductor/", "Inductor"),
    ("/torch/_functorch/", "AOTAutograd"),
    ("/torch/_dynamo/symbolic_convert.py", "tracing"),
    ("/torch/_dynamo/guards.py", "building guards"),
    ("/torch/_dynamo/output_graph.py", "the backend"),
    ("/torch/_dynamo/", "Dynamo"),
)
_COLLECTIVES = ("/torch/distributed/distributed_c10d.py", "/torch/distributed/_functional_collectives.py")
_NOT_COLLECTIVES = frozenset({"wrapper", "init_process_group", "destroy_process_group", "_wait_tensor", "wait_tensor"})
_LIBRARY = re.compile(r"/lib(64)?/python3[.\d]*/")
"""Another interpreter's standard library, or its packages."""


def stacks() -> dict[str, list[Frame]]:
    """The stacks of this process's Python threads but the one that calls, by their names; the main thread first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    main = threading.main_thread().ident
    found: dict[str, list[Frame]] = {}
    frames = sys._current_frames()
    for ident in sorted(frames, key=lambda ident: ident != main):
        if ident == threading.get_ident():
            continue
        frame, stack = frames[ident], list[Frame]()
        while frame is not None and len(stack) < MOST_FRAMES:
            stack.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back  # type: ignore[assignment]
        found["MainThread" if ident == main else names.get(ident, str(ident))] = stack
    return found


def place_in(ident: int) -> tuple[str, int]:
    """The user's innermost file and line in a thread of this process; an empty file if there is none.

    Output code has a file outside of PyTorch's folder, but the name of one of its modules.
    """
    frame: Any = sys._current_frames().get(ident)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename) and not str(frame.f_globals.get("__name__")).startswith("torch."):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


def line_of(stack: Sequence[Frame]) -> tuple[str, int]:
    """The user's innermost file and line on a stack; an empty file if there is none."""
    for file, line, _ in stack:
        if is_user_file(file) and not _LIBRARY.search(file):
            return file, line
    return "", 0


def phase_of(stack: Sequence[Frame]) -> str:
    """What a thread that compiles is doing, in words; empty for one that does not compile."""
    files = [file.replace(os.sep, "/") for file, _, function in stack if function != "<module>"]  # an import
    if not any(part in file for file in files for part in _COMPILES):
        return ""
    found = (words for file in files for part, words in _PHASES if part in file)
    return next(found, "compiling")


def collective_of(stack: Sequence[Frame]) -> str:
    """The function of `torch.distributed` that a thread is in, as the script called it; empty if it is in none."""
    called = ""
    for file, _, function in stack:
        if any(part in file.replace(os.sep, "/") for part in _COLLECTIVES):
            called = called if function in _NOT_COLLECTIVES else function
        elif called and is_user_file(file):
            break
    return called
