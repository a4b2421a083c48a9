"""Starts the interpreter of a run before the command line is read, so that the two start side by side.

An interpreter with what a run needs takes a tenth of a second to start, and so does the command that reads its options,
opens the store and asks for a run.  What was started waits for its request.  Where the command asks for anything else
than was expected, it is ended unused, and the run gets a process of its own as ever.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from irscope.driver.debuggers import without_debugger

BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")

_VALUED = ("--lane", "--store", "--budget", "--memory-budget", "--steady-calls", "--severity", "--baseline")
_FLAGS = ("--exit-code", "--no-symbolic-trace", "--check-without-compile")
"""Options that change nothing about how the process is started."""


class Begun:
    """An interpreter that waits for its request, with the ends of its pipes that are held here."""

    def __init__(self, python: str, env: Mapping[str, str], cwd: str, folder: str) -> None:
        self._expected = (python, dict(env), cwd, folder)
        request_out, self.request_in = os.pipe()
        self.message_out, message_in = os.pipe()
        try:
            self.process = subprocess.Popen(
                [python, BOOT, str(request_out), str(message_in), folder],
                cwd=cwd,
                env=env,
                pass_fds=(request_out, message_in),
                start_new_session=True,
            )
        except OSError:
            os.close(self.request_in)
            os.close(self.message_out)
            raise
        finally:
            os.close(request_out)
            os.close(message_in)

    def fits(self, python: str, env: Mapping[str, str], cwd: str, script: str) -> bool:
        """Whether it is what would be started for a script now."""
        return self._expected == (python, dict(env), cwd, folder_of(script)) and self.process.poll() is None

    def end(self) -> None:
        """Ends it; nothing of the script has run in it."""
        self.process.kill()
        self.process.wait()
        os.close(self.request_in)
        os.close(self.message_out)


_waiting: list[Begun] = []


def begin(given: Sequence[str]) -> None:
    """Starts an interpreter if the words after ``irscope`` ask for a plain run of a script."""
    python = os.environ.get("IRSCOPE_PYTHON") or sys.executable
    if (script := script_of(given)) is None or not os.path.isabs(python) or not os.access(python, os.X_OK):
        return
    with contextlib.suppress(OSError):  # what is wrong is said when the run is to begin
        _waiting.append(Begun(python, without_debugger(os.environ), os.getcwd(), folder_of(script)))


def take(python: str, env: Mapping[str, str], cwd: str, script: str) -> Begun | None:
    """What was started, if it fits; None if there is none."""
    while _waiting:
        begun = _waiting.pop()
        if begun.fits(python, env, cwd, script):
            return begun
        begun.end()
    return None


def give_up() -> None:
    """Ends what was started and not taken."""
    while _waiting:
        _waiting.pop().end()


def script_of(given: Sequence[str]) -> str | None:
    """The script of ``run SCRIPT``, with options that change nothing about how it is started; None for all else."""
    words = iter(given[: given.index("--")] if "--" in given else given)
    if next(words, "") != "run":
        return None
    script = None
    for word in words:
        if word in _VALUED:
            next(words, "")
        elif word.startswith("-"):
            if word not in _FLAGS and word.partition("=")[0] not in _VALUED:
                return None
        elif script is None:
            script = word
    return script if script is not None and script.endswith(".py") and os.path.isfile(script) else None


def folder_of(script: str) -> str:
    """Where a script's modules are looked for first."""
    return os.path.dirname(os.path.realpath(script))
