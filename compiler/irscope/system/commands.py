"""Commands that a thread runs to their end, and what they leave behind where this process ends before them."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from irscope.system.ending import end_tree, wait_for_the_end
from irscope.system.processes import processor_seconds

_lock = threading.Lock()
"""Held while a command starts or a folder is made, so that none appears after the process began to end."""
_ending = False
_running: set[int] = set()
_folders: set[str] = set()
_prefix = "irscope-"
_PATIENCE = 10
"""How many times its processor time a command may take on the clock: on a busy machine it waits for its turn."""
_BLIND_PATIENCE = 3
"""The same where the processor time is not known."""
_LEAST_SHARE = 0.01
"""The least share of a processor; what computes less waits for something that does not come."""
_LOOK_SECONDS = 1.0


def run_bounded(
    command: Sequence[str],
    seconds: float,
    *,
    patient: bool = False,
    text: str | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a command and returns what it printed; ends it with everything that it has started where it takes too long.

    Args:
        patient: Whether ``seconds`` are what the command and all that it has started compute, and not those on the
            clock.  It may then take ten times as long, but is ended where it computes nothing for ``seconds``.  On a
            system that does not report what they compute it may take three times as long.
        text: Its standard input.  None: empty.

    Raises OSError if it cannot be started or this process is about to end, and subprocess.TimeoutExpired with the seconds
    on the clock.
    """
    with _lock:
        _check_not_ending()
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            cwd=cwd,
            env=env,
        )
        _running.add(started.pid)
    with started as process:
        try:
            if patient:
                out, error = _communicate_patiently(process, text, seconds)
            else:
                out, error = process.communicate(text, timeout=seconds)
        except BaseException:
            end_tree(process.pid)
            process.communicate()
            raise
        finally:
            _running.discard(process.pid)
        return subprocess.CompletedProcess(command, process.returncode, out, error)


def _communicate_patiently(process: subprocess.Popen[str], text: str | None, seconds: float) -> tuple[str, str]:
    """What a command prints.  Raises subprocess.TimeoutExpired as `run_bounded` says."""
    began = last_moved = time.monotonic()
    before = 0.0
    while True:
        try:
            return process.communicate(text, timeout=min(seconds, _LOOK_SECONDS))
        except subprocess.TimeoutExpired:
            text = None  # it is being written
        now, computed = time.monotonic(), processor_seconds(process.pid)
        if computed is None:
            ended = now - began >= _BLIND_PATIENCE * seconds
        else:
            if computed >= before + _LEAST_SHARE * seconds:
                before, last_moved = computed, now
            ended = computed >= seconds or now - last_moved >= seconds or now - began >= _PATIENCE * seconds
        if ended:
            raise subprocess.TimeoutExpired(process.args, now - began)


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder for what commands write, which is gone afterwards.

    Raises OSError if it cannot be made or this process is about to end.
    """
    with _lock:
        _check_not_ending()
        made = new_folder()
        _folders.add(made.name)
    try:
        with made as folder:
            yield folder
    finally:
        _folders.discard(made.name)


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that is there until it is removed, or this process ends.  Raises OSError if it cannot be made."""
    return tempfile.TemporaryDirectory(prefix=_prefix, ignore_cleanup_errors=True)


def name_folders_after(run: str) -> None:
    """For the process of a run: its folders have names by which `remove_folders_of` finds them, if it is killed."""
    global _prefix
    _prefix = _prefix_of(run)


def remove_folders_of(run: str, temporary: str) -> None:
    """Removes what the process of a run has left in the folder for temporary files, once it has ended."""
    for folder in glob.glob(glob.escape(os.path.join(temporary, _prefix_of(run))) + "*"):
        shutil.rmtree(folder, ignore_errors=True)


def _prefix_of(run: str) -> str:
    return f"irscope-{run}-"


def leave_nothing() -> None:
    """For a process that ends without its threads: ends the commands that they wait for, and removes their folders."""
    global _ending
    with _lock:
        _ending = True
    running = [*_running]
    for pid in running:
        end_tree(pid)
    # A signal is only sent at this time: what has not died yet could still write into its folder.
    wait_for_the_end(running)
    for folder in [*_folders]:
        shutil.rmtree(folder, ignore_errors=True)


def _check_not_ending() -> None:
    if _ending:
        raise OSError(errno.ECANCELED, "irscope is ending")
