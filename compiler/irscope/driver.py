"""Starts runs and watches over them, from outside their process.

The command line and the language server both run scripts through `execute`.  It knows nothing of torch: the script
runs in an interpreter of the user's choice, in a process group of its own, which can crash, hang or be killed.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from irscope.protocol import (
    Budget,
    GapSeen,
    Lane,
    Message,
    Outcome,
    OutcomeKind,
    Refused,
    RunRequest,
    ScriptEnded,
    Started,
    Unfit,
    decode_message,
    to_json,
)
from irscope.source import decode_source, digest_of
from irscope.store import Store
from irscope.worker.client import Worker
from irscope.worker.process import FreshProcess, RunProcess

_BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runner", "boot.py")
_TICK_SECONDS = 0.05
_DRAIN_SECONDS = 2.0


@dataclass(frozen=True)
class RunSpec:
    """What to run, and how.

    Parameters
    ----------
    script
        Path of the script; relative to the caller's working folder.
    args
        Its arguments.
    python
        The interpreter that runs it; it needs torch and nothing of irscope.
    cwd
        The script's working folder; nothing: the caller's, as with ``python script.py``.
    env
        Variables on top of this process's environment.
    budget
        Limits at which it is stopped.
    overlays
        Text that stands in for files, by absolute path.
    """

    script: str
    args: tuple[str, ...] = ()
    lane: Lane = Lane.DEEP
    python: str = sys.executable
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    budget: Budget = Budget()
    overlays: Mapping[str, str] = field(default_factory=dict)


def execute(
    spec: RunSpec,
    store: Store,
    *,
    on_start: Callable[[str], None] = lambda run: None,
    on_message: Callable[[Message], None] = lambda message: None,
    on_output: Callable[[str, str], None] | None = None,
    stdout: int | None = None,
    cancel: threading.Event | None = None,
    worker: Worker | None = None,
) -> tuple[str, Outcome]:
    """Runs a script under capture and returns its run's id and outcome when the process has ended.

    Parameters
    ----------
    store
        Where the run is kept; used by this thread only, until the return.
    on_start
        Called with the run's id before anything runs.
    on_message
        Called with each message of the run as it comes.
    on_output
        Called with ``"stdout"`` or ``"stderr"`` and what the script printed.  Nothing: the script writes to this
        process's own stdout and stderr.
    stdout
        Where the script's stdout goes instead, without ``on_output``: a file descriptor of this process.
    cancel
        Set by another thread to stop the run: its whole process group is killed at once.
    worker
        A fork server of the same interpreter and environment; where it cannot serve, a fresh process does.

    Nothing that the script does raises here.
    """
    path = os.path.abspath(spec.script)
    source = spec.overlays.get(path)
    reason = None if source is not None else _unreadable(path)
    if source is None:
        source = "" if reason else _read(path)
    run = store.create_run(path, spec.args, spec.lane, digest_of(source))
    on_start(run)
    started = time.monotonic()
    python = shutil.which(spec.python) if reason is None else None
    if reason is None and python is None:
        reason = f"There is no Python interpreter at {spec.python}. Name one that has torch (--python PATH, or the setting irscope.python)."
    if reason is not None:
        outcome = Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, reason, 0.0)
    else:
        assert python is not None
        request = RunRequest(run, path, spec.args, spec.lane, store.path, spec.script, dict(spec.overlays))
        launch = _Launch(python, request, spec, piped=on_output is not None, stdout=stdout)
        watch = _Watch(request, python, store, on_message, on_output)
        digest = digest_of(source)
        try:
            forked = launch.in_worker(worker) if worker is not None and digest not in worker.unfit else None
            ended = watch.over(forked or launch.fresh(), spec.budget.seconds, cancel, started)
            if ended is None and worker is not None:
                worker.unfit[digest] = watch.unfit
                store.forget_findings(run)
                watch = _Watch(request, python, store, on_message, on_output)
                ended = watch.over(launch.fresh(), spec.budget.seconds, cancel, started)
        except _CannotStartError as error:
            ended = Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, str(error), 0.0)
        assert ended is not None
        outcome = ended
    store.set_outcome(run, outcome)
    return run, outcome


def _unreadable(path: str) -> str | None:
    if os.path.isdir(path):
        return f"{path} is a folder. Name a Python script."
    if not os.path.isfile(path):
        return f"There is no file {path}."
    try:
        with open(path, "rb"):
            return None
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}."


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return decode_source(file.read())


class _CannotStartError(Exception):
    """The interpreter could not be started; the message says why."""


@dataclass(frozen=True)
class _Started:
    """A process with the reading ends of its pipes; ``outputs`` maps descriptors to the names of the streams."""

    process: RunProcess
    messages: int
    outputs: dict[int, str]


@dataclass(frozen=True)
class _Launch:
    """Starts the process of a run, fresh or as a fork of the worker."""

    python: str
    request: RunRequest
    spec: RunSpec
    piped: bool
    stdout: int | None

    def fresh(self) -> _Started:
        """A new interpreter, which reads its request from a pipe."""
        request_out, request_in = os.pipe()
        message_out, message_in = os.pipe()
        streams, outputs = self._streams()
        try:
            process = subprocess.Popen(
                [self.python, _BOOT, str(request_out), str(message_in)],
                cwd=self.spec.cwd,
                env=self._environment(),
                stdin=subprocess.DEVNULL if self.piped else None,
                stdout=streams[0],
                stderr=streams[1],
                pass_fds=(request_out, message_in),
                start_new_session=True,
            )
        except OSError as error:
            for fd in (request_in, message_out, *outputs):
                os.close(fd)
            raise _CannotStartError(
                f"{self.python} could not be started in {self.spec.cwd or os.getcwd()}: {error.strerror}."
            ) from error
        finally:
            for fd in (request_out, message_in, *(streams if self.piped else ())):
                os.close(fd)
        with contextlib.suppress(BrokenPipeError), os.fdopen(request_in, "wb") as pipe:
            pipe.write(json.dumps(to_json(self.request)).encode("utf-8"))
        return _Started(FreshProcess(process), message_out, outputs)

    def in_worker(self, worker: Worker) -> _Started | None:
        """A fork; nothing where the worker is not ready."""
        message_out, message_in = os.pipe()
        streams, outputs = self._streams()
        process = worker.fork(self.request, self._environment(), self.spec.cwd or os.getcwd(), (message_in, *streams))
        for fd in (message_in, *(streams if self.piped else ())):
            os.close(fd)
        if process is None:
            for fd in (message_out, *outputs):
                os.close(fd)
            return None
        return _Started(process, message_out, outputs)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **(self.spec.env or {})}

    def _streams(self) -> tuple[tuple[int, int], dict[int, str]]:
        """Where the script's stdout and stderr go, and what is to be read of it here."""
        if not self.piped:
            return (1 if self.stdout is None else self.stdout, 2), {}
        (out, out_in), (error, error_in) = os.pipe(), os.pipe()
        return (out_in, error_in), {out: "stdout", error: "stderr"}


class _Watch:
    """Reads what a run sends and prints until its process ends, and ends it when it has to."""

    def __init__(
        self,
        request: RunRequest,
        python: str,
        store: Store,
        on_message: Callable[[Message], None],
        on_output: Callable[[str, str], None] | None,
    ) -> None:
        self._python = python
        self._request, self._store, self._on_message, self._on_output = request, store, on_message, on_output
        self.unfit = ""
        self._refused: str | None = None
        self._began = False
        self._ended: ScriptEnded | None = None
        self._partial = b""
        # A character may be cut in two by the pipe.
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}

    def over(
        self, run: _Started, budget: float | None, cancel: threading.Event | None, started: float
    ) -> Outcome | None:
        """The outcome, when the process has ended; nothing where a fork turned out to be unfit."""
        process = run.process
        selector = selectors.DefaultSelector()
        selector.register(run.messages, selectors.EVENT_READ, None)
        for fd, name in run.outputs.items():
            selector.register(fd, selectors.EVENT_READ, name)
        stopped: OutcomeKind | None = None
        try:
            while (code := process.poll()) is None:
                if stopped is None and cancel is not None and cancel.is_set():
                    stopped = OutcomeKind.CANCELLED
                elif stopped is None and budget is not None and time.monotonic() - started > budget:
                    stopped = OutcomeKind.BUDGET
                if stopped is not None or self.unfit:
                    process.kill()
                self._read(selector, _TICK_SECONDS)
            # What was written before the end.  A child that lives on is not waited for, even if it prints on and on.
            drained = time.monotonic() + _DRAIN_SECONDS
            while self._read(selector, 0) and time.monotonic() < drained:
                pass
        except BaseException:  # an interrupt, or a callback that failed: the run must not outlive us
            interrupted = Outcome(OutcomeKind.CANCELLED, None, "irscope was interrupted.", time.monotonic() - started)
            self._store.set_outcome(self._request.run, interrupted)
            raise
        finally:
            process.kill()
            process.close()
            selector.close()
            for fd in (run.messages, *run.outputs):
                os.close(fd)
        if self.unfit and stopped is None:
            return None
        return self._outcome(code, stopped, budget, round(time.monotonic() - started, 3))

    def _read(self, selector: selectors.BaseSelector, timeout: float) -> bool:
        """Takes in what has arrived; false where nothing has."""
        if not selector.get_map():
            if timeout:
                time.sleep(timeout)
            return False
        arrived = False
        for key, _ in selector.select(timeout):
            data = os.read(key.fd, 1 << 16)
            if not data:
                selector.unregister(key.fd)
                continue
            arrived = True
            if key.data is None:
                self._take(data)
            elif self._on_output is not None:
                self._on_output(key.data, self._decoders[key.data].decode(data))
        return arrived

    def _take(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            try:
                message = decode_message(json.loads(line))
            except (ValueError, KeyError, TypeError):
                continue  # a script that writes into every descriptor it finds
            if isinstance(message, Refused):
                self._refused = message.reason
            elif isinstance(message, Unfit):
                self.unfit = message.reason
                continue
            elif isinstance(message, Started):
                self._began = True
            elif isinstance(message, ScriptEnded):
                self._ended = message
            elif isinstance(message, GapSeen):
                self._store.put_gap(self._request.run, message.gap)
            self._on_message(message)

    def _outcome(self, code: int, stopped: OutcomeKind | None, budget: float | None, seconds: float) -> Outcome:
        if self._refused is not None:
            return Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, self._refused, seconds)
        if stopped is OutcomeKind.CANCELLED:
            return Outcome(stopped, None, "The run was cancelled; what it found until then is kept.", seconds)
        if stopped is OutcomeKind.BUDGET:
            return Outcome(
                stopped,
                None,
                f"Stopped after {budget:g} s, the budget of seconds; what was found until then is kept.",
                seconds,
            )
        if not self._began:
            return Outcome(
                OutcomeKind.ENVIRONMENT_ERROR, None, _no_python(self._python, f"it ended with {_how(code)}"), seconds
            )
        if code == -signal.SIGINT and self._ended is not None and self._ended.error:
            return Outcome(OutcomeKind.SCRIPT_ERROR, None, f"The script ended with {self._ended.error}.", seconds)
        if code < 0:
            return Outcome(OutcomeKind.CRASHED, None, f"The script's process was killed by {_how(code)}.", seconds)
        if self._ended is None:
            message = f"The script's process ended with exit code {code} without a word of how (os._exit, a script that closes every file descriptor, or the interpreter died)."
            return Outcome(OutcomeKind.CRASHED, code, message, seconds)
        if self._ended.error:
            return Outcome(OutcomeKind.SCRIPT_ERROR, code, self._ended.error, seconds)
        if code != 0:
            return Outcome(
                OutcomeKind.SCRIPT_ERROR,
                code,
                f"The script ended well, but its process ended with exit code {code}.",
                seconds,
            )
        return Outcome(OutcomeKind.COMPLETED, 0, self._completed(), seconds)

    def _completed(self) -> str:
        if self._store.report(self._request.run).compiles:
            return "The script ran to its end."
        return "The script ran to its end, and nothing was compiled: no function under torch.compile was called with tensors."


def _no_python(python: str, why: str) -> str:
    return f"{python} is no Python that irscope can use: {why} before the script began. Name one that has torch (--python PATH, or the setting irscope.python)."


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
