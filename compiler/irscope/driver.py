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
    GapSeen,
    Lane,
    Message,
    Outcome,
    OutcomeKind,
    Refused,
    RunRequest,
    ScriptEnded,
    decode_message,
    to_json,
)
from irscope.source import decode_source, digest_of
from irscope.store import Store

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
    budget_seconds
        After that many seconds it is stopped; nothing: no limit.
    overlays
        Text that stands in for files, by absolute path.
    """

    script: str
    args: tuple[str, ...] = ()
    lane: Lane = Lane.DEEP
    python: str = sys.executable
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    budget_seconds: float | None = None
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
        watch = _Watch(request, store, on_message, on_output)
        outcome = watch.over(
            _start(python, request, spec, on_output is not None, stdout), spec.budget_seconds, cancel, started
        )
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


@dataclass(frozen=True)
class _Started:
    process: subprocess.Popen[bytes]
    messages: int


def _start(python: str, request: RunRequest, spec: RunSpec, piped: bool, stdout: int | None) -> _Started:
    request_out, request_in = os.pipe()
    message_out, message_in = os.pipe()
    env = {**os.environ, **(spec.env or {})}
    out = subprocess.PIPE if piped else stdout
    try:
        process = subprocess.Popen(
            [python, _BOOT, str(request_out), str(message_in)],
            cwd=spec.cwd,
            env=env,
            stdin=subprocess.DEVNULL if piped else None,
            stdout=out,
            stderr=subprocess.PIPE if piped else None,
            pass_fds=(request_out, message_in),
            start_new_session=True,
        )
    except OSError:
        for fd in (request_out, request_in, message_out, message_in):
            os.close(fd)
        raise
    os.close(request_out)
    os.close(message_in)
    with contextlib.suppress(BrokenPipeError), os.fdopen(request_in, "wb") as pipe:
        pipe.write(json.dumps(to_json(request)).encode("utf-8"))
    return _Started(process, message_out)


class _Watch:
    """Reads what a run sends and prints until its process ends, and ends it when it has to."""

    def __init__(
        self,
        request: RunRequest,
        store: Store,
        on_message: Callable[[Message], None],
        on_output: Callable[[str, str], None] | None,
    ) -> None:
        self._request, self._store, self._on_message, self._on_output = request, store, on_message, on_output
        self._refused: str | None = None
        self._ended: ScriptEnded | None = None
        self._partial = b""
        # A character may be cut in two by the pipe.
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}

    def over(self, run: _Started, budget: float | None, cancel: threading.Event | None, started: float) -> Outcome:
        process = run.process
        selector = selectors.DefaultSelector()
        selector.register(run.messages, selectors.EVENT_READ, None)
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            if pipe is not None and self._on_output is not None:
                selector.register(pipe.fileno(), selectors.EVENT_READ, name)
        stopped: OutcomeKind | None = None
        try:
            while process.poll() is None:
                if stopped is None and cancel is not None and cancel.is_set():
                    stopped = OutcomeKind.CANCELLED
                elif stopped is None and budget is not None and time.monotonic() - started > budget:
                    stopped = OutcomeKind.BUDGET
                if stopped is not None:
                    kill_group(process)
                self._read(selector, _TICK_SECONDS)
            # What was written before the end.  A child that lives on is not waited for, even if it prints on and on.
            drained = time.monotonic() + _DRAIN_SECONDS
            while self._read(selector, 0) and time.monotonic() < drained:
                pass
        except BaseException:  # an interrupt, or a callback that failed: the run must not outlive us
            kill_group(process)
            process.wait()
            self._store.set_outcome(
                self._request.run,
                Outcome(OutcomeKind.CANCELLED, None, "irscope was interrupted.", time.monotonic() - started),
            )
            raise
        finally:
            kill_group(process)
            selector.close()
            os.close(run.messages)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        return self._outcome(process.returncode, stopped, budget, round(time.monotonic() - started, 3))

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
        if code == -signal.SIGINT and self._ended is not None and self._ended.error:
            return Outcome(OutcomeKind.SCRIPT_ERROR, None, f"The script ended with {self._ended.error}.", seconds)
        if code < 0:
            return Outcome(
                OutcomeKind.CRASHED, None, f"The script's process was killed by {_signal_name(-code)}.", seconds
            )
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


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a run's process and everything that it has started and that is still in its process group."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
