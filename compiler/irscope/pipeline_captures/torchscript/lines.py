"""The lines of operations that a pass has added.

A pass that puts a formula in the place of an operation, or copies operations of one, gives the new ones no line of the
user's.  A copy has the line of what it is a copy of, and an operation of a formula that of what is gone.  Any other has
that of the operations that it is for, or of those that it takes, if they have one line in common.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from irscope.pipeline_captures.torchscript.naming import Key

Frames = tuple[tuple[str, int, str], ...]
"""File, line and function; the innermost comes first."""
_ROUNDS = 30
"""How far a line is handed on."""


class Lined(Protocol):
    """A printed graph."""

    @property
    def shapes(self) -> Mapping[str, str]:
        """The kind of each node, its operation and what it takes, in order."""

    @property
    def inputs(self) -> Mapping[str, frozenset[str]]:
        """The nodes that each one takes."""

    @property
    def keys(self) -> Mapping[str, Key]:
        """The kind, place and scope of each operation."""

    @property
    def frames(self) -> Mapping[str, Frames]:
        """The stack of each one; empty for what has none."""


def lines_of_added(before: Lined, after: Lined) -> dict[str, Frames]:
    """The stacks of operations that have none."""
    replaced, guessed = _replaced(before, after)
    found = {name: before.frames[old] for name, old in replaced.items() if before.frames.get(old)}
    found |= _copied(before, after)
    known = {name: frames for name, frames in {**after.frames, **found}.items() if frames}
    users: dict[str, list[str]] = defaultdict(list)
    for name, inputs in after.inputs.items():
        for taken in inputs:
            users[taken].append(name)
    todo = [name for name, shape in after.shapes.items() if name not in known and shape.startswith("call")]
    for _ in range(_ROUNDS):
        new = {name: frames for name in todo if (frames := _around(users[name], after.inputs[name], known)) is not None}
        if not new:
            break
        known |= new
        found |= new
        todo = [name for name in todo if name not in new]
    return found | {
        name: before.frames[old] for name, old in guessed.items() if name in todo and before.frames.get(old)
    }


def _around(users: Iterable[str], inputs: Iterable[str], known: Mapping[str, Frames]) -> Frames | None:
    """The stack that all users of an operation have, as far as they have one, else the one of its inputs."""
    for neighbours in (users, inputs):
        stacks = {known[name] for name in neighbours if name in known}
        if len(stacks) == 1:
            return stacks.pop()
    return None


def _copied(before: Lined, after: Lined) -> dict[str, Frames]:
    """Operations at a place of the source (of a formula's) that the graph before has, too.

    If the formula was used more than once, copies of the whole come one after another.
    """
    lines: dict[Key, list[Frames]] = defaultdict(list)
    for name, key in before.keys.items():
        if key[1] and before.frames.get(name):
            lines[key].append(before.frames[name])
    found: dict[str, Frames] = {}
    counts: dict[Key, int] = defaultdict(int)
    for name, key in after.keys.items():
        if known := lines.get(key):
            if not after.frames.get(name):
                found[name] = known[counts[key] % len(known)]
            counts[key] += 1
    return found


def _replaced(before: Lined, after: Lined) -> tuple[dict[str, str], dict[str, str]]:
    """For an operation that a pass has added: the earlier one to which it belongs, and the same by place alone, for
    those that take nothing.

    A formula is put where the operation was, so it is between those that are still there.
    """
    order = [name for name, shape in before.shapes.items() if shape.startswith("call")]
    place = {name: at for at, name in enumerate(order)}
    found: dict[str, str] = {}
    guessed: dict[str, str] = {}
    last, gone, begun = -1, _gone_after(-1, order, after), 0
    for name, shape in after.shapes.items():
        if name in place:
            last, begun = place[name], 0
            gone = _gone_after(last, order, after)
        elif not after.frames.get(name) and shape.startswith("call"):
            inputs = after.inputs[name] | {found[taken] for taken in after.inputs[name] if taken in found}
            begun = next((at for at in range(begun, len(gone)) if before.inputs[gone[at]] & inputs), begun)
            parts = [found[taken] for taken in after.inputs[name] if found.get(taken) in gone]
            next_gone = gone[begun] if gone else ""
            whole = _whole(inputs, next_gone, parts, order[last] if last >= 0 else "", before)
            if whole:
                found[name] = whole
            elif next_gone:
                guessed[name] = next_gone
    return found, guessed


def _whole(inputs: frozenset[str], gone: str, parts: Sequence[str], last: str, before: Lined) -> str:
    """The operation to which an added one belongs, by what it takes; empty if nothing tells.

    It is the one that is gone there, the one that contains what it takes, or the last that is still there.
    """
    if gone and before.inputs[gone] & inputs:
        return gone
    if parts:
        return parts[-1]
    if last and inputs & (before.inputs[last] | {last}):
        return last  # what its derivative needs
    return gone if inputs else ""


def _gone_after(last: int, order: Sequence[str], after: Lined) -> list[str]:
    """The operations that are gone between one that is still there and the next such one."""
    return list(itertools.takewhile(lambda name: name not in after.shapes, order[last + 1 :]))
