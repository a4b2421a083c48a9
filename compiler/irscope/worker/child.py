"""A run's process that is a fork: as a fresh one would be, but with everything imported."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from irscope.internals.frames import callers
from irscope.protocol import RunRequest, Unfit, from_json
from irscope.runner.hidden_modules import first_folders, is_irscope_hidden
from irscope.runner.main import run
from irscope.runner.messages import MessagePipe
from irscope.system.warden import end_with_parent
from irscope.worker.leaving import leave
from irscope.worker.modules import hiding

READ_AT_IMPORT = (
    "TORCH", "PYTORCH", "INDUCTOR", "TRITON", "AOT_", "CUDA_", "OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS_", "ONEDNN_",
    "DNNL_", "NPY_",
)  # fmt: skip
"""How variables begin that torch, numpy or their libraries read while they are imported."""
_HARMLESS = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")
"""scikit-learn sets them whenever it is imported, and so does whatever imports it: they are for Intel's OpenMP."""


def run_in_child(
    message: dict[str, Any],
    fds: Sequence[int],
    names: Collection[str],
    environment: Mapping[str, str | None],
) -> None:
    """Runs the script of a request; then returns, or ends the process at once if that makes no difference.

    Args:
        message: The request, its environment and its working folder.
        fds: Descriptors for messages, status, stdout and stderr.
        names: Top-level modules that the worker has looked for: a file of the user's must not hide one.
        environment: What the imports of a layer have set; None: deleted.
    """
    os.setsid()
    end_with_parent()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    messages, status, out, error = fds
    pid = os.getpid()
    os.write(status, f"pid {pid}\n".encode())
    os.close(status)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (out, 1), (error, 2)):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(message["env"])
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    with contextlib.suppress(OSError):
        os.chdir(message["cwd"])
    random.seed()  # a fresh process has its own seeds
    if (numpy := sys.modules.get("numpy.random")) is not None:
        numpy.seed()
    sys.modules["torch"].default_generator.seed()
    known = frozenset(sys.modules)
    pipe = MessagePipe(messages)
    request = from_json(RunRequest, message["request"])
    _look_for_hidden_modules(request, names, pipe)
    _watch_environment(pipe)
    code: object = None
    try:
        run(request, pipe)
    except SystemExit as stop:
        code = stop.code
    if os.getpid() == pid:  # and not a child that the script has forked
        leave(code, known)
    if code is not None:
        sys.exit(code)  # type: ignore[arg-type]


def _give_up(pipe: MessagePipe, reason: str) -> None:
    pipe.send(Unfit(reason))
    signal.pause()  # until the driver kills this process


def _look_for_hidden_modules(request: RunRequest, names: Collection[str], pipe: MessagePipe) -> None:
    """In a fresh process a file ``random.py`` beside the script is what torch imports as ``random``."""
    by_path = request.entry.is_file
    folder = os.path.dirname(os.path.realpath(request.script)) if by_path else os.getcwd()
    if hidden := hiding(first_folders(folder), names):
        _give_up(pipe, f"{hidden} stands in for a module that torch imports")
    if is_irscope_hidden(folder):
        _give_up(pipe, "a module of the script's has the name of irscope")


def _watch_environment(pipe: MessagePipe) -> None:
    """Tells the driver when the script sets a variable that torch reads while it is imported.

    In a fresh process such a line takes effect, since it is above the script's ``import torch``; here torch is
    imported already.  The driver then starts a fresh process instead.
    """
    torch = os.path.dirname(sys.modules["torch"].__file__ or "")

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "os.putenv" or not os.fsdecode(arguments[0]).startswith(READ_AT_IMPORT):
            return
        if os.fsdecode(arguments[0]) in _HARMLESS:
            return
        files = [frame.f_code.co_filename for frame in callers()]
        setting = next((file for file in files if not file.startswith(("<", os.__file__))), files[-1])
        if not setting.startswith(torch):
            _give_up(pipe, f"it sets {os.fsdecode(arguments[0])}, which torch reads when it is imported")

    sys.addaudithook(heard)
