"""What a run is doing, for a status line: ``tracing frame 3``, ``forward 1 of 2: compiling kernel 12 of 40``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from irscope.protocol import Compile, Progress
from irscope.vocabulary.units import count

DYNAMO_PHASES = {
    "dynamo_start": "tracing frame {}",
    "dynamo_output_graph": "compiling frame {}",
}
"""By event of the trace what is going on from then on; ``{}`` is the number of the frame, ``{graph}`` which of its graphs
goes down: ``forward 1 of 2``."""
_JOINT = "aot_joint_graph"
"""After this event a frame has a forward and a backward."""
_PAUSE = 0.2
"""Seconds between two messages about kernels: a warm cache gives hundreds of them in one."""


class ProgressTeller:
    """Sends a message for each phase of a compile, and a few a second for its kernels.

    Frames are counted from 1, in the order in which Dynamo came to them.

    Args:
        phases: As `DYNAMO_PHASES`.
    """

    def __init__(self, send: Callable[[Progress], None], phases: Mapping[str, str]) -> None:
        self._send, self._phases = send, phases
        self._frames: dict[str, int] = {}
        self._joint: set[str] = set()  # compiles with a forward and a backward
        self._graphs: dict[str, str] = {}  # compile → which of its graphs goes down
        self._kernels: dict[str, int] = {}
        self._last = 0.0

    def phase(self, event: str, compile: Compile, backward: bool = False) -> None:
        """A record of the trace; most events are not a phase.

        Args:
            backward: Whether it is about the backward graph alone.
        """
        words = self._phases.get(event)
        if words is None:
            return
        if event == _JOINT:
            self._joint.add(compile.id)
        forward = "forward 1 of 2" if compile.id in self._joint else "inference graph"
        self._graphs[compile.id] = graph = "backward 2 of 2" if backward else forward
        phase = words.format(self._frame(compile), graph=graph)
        if event == "dynamo_start":
            again = compile.id.rpartition("/")[2].partition("#")[0]
            phase += f" again ({again})" if again not in ("", "0") else ""
        left = self._left(compile) if graph in phase else ""
        self._send(Progress(f"{phase}: {_where(compile)}{left}", phase))

    def begin_kernels(self, compile: str) -> None:
        """The kernels of a graph are about to be compiled."""
        self._kernels[compile] = 0

    def kernels(self, compile: Compile, done: int, total: int) -> None:
        """Compiles at most this many of a graph's kernels.

        Args:
            done: -1: one more begins, if they are compiled one by one.
        """
        if done < 0:
            done = self._kernels.get(compile.id, 0)
            self._kernels[compile.id] = done + 1
        now = time.monotonic()
        if total < 1 or done >= total or (done and now - self._last < _PAUSE):
            return
        self._last = now
        graph = self._graphs.get(compile.id)
        phase = f"{f'{graph}: ' if graph else ''}compiling kernel {done + 1} of {total}"
        text = f"{phase}: {_where(compile)}{self._left(compile, total - done - 1)}"
        self._send(Progress(text, phase, done, total))

    def _left(self, compile: Compile, kernels: int = 0) -> str:
        """What comes after what is going on, as far as it is known."""
        left = [count(kernels, "kernel")] if kernels else []
        if compile.id in self._joint and self._graphs[compile.id].startswith("forward"):
            left.append("the backward")
        return f"; left: {', '.join(left)}" if left else ""

    def _frame(self, compile: Compile) -> int:
        return self._frames.setdefault(compile.id.rpartition("/")[0], len(self._frames) + 1)


def _where(compile: Compile) -> str:
    name = compile.program or compile.function_name
    if not compile.file:
        return f"{name}, {compile.id}"
    return f"{name} ({os.path.basename(compile.file)}:{compile.line}, {compile.id})"
