"""Starts of a script, each in a fresh process: with empty caches, with those of the start before, and with artifacts."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence

from irscope.driver.debuggers import without_debugger
from irscope.system.commands import run_bounded
from irscope.vocabulary.records import dataclass

_BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")
_SECONDS = 3600.0
COLD, WARM, CACHES, ARTIFACT = "cold", "warm", "Mega-Cache", "artifact"


class StartError(Exception):
    """A start could not be measured; the message says why."""


@dataclass(frozen=True)
class Start:
    """A start from the begin of the process to the end of the script.

    Args:
        seconds: By part, as `internals.start_times.PARTS` names them.
        gaps: What could not be told apart.
    """

    name: str
    seconds: dict[str, float]
    gaps: tuple[str, ...]

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.seconds.values())


def starts(
    python: str, script: str, arguments: Sequence[str], cwd: str | None, on_start: Callable[[str], None],
    other: Sequence[str] = (),
) -> list[Start]:  # fmt: skip
    """Measures a cold start, a warm one, and one in which `torch.compiler.load_cache_artifacts` loads the first one's caches
    into empty folders; ``other``, a script with its arguments that loads an artifact, is started with empty ones, too.

    Raises StartError.
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="irscope-starts-", ignore_cleanup_errors=True) as folder:
        caches = os.path.join(folder, "mega-cache")
        for name, cache, load, save in (
            (ARTIFACT, "third", "", ""),  # first, since it is the one that may not even begin
            (COLD, "first", "", caches),
            (WARM, "first", "", ""),
            (CACHES, "second", caches, ""),
        ):
            command = other if name is ARTIFACT else (script, *arguments)
            if command:
                on_start(name)
                found.append(_start(name, python, command, cwd, os.path.join(folder, cache), load, save))
    found.sort(key=lambda start: start.name is ARTIFACT)
    return found


def _start(name: str, python: str, command: Sequence[str], cwd: str | None, cache: str, load: str, save: str) -> Start:
    env = {**without_debugger(os.environ), "TORCHINDUCTOR_CACHE_DIR": cache}
    env["TRITON_CACHE_DIR"] = os.path.join(cache, "triton")
    request = {
        "script": os.path.abspath(command[0]), "arguments": list(command[1:]), "began": time.time(), "load": load, "save": save,
    }  # fmt: skip
    try:
        done = run_bounded([python, _BOOT, "start"], _SECONDS, text=json.dumps(request), cwd=cwd, env=env)
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise StartError(f"The {name} start took longer than {_SECONDS:.0f} s and was ended.") from error
    except ValueError as error:
        last = done.stderr.strip().split("\n")[-1]
        raise StartError(
            f"The process of the {name} start ended early: {last or f'exit code {done.returncode}'}"
        ) from error
    if answer["ended"]:
        raise StartError(f"The script raised in the {name} start: {answer['ended']}")
    return Start(name, answer["seconds"], tuple(answer["gaps"]))
