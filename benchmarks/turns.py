"""Processes that compile at the same time and are measured one after the other: `line_oracle.py` gives them their turns.

A process says that it waits with a file ``NAME.waits``, in which is its id; it goes on when there is ``NAME.turn``. Its turn is over
when there is ``NAME.done``, or when it has ended. Its folder and the first of its names are in the environment.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

FOLDER, NAME = "TURNS_FOLDER", "TURNS_NAME"
_POLL_SECONDS = 0.02
_MOST_SECONDS = 900.0


def take(number: int = 0) -> None:
    """Waits for this process's turn of that number; there is none where nobody gives turns."""
    if FOLDER not in os.environ:
        return
    path = _path(number)
    part = path.with_suffix(".part")
    part.write_text(str(os.getpid()))
    part.rename(path.with_suffix(".waits"))
    until = time.monotonic() + _MOST_SECONDS
    while not path.with_suffix(".turn").exists():
        if time.monotonic() > until:
            sys.exit("nobody gave this process its turn")
        time.sleep(_POLL_SECONDS)


def give_back(number: int = 0) -> None:
    """The turn of that number is over."""
    if FOLDER in os.environ:
        _path(number).with_suffix(".done").touch()


def _path(number: int) -> Path:
    return Path(os.environ[FOLDER]) / f"{os.environ[NAME]}-{number}"


# --- who gives the turns ----------------------------------------------------------------------------------------------


def all_wait(folder: Path, names: Iterable[str], has_ended: Callable[[str], bool]) -> None:
    """Until each process waits for its first turn, or has ended."""
    for name in names:
        while not (folder / f"{name}-0.waits").exists() and not has_ended(name):
            time.sleep(_POLL_SECONDS)


def give(folder: Path, name: str, number: int, has_ended: Callable[[str], bool]) -> None:
    """Gives a process one turn, and returns when that is over."""
    path = folder / f"{name}-{number}"
    while not path.with_suffix(".waits").exists():
        if has_ended(name):
            return
        time.sleep(_POLL_SECONDS)
    pid = int(path.with_suffix(".waits").read_text())
    path.with_suffix(".turn").touch()
    start = time.monotonic()
    while not path.with_suffix(".done").exists() and not has_ended(name) and _is_alive(pid):
        time.sleep(_POLL_SECONDS)
    print(f"  {name}: measured in {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
