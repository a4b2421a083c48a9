"""The fork server: imports torch and its compiler, runs no operation, and forks itself for each run.

It speaks over one socket: a line of JSON with the request, and with it the descriptors of the run (messages, status,
stdout, stderr).  It answers nothing but one line when it is ready; all else goes through the run's own descriptors.
It ends, with all its runs, when the socket closes: whoever started it is gone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
from typing import Any

from irscope.protocol import RunRequest, Unfit, from_json
from irscope.runner.main import find_torch, run
from irscope.runner.messages import MessagePipe
from irscope.worker.process import kill_group

# What the first compile of a process would import, over and above torch itself.
_MODULES = (
    "torch",
    "torch._dynamo",
    "torch._dynamo.convert_frame",
    "torch._dynamo.backends.debugging",
    "torch._functorch.aot_autograd",
    "torch._inductor.compile_fx",
)
_FDS = 4
_READ_AT_IMPORT = ("TORCH", "PYTORCH", "INDUCTOR", "TRITON", "AOT_", "CUDA_", "OMP_", "MKL_", "KMP_", "GOMP_")


def serve(connection: socket.socket) -> None:
    """Serves until the connection closes.  In the child of a fork it returns the way a script's process ends."""
    sys.path[0] = os.devnull  # the folder of boot.py has no business on the path of others; a run puts its own there
    found = find_torch()
    if isinstance(found, str):
        _say(connection, {"state": "refused", "reason": found})
        return
    problem = _import_all()
    if problem:
        _say(connection, {"state": "refused", "reason": problem})
        return
    gc.collect()
    gc.freeze()  # so that the children's collector does not touch, and thereby copy, the pages that they share
    _say(connection, {"state": "ready", "torch": found[1]})
    wake, awake = _on_child_exit()
    status_of: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([connection.fileno(), wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
            _reap(status_of)
        if connection.fileno() in readable:
            received = _receive(connection)
            if received is None:
                break
            request, fds = received
            pid = os.fork()
            if pid == 0:
                for fd in (wake, awake, *status_of.values()):
                    os.close(fd)
                connection.close()
                _run_in_child(request, fds)
                return
            status_of[pid] = fds[1]
            for fd in (fds[0], fds[2], fds[3]):
                os.close(fd)
    for pid in status_of:
        kill_group(pid)


def _import_all() -> str:
    try:
        for name in _MODULES:
            importlib.import_module(name)
    except Exception as error:  # noqa: BLE001  a broken installation is told to the user
        return f"PyTorch in {sys.executable} cannot be imported: {type(error).__name__}: {error}"
    cuda = sys.modules["torch"].cuda
    if cuda.is_initialized():
        return "CUDA is initialized by the mere import of torch, so it cannot be forked; each run starts a process of its own."
    return ""


def _say(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall((json.dumps(message) + "\n").encode())


def _on_child_exit() -> tuple[int, int]:
    """A descriptor that becomes readable when a child ends."""
    wake, awake = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(awake, warn_on_full_buffer=False)
    return wake, awake


def _reap(status_of: dict[int, int]) -> None:
    """Writes the exit code of each child that has ended into its run's status pipe."""
    while status_of:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        fd = status_of.pop(pid, None)
        if fd is not None:
            with contextlib.suppress(OSError):
                os.write(fd, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(fd)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """One request with its descriptors; nothing when the other side is gone."""
    data, fds, _, _ = socket.recv_fds(connection, 1 << 16, _FDS)
    while data and not data.endswith(b"\n"):
        more = connection.recv(1 << 16)
        if not more:
            return None
        data += more
    return (json.loads(data), fds) if data and len(fds) == _FDS else None


def _run_in_child(request: dict[str, Any], fds: list[int]) -> None:
    """Becomes the run's process: as a fresh one would be, but with everything imported."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    messages, status, out, error = fds
    os.write(status, f"{os.getpid()}\n".encode())
    os.close(status)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (out, 1), (error, 2)):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(request["env"])
    with contextlib.suppress(OSError):
        os.chdir(request["cwd"])
    random.seed()  # a fresh process has a seed of its own
    pipe = MessagePipe(messages)
    _watch_environment(pipe)
    run(from_json(RunRequest, request["request"]), pipe)


def _watch_environment(pipe: MessagePipe) -> None:
    """Tells the driver when the script sets a variable that torch reads while it is imported.

    In a fresh process such a line takes effect, since it stands above the script's ``import torch``; here torch is
    imported already.  The driver then starts a fresh process instead.
    """
    torch = os.path.dirname(sys.modules["torch"].__file__ or "")

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "os.putenv" or not os.fsdecode(arguments[0]).startswith(_READ_AT_IMPORT):
            return
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(("<", os.__file__)):
            frame = frame.f_back
        if not frame.f_code.co_filename.startswith(torch):
            pipe.send(Unfit(f"it sets {os.fsdecode(arguments[0])}, which torch reads when it is imported"))
            signal.pause()  # until the driver kills this process

    sys.addaudithook(heard)


def main(fd: int) -> None:
    """Entry point of ``boot.py worker FD``."""
    with socket.socket(fileno=fd) as connection:
        serve(connection)
