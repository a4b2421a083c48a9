"""Servers as forks of a process that has imported them.

Importing takes a language server half a second of processor time and a debug adapter a fifth, and hundreds of tests start
one whose start they are not about.  All else is as in a process of its own: streams, environment, working folder, end.
The tests of the start, of what the server holds and of how it ends have a process of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from irscope.pipelines.registry import VARIABLE

LANGUAGE_SERVER, PLAYING_SERVER, DEBUG_ADAPTER = "language server", "playing server", "debug adapter"
_WIDTH = 10
"""Characters of a number that is told: the process, and how it ended."""


class ServerFork:
    """A server with pipes, with what the tests use of `subprocess.Popen`."""

    def __init__(self, kind: str, env: Mapping[str, str] | None = None) -> None:
        inputs, outputs, errors, status = (os.pipe() for _ in range(4))
        theirs = [inputs[0], outputs[1], errors[1], status[1]]
        asked = {"kind": kind, "env": dict(os.environ if env is None else env), "cwd": os.getcwd()}
        socket.send_fds(_parent(), [json.dumps(asked).encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin, self.stdout = os.fdopen(inputs[1], "wb"), os.fdopen(outputs[0], "rb")
        self.stderr = os.fdopen(errors[0], "rb")
        self._status = status[0]
        self.pid = self._told()
        self.returncode: int | None = None

    def fileno(self) -> int:
        """What can be read once it has ended; `poll` reads it."""
        return self._status

    def poll(self) -> int | None:
        return self.wait(0) if self.returncode is not None or select.select([self], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = self._told()
            os.close(self._status)
        return self.returncode

    def _told(self) -> int:
        return int(os.read(self._status, _WIDTH))

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_of(kind: str, env: Mapping[str, str] | None = None) -> ServerFork | None:
    """None where forks cannot be told of, or where a variable counts that is read when a server is imported."""
    if (
        not hasattr(os, "pidfd_open")
        or not hasattr(socket, "send_fds")
        or VARIABLE in (os.environ if env is None else env)
    ):
        return None
    return ServerFork(kind, env)


@functools.cache
def _parent() -> socket.socket:
    """The connection to the process that forks, which ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, __file__, str(theirs.fileno())]
    with theirs:
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# --- the process that forks -------------------------------------------------------------------------------------------


def _main(connection: socket.socket) -> None:
    starts = _starts()
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is not connection:
                selector.unregister(key.fileobj)
                _tell_the_end(key.fd, *key.data)
                continue
            data, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 4)
            if not data:
                return
            *streams, status = descriptors
            pid = os.fork()
            if pid == 0:
                _become(starts, json.loads(data), streams)
            for descriptor in streams:
                os.close(descriptor)
            _tell(status, pid)
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status))


def _starts() -> dict[str, Callable[[], None]]:
    """Imports what the servers' own commands import."""
    gc.disable()
    import playing_server
    from irscope_server.app import serve
    from irscope_server.dap.protocol import serve as serve_adapter

    gc.collect()
    gc.freeze()  # so that a fork does not copy what it only looks at
    gc.enable()
    return {
        LANGUAGE_SERVER: serve.serve_stdio,
        PLAYING_SERVER: lambda: serve.serve_stdio(playing_server.execute),
        DEBUG_ADAPTER: serve_adapter.serve_stdio,
    }


def _become(starts: Mapping[str, Callable[[], None]], asked: dict[str, Any], streams: list[int]) -> NoReturn:
    try:
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.closerange(3, 1 + max(map(int, os.listdir("/proc/self/fd"))))
        os.environ.clear()
        os.environ.update(asked["env"])
        os.chdir(asked["cwd"])
        tempfile.tempdir = None
        starts[asked["kind"]]()  # which ends the process
    except BaseException:  # noqa: BLE001  it must not go on as what forked it
        traceback.print_exc()
    finally:
        os._exit(1)


def _tell_the_end(process: int, pid: int, status: int) -> None:
    os.close(process)
    _tell(status, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os.close(status)


def _tell(status: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody asks any more
        os.write(status, b"%*d" % (_WIDTH, number))


if __name__ == "__main__":
    _main(socket.socket(fileno=int(sys.argv[1])))
