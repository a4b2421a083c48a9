"""Runs a kernel in a process of the user's interpreter, bounded in time and memory."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from irscope.system.commands import run_bounded, temporary_folder

_BOOT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "driver", "boot.py")
SECONDS = 300.0
"""For all that the process does: import torch, make the inputs, run, compare."""
TRITON = "triton==3.7.1"
"""What is installed, without its dependencies, to interpret kernels; no GPU is needed."""


def run_kernel(python: str, request: dict[str, Any], env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The answer of `irscope.values.kernel.process` to a request.

    Raises LookupError with a sentence that says what to do: without triton, or if the process gives no answer.
    """
    (answer,) = run_kernels(python, [request], env=env)
    if "error" in answer:
        raise LookupError(f"{request['kernel']} cannot be run: {answer['error']}")
    return answer


def run_kernels(
    python: str, requests: list[dict[str, Any]], seconds: float = SECONDS, env: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The answers to several requests, by one process; of a kernel that cannot be run it is its ``error``.

    Raises LookupError as `run_kernel` does.
    """
    with temporary_folder() as folder:
        asked, answered = (os.path.join(folder, name) for name in ("request.json", "answer.json"))
        with open(asked, "w", encoding="utf-8") as file:
            json.dump({"memory": max(each["memory"] for each in requests), "requests": requests}, file)
        try:
            done = run_bounded([python, _BOOT, "kernel", asked, answered], seconds, patient=True, env={**os.environ, **(env or {}), "TRITON_INTERPRET": "1"})  # fmt: skip
        except OSError as error:
            raise LookupError(f"{python} cannot be run: {error.strerror}.") from None
        except subprocess.TimeoutExpired:
            raise LookupError(f"The kernel took longer than {seconds:.0f} s and was stopped: run one program with --program.") from None  # fmt: skip
        try:
            with open(answered, encoding="utf-8") as file:
                answers: list[dict[str, Any]] = json.load(file)
        except (OSError, ValueError):
            said = "\n".join(done.stderr.strip().split("\n")[-5:])
            raise LookupError(f"The process that runs the kernel ended with {done.returncode}:\n{said}") from None
    if missing := next((each["missing"] for each in answers if "missing" in each), ""):
        how = f"{python} -m pip install " + (f"--no-deps {TRITON}" if missing == "triton" else missing)
        raise LookupError(f"{missing} is not installed in {python}. Install it, no GPU is needed: {how}")
    return answers
