"""The tables of a step's memory."""

from __future__ import annotations

import os

from irscope.cli.tables import table
from irscope.cli.text import Paint
from irscope.cli.trees import tree_lines
from irscope.measures.tree import chained, folded
from irscope.profiling.step_memory import HeldBlock, StepMemory, reserved_words
from irscope.vocabulary.units import count, percent, size
from irscope.vocabulary.visible import printable


def memory_lines(found: StepMemory, paint: Paint, most: int, show_all: bool) -> list[str]:
    """The peak, who holds it by module and by line, and the largest blocks."""
    whole = found.peak_bytes or 1
    lines = ["", f"{paint('Memory of one ' + found.what, 'bold')}: {size(found.begin_bytes)} at its begin, "
                 f"{size(found.peak_bytes)} at its peak, in {printable(found.peak_in)}."]  # fmt: skip
    if found.what == "call":
        lines.append(
            "  The script has no two calls between which nothing is compiled: calls after it, without its optimizer."
        )
    if found.reserved_bytes is not None:
        lines.append(f"  {reserved_words(found)}")
    if not found.is_device:
        lines.append(
            "  The CPU's memory: the blocks that Python holds, and those that PyTorch's profiler sees being allocated."
        )
    lines += tree_lines(folded(found.by_kind), "module", paint, most, "of peak", whole)
    lines += tree_lines(found.by_line if show_all else chained(found.by_line), "line", paint, most, "of peak", whole)
    rows = [[size(one.bytes), percent(one.bytes, whole), one.kind, printable(_name(one)), printable(one.module), _place(one)]
            for one in found.held[:most]]  # fmt: skip
    lines += ["", *table(["block", "of peak", "kind", "name", "module", "line"], rows, paint, right=frozenset({0, 1}))]
    if len(found.held) > most:
        lines.append(f"… and {count(len(found.held) - most, 'more row')} (--all)")
    return lines


def _name(one: HeldBlock) -> str:
    about = [count(one.count, "block")] if one.count > 1 else []
    about += [one.why] if one.why else []
    return f"{one.name} ({', '.join(about)})" if about else one.name


def _place(one: HeldBlock) -> str:
    return printable(f"{os.path.basename(one.file)}:{one.line}") if one.file else ""
