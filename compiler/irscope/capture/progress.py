"""What a run is doing, for a status line: ``tracing frame 3``, ``compiling kernel 12 of 40``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from irscope.protocol import Compile, Progress

DYNAMO_PHASES = {
    "dynamo_start": "tracing frame {}",
    "dynamo_output_graph": "compiling frame {}",
}
"""By event of the trace what is going on from then on; ``{}`` is the number of the frame."""
_PAUSE = 0.2
"""Seconds between two messages about kernels: a warm cache gives hundreds of them in one."""


class ProgressTeller:
    """Sends a message for each phase of a compile, and a few a second for its kernels.

    Frames are counted from 1, in the order in which Dynamo came to them.

    Parameters
    ----------
    phases
        As `DYNAMO_PHASES`.
    """

    def __init__(self, send: Callable[[Progress], None], phases: Mapping[str, str]) -> None:
        self._send, self._phases = send, phases
        self._frames: dict[str, int] = {}
        self._kernels: dict[str, int] = {}
        self._last = 0.0

    def phase(self, event: str, compile: Compile) -> None:
        """A record of the trace; most events are not a phase."""
        words = self._phases.get(event)
        if words is None:
            return
        phase = words.format(self._frame(compile))
        if event == "dynamo_start":
            again = compile.id.rpartition("/")[2].partition("#")[0]
            phase += f" again ({again})" if again not in ("", "0") else ""
        self._send(Progress(f"{phase}: {_where(compile)}", phase))

    def begin_kernels(self, compile: str) -> None:
        """The kernels of a graph are about to be compiled."""
        self._kernels[compile] = 0

    def kernels(self, compile: Compile, done: int, total: int) -> None:
        """Compiles at most this many of a graph's kernels.

        Parameters
        ----------
        done
            -1: one more begins, if they are compiled one by one.
        """
        if done < 0:
            done = self._kernels.get(compile.id, 0)
            self._kernels[compile.id] = done + 1
        now = time.monotonic()
        if total < 1 or done >= total or (done and now - self._last < _PAUSE):
            return
        self._last = now
        phase = f"compiling kernel {done + 1} of {total}"
        self._send(Progress(f"{phase}: {_where(compile)}", phase, done, total))

    def _frame(self, compile: Compile) -> int:
        return self._frames.setdefault(compile.id.rpartition("/")[0], len(self._frames) + 1)


def _where(compile: Compile) -> str:
    if not compile.file:
        return f"{compile.function_name}, {compile.id}"
    return f"{compile.function_name} ({os.path.basename(compile.file)}:{compile.line}, {compile.id})"
