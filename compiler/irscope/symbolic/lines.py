"""Steps of a symbolic trace by the user's lines, as people step through Python, where the trace has instructions."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.symbolic.trace import Walk


class Lines:
    """A *visit* of a line is the steps of one frame from where it comes to the line to where it leaves it, or jumps back.

    All answers are numbers of steps; None means that the trace does not go there.
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._first: list[int] = list(range(len(walk)))  # of each step: the first one of its visit
        self._line: list[int] = [-1] * len(walk)
        seen: set[int] = set()
        for index in range(len(walk)):
            frame = walk.frame_of(index)
            if frame not in seen:
                seen.add(frame)
                self._read(walk.frame_steps(index))

    def _read(self, steps: Sequence[int]) -> None:
        first, line, offset = steps[0], -1, -1
        for step in steps:
            instruction = self._walk.instruction(step)
            here = instruction.range.start.line if instruction.range is not None else line
            if line < 0:
                line = here
            elif here != line or 0 <= instruction.offset < offset:
                first, line = step, here
            offset = max(instruction.offset, offset if first != step else -1)
            self._first[step], self._line[step] = first, line

    def line(self, index: int) -> int:
        """The line that a step is in: its own, else that of the steps before it; -1 if none has one."""
        return self._line[index]

    def first(self, index: int) -> int:
        """Where the visit begins that a step belongs to."""
        return self._first[index]

    def starts(self) -> list[int]:
        """The first steps of all visits, in order."""
        return [index for index, first in enumerate(self._first) if first == index]

    def over(self, index: int) -> int | None:
        """The next line of this function, not of those that it calls; or the caller, after the call."""
        at = self._walk.over(index)
        while at is not None and self._first[at] == self._first[index]:
            at = self._walk.over(at)
        return at

    def back(self, index: int) -> int | None:
        """The opposite of `over`: the beginning of this line, from there that of the line before."""
        if self._first[index] != index:
            return self._first[index]
        before = self._walk.back_over(index)
        return None if before is None else self._first[before]

    def rest(self, index: int) -> list[int]:
        """This step and those of its visit that follow."""
        steps = self._walk.frame_steps(index)
        return [step for step in steps if step >= index and self._first[step] == self._first[index]]

    def calls(self, index: int) -> list[int]:
        """The first steps of the functions that the rest of the visit calls and that were inlined."""
        found = []
        for step in self.rest(index):
            at = step + 1
            while at < len(self._walk) and self._walk.caller(at) == step:
                found.append(at)
                at = next_in_caller(self._walk, at)
        return found


def next_in_caller(walk: Walk, index: int) -> int:
    """The step after all steps of the frame that begins at ``index``; ``len(walk)`` if that frame is the last."""
    depth = walk.depths[index]
    frame = walk.frame_of(index)
    at = index + 1
    while at < len(walk) and (walk.depths[at] > depth or (walk.depths[at] == depth and walk.frame_of(at) == frame)):
        at += 1
    return at
