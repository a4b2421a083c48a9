"""Running the compilers of the user's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

from irscope.ir.line_tables import KernelText
from irscope.system.commands import run_bounded

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SECONDS = 300


class LoweringError(LookupError):
    """A stage cannot be made; the message says why and what to do."""


def in_interpreter(python: str, script: str, *arguments: str) -> Any:
    """What one of our scripts (its path in this package) says in the user's interpreter: the JSON of its last line."""
    printed = output_of([python, os.path.join(_PACKAGE, *script.split("/")), *arguments])
    try:
        said = json.loads(printed.rstrip("\n").rpartition("\n")[2])
    except ValueError:
        raise LoweringError(f"Unexpected output from {python}: {printed[-300:]!r}.") from None
    if isinstance(said, dict) and "error" in said:
        raise LoweringError(str(said["error"]))
    return said


def output_of(command: Sequence[str], cwd: str | None = None, text: str | None = None, of_errors: bool = False) -> str:
    """Stdout of a command, or its stderr.  Raises LoweringError if it is not there, fails or takes too long."""
    try:
        done = run_bounded(command, _SECONDS, text=text, cwd=cwd)
    except FileNotFoundError:
        raise LoweringError(f"{command[0]} is not installed here, or not on the PATH.") from None
    except OSError as error:
        raise LoweringError(f"{command[0]} cannot be run: {error.strerror}.") from error
    except subprocess.TimeoutExpired:
        raise LoweringError(f"{command[0]} took longer than {_SECONDS} s and was stopped.") from None
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().split("\n")[-15:])
        raise LoweringError(f"{command[0]} failed with exit code {done.returncode}:\n{said}")
    return done.stderr if of_errors else done.stdout


def kernel_text(kept: Any) -> KernelText:
    """Where a Triton kernel's text lies, as the run kept it with the binary.  Raises LoweringError if it did not."""
    try:
        return KernelText(str(kept["file"]), int(kept["first_line"]), int(kept["lines"]))
    except (KeyError, TypeError, ValueError) as error:
        raise LoweringError(f"The stored binary of the kernel is damaged: {error!r}.") from error
