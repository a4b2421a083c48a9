"""Starts the process of a run: a new interpreter, or a fork of the worker."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping

from irscope.protocol import RunRequest, to_json
from irscope.vocabulary.records import dataclass
from irscope.worker.client import Worker
from irscope.worker.process import FreshProcess, RunProcess

_BOOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "driver", "boot.py")


class CannotStartError(Exception):
    """The interpreter could not be started; the message says why."""


@dataclass(frozen=True)
class Launched:
    """A process with the reading ends of its pipes; ``outputs`` maps descriptors to the names of the streams."""

    process: RunProcess
    messages: int
    outputs: dict[int, str]


@dataclass(frozen=True)
class Launch:
    """Starts the process of one run.

    Args:
        request: What it is asked for; made while the interpreter starts.
        env, cwd: Its whole environment and its working folder.
        piped: Whether what it prints comes back in `Launched.outputs`; else it goes to this process's own stdout and
            stderr.
        stdout: A descriptor for its stdout instead, if no pipe is used.
    """

    python: str
    request: Callable[[], RunRequest]
    env: Mapping[str, str]
    cwd: str
    piped: bool
    stdout: int | None

    def fresh(self) -> Launched:
        """A new interpreter, which reads its request from a pipe.  Raises CannotStartError."""
        request_out, request_in = os.pipe()
        message_out, message_in = _wide_pipe()
        status_out, status_in = os.pipe()
        streams, outputs = self._streams()
        try:
            process = subprocess.Popen(
                [self.python, _BOOT, str(request_out), str(message_in), str(status_in)],
                cwd=self.cwd,
                env=self.env,
                stdin=subprocess.DEVNULL if self.piped else None,
                stdout=streams[0],
                stderr=streams[1],
                pass_fds=(request_out, message_in, status_in),
                start_new_session=True,
            )
        except OSError as error:
            for fd in (request_in, message_out, status_out, *outputs):
                os.close(fd)
            raise CannotStartError(f"{self.python} could not be started in {self.cwd}: {error.strerror}.") from error
        finally:
            for fd in (request_out, message_in, status_in, *(streams if self.piped else ())):
                os.close(fd)
        with contextlib.suppress(BrokenPipeError), os.fdopen(request_in, "wb") as pipe:
            pipe.write(json.dumps(to_json(self.request())).encode("utf-8"))
        return Launched(FreshProcess(process, status_out), message_out, outputs)

    def in_worker(self, worker: Worker) -> Launched | None:
        """A fork; None if the worker is not ready."""
        message_out, message_in = _wide_pipe()
        streams, outputs = self._streams()
        process = worker.fork(self.request(), self.env, self.cwd, (message_in, *streams))
        for fd in (message_in, *(streams if self.piped else ())):
            os.close(fd)
        if process is None:
            for fd in (message_out, *outputs):
                os.close(fd)
            return None
        return Launched(process, message_out, outputs)

    def _streams(self) -> tuple[tuple[int, int], dict[int, str]]:
        """Where the script's stdout and stderr go, and what is to be read of it here."""
        if not self.piped:
            return (1 if self.stdout is None else self.stdout, 2), {}
        (out, out_in), (error, error_in) = os.pipe(), os.pipe()
        return (out_in, error_in), {out: "stdout", error: "stderr"}


_PIPE_BYTES = 1 << 20
"""The script can be this far ahead of what is stored."""


def _wide_pipe() -> tuple[int, int]:
    """A pipe that takes as much as Linux allows every user; as much as usual elsewhere."""
    out, into = os.pipe()
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return out, into
