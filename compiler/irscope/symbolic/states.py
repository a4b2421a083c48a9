"""The symbolic stack and the locals of a function before each of its steps, from what each step changed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import field

from irscope.vocabulary.records import dataclass

_EVERY = 64  # steps of a frame between two states that are kept

Stack = tuple[int, ...]
"""Texts of a symbolic stack by their index, the top last."""


@dataclass
class FrameStates:
    """The states of all frames of a walk.

    Args:
        kept, pushed, push_at: What each step left of the stack before it, and what it pushed: the texts from
            ``push_at[step]`` on.
        locals: By step the locals that changed before it: name, text, name, text, …; text -1: the name is gone.
        steps_of: The steps of each frame.
    """

    kept: Sequence[int]
    pushed: Sequence[int]
    push_at: Sequence[int]
    locals: Mapping[int, Sequence[int]]
    steps_of: Mapping[int, Sequence[int]]
    _known: dict[int, list[tuple[Stack, dict[int, int]]]] = field(default_factory=dict)

    def before(self, frame: int, index: int) -> tuple[Stack, dict[int, int]]:
        """The stack and the locals of one frame before one of its steps, from the nearest state that is kept."""
        steps = self.steps_of[frame]
        number = bisect_left(steps, index)
        kept = self._known.setdefault(frame, [])
        while len(kept) <= number // _EVERY:
            if not kept:
                kept.append(self._after(steps[0], (), {}))
                continue
            stack, locals = kept[-1]
            first = (len(kept) - 1) * _EVERY
            for step in steps[first + 1 : first + _EVERY + 1]:
                stack, locals = self._after(step, stack, locals)
            kept.append((stack, locals))
        stack, locals = kept[number // _EVERY]
        for step in steps[number // _EVERY * _EVERY + 1 : number + 1]:
            stack, locals = self._after(step, stack, locals)
        return stack, locals

    def _after(self, step: int, stack: Stack, locals: dict[int, int]) -> tuple[Stack, dict[int, int]]:
        """The state before ``step`` from the state before the frame's step before."""
        if (changed := self.locals.get(step)) is not None:
            locals = dict(locals)
            for name, text in zip(changed[::2], changed[1::2], strict=True):
                if text < 0:
                    locals.pop(name, None)
                else:
                    locals[name] = text
        return (*stack[: self.kept[step]], *self.pushed[self.push_at[step] : self.push_at[step + 1]]), locals

    def tops(self) -> list[int]:
        """By step the top of its frame's stack when the frame's next step begins; -1 if there is none."""
        tops = [-1] * len(self.kept)
        for steps in self.steps_of.values():
            stack: list[int] = []
            before = -1
            for step in steps:
                stack[self.kept[step] :] = self.pushed[self.push_at[step] : self.push_at[step + 1]]
                if before >= 0 and stack:
                    tops[before] = stack[-1]
                before = step
        return tops
