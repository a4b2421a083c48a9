"""How a script's process ended, as its parent sees it: the warden, or the worker.

What the script's process tells goes through a pipe, and a script can close that.  So the process leaves how its main
module ended in memory, too, which it shares with its parent and which has no descriptor; and what is seen from outside
comes from the system.
"""

from __future__ import annotations

import mmap
from json import dumps, loads

from irscope.protocol import ScriptEnded, from_json, to_json
from irscope.system.processes import program_of
from irscope.vocabulary.records import dataclass

_BYTES = 4096
"""Fewer than a pipe takes at once."""
_LONGEST_ERROR = 500


@dataclass(frozen=True)
class Ending:
    """How a script's process ended.

    Args:
        said: How its main module ended; None if the process ended before that.
        program: The program that the script has put in its place with ``os.exec…``; empty: none.
        left: How many processes it has left running, which are ended with it; not known of a fork of the worker.
    """

    said: ScriptEnded | None = None
    program: str = ""
    left: int = 0


class LastWords:
    """A piece of memory that a process shares with the forks that it makes next."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _BYTES)

    def say(self, ended: ScriptEnded) -> None:
        """In the fork: leave how the main module ended."""
        text = dumps(to_json(ScriptEnded(ended.exit_code, ended.error[:_LONGEST_ERROR]))).encode()
        self._memory[: len(text)] = text

    def ending_of(self, pid: int, left: int = 0) -> Ending:
        """In the parent: how the fork ended, which has not been waited for."""
        text = self._memory[:].rstrip(b"\0")
        return Ending(from_json(ScriptEnded, loads(text)) if text else None, program_of(pid), left)


_shared: list[LastWords] = []


def share() -> LastWords:
    """Memory for the process that is forked next; in that, what `say` writes into."""
    _shared[:] = [LastWords()]
    return _shared[0]


def say(ended: ScriptEnded) -> None:
    """Leaves how the main module of this process ended; without a parent that listens nothing happens."""
    for words in _shared:
        words.say(ended)


def forget() -> None:
    """In a child of the script's: only its parent speaks for the run."""
    _shared.clear()


def encoded(ending: Ending) -> bytes:
    """An ending as one line."""
    return (dumps(to_json(ending)) + "\n").encode()


def decoded(line: bytes) -> Ending:
    """The inverse of `encoded`; an unknown ending if the parent has said nothing."""
    try:
        return from_json(Ending, loads(line))
    except (ValueError, KeyError):
        return Ending()
