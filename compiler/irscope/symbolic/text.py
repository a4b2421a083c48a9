"""The symbolic trace as text: one line a step."""

from __future__ import annotations

import os
from collections.abc import Iterator

from irscope.symbolic.trace import Walk
from irscope.vocabulary.units import count

MOST_LINES = 20_000
"""The text of a longer trace leaves out the steps of the deepest calls, and says so; the data has them all."""


def text_of(walk: Walk) -> str:
    """A line a step: its number, the line and column it is at, indented by depth; the instruction; what is on top of
    the symbolic stack after it; the nodes it added, how many guards, how it ended.  Calls have their own line."""
    depth = _deepest(walk)
    lines = list(_lines(walk, depth))
    if len(lines) > 2 * MOST_LINES:  # a loop in the compiled function itself
        lines[MOST_LINES : len(lines) - MOST_LINES] = [f"… {len(lines) - 2 * MOST_LINES} lines are left out"]
    return "\n".join(lines) + "\n"


def _deepest(walk: Walk) -> int:
    """How deep calls can be shown within the limit."""
    counts: dict[int, int] = {}
    for depth in walk.depths:
        counts[depth] = counts.get(depth, 0) + 1
    total = 0
    for depth in range(len(counts)):
        total += counts.get(depth, 0)
        if total > MOST_LINES:
            return max(depth - 1, 0)
    return len(counts)


def _lines(walk: Walk, deepest: int) -> Iterator[str]:
    frame, left_out = -1, 0
    for index, depth in enumerate(walk.depths):
        if depth > deepest:
            left_out += 1
            continue
        indent = "  " * depth
        if left_out:
            yield f"      {indent}  … {left_out} steps of deeper calls are left out"
            left_out = 0
        if walk.frame_of(index) != frame:
            frame = walk.frame_of(index)
            file, function = walk.place_of(index)
            yield f"      {indent}── {function}  {os.path.basename(file)}"
        where, instruction = walk.instruction_texts(index)
        top = walk.top_after(index)
        line = f"{index:>5} {indent}{where:<7} {instruction:<24}"
        if top:
            line += f" │ {top}"
        nodes, guards, outcome = walk.brought(index)
        if nodes:
            line += f"  + {', '.join(nodes)}"
        if guards:
            line += f"  + {count(len(guards), 'guard')}"
        if outcome is not None and outcome.kind != "compiled":
            line += f"  ✗ {outcome.kind}{': ' + outcome.text if outcome.text else ''}"
        yield line.rstrip()
    if left_out:
        yield f"      … {left_out} steps of deeper calls are left out"
