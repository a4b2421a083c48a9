"""The innermost loops of machine code: their instructions, how many there are for each element, and what they wait for.

An element is one of a block of a Triton kernel, or one of those that a vectorized C++ loop steps over.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Sequence
from typing import Any

from irscope.lowering.tools import LoweringError, output_of
from irscope.pipelines.inductor.stages import AMDGCN, ASSEMBLY, PTX, SASS
from irscope.vocabulary.records import dataclass

COMMENTS = {ASSEMBLY.name: "#", PTX.name: "//", SASS.name: "//", AMDGCN.name: ";"}
"""How a comment begins, by the kind of machine code."""
_LABEL = re.compile(r"^([.$]?\w[\w.$]*):")
_BRANCH = re.compile(r"\b(?:bra|BRA|j[a-z]{1,4}|s_c?branch\w*)\b.*?([.$]\w[\w.$]*)")
_NO_INSTRUCTION = re.compile(r"^\s*(?:$|[.#;{}]|//|[.$]?\w[\w.$]*:)")
_BLOCK = re.compile(r"\b\w*BLOCK: (\d+)")
_WARPS = re.compile(r"\bnum_warps: (\d+)")
_STEP = re.compile(r"\bfor\s*\(.*\+=\s*(?:static_cast<\w+>\()?(\d+)")
_INCREMENT = re.compile(r"\b(?:addq?\s+\$|subq?\s+\$-)(\d+), %")
_CYCLES = re.compile(r"^Total Cycles:\s*(\d+)", re.MULTILINE)
_WAIT = re.compile(r"^\s*(Resource Pressure|Data Dependencies):?\s*\[ ([\d.]+)% \]", re.MULTILINE)
_CPUS = {"avx2": "haswell", "avx512": "skylake-avx512", "amx": "sapphirerapids"}
_PASSES = 100


@dataclass(frozen=True)
class Loop:
    """A loop from the line of its label to that of its branch, from 1."""

    first: int
    last: int
    instructions: int
    elements: float | None
    """That a thread handles in one pass; None: not known."""
    cycles: float | None
    """A pass takes so many, by ``llvm-mca``; None: it is not installed, or this is not a CPU's code."""
    waits: tuple[tuple[str, float], ...]
    """For what more instructions could not begin in so many percent of the cycles."""

    @property
    def words(self) -> str:
        """For its label."""
        each = f", {self.instructions / self.elements:.3g} for each element" if self.elements else ""
        waits = ", ".join(f"{name.lower()} {share:.3g} %" for name, share in self.waits) or "nothing"
        mca = f"; llvm-mca: {self.cycles:.3g} cycles, waits for {waits}" if self.cycles is not None else ""
        return f"innermost loop: {self.instructions} instructions{each}{mca}"


def innermost_loops(text: str, kind: str, data: Any, source: str, instructions: str = "") -> list[Loop]:
    """The loops that have no other loop in them.

    Args:
        data: What the store has beside the assembly of a C++ kernel, or beside the binary of a Triton kernel.
        source: The text of the kernel.
        instructions: The set of instructions of a CPU that is a target.
    """
    data, rows = data if isinstance(data, dict) else {}, text.split("\n")
    found = []
    for first, last in _spans(rows):
        inside = rows[first - 1 : last]
        count = sum(not _NO_INSTRUCTION.match(row) for row in inside)
        if kind == ASSEMBLY.name:
            lines = [line for row, line in data.get("lines", ()) if first <= row <= last]
            elements, (cycles, waits) = _stepped(inside, lines, source), _waits(inside, instructions)
        else:
            elements, cycles, waits = (
                _of_block(str(data.get("config")), source, 64 if kind == AMDGCN.name else 32),
                None,
                (),
            )
        # After its end, a GPU's code has a branch to itself; a CPU's goes on there when an exception was raised.
        if count > 1 and "_Unwind_Resume" not in "".join(inside):
            found.append(Loop(first, last, count, elements, cycles, waits))
    return found


def _spans(rows: Sequence[str]) -> list[tuple[int, int]]:
    labels: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for number, row in enumerate(rows, 1):
        if label := _LABEL.match(row):
            labels[label[1]] = number
        elif (branch := _BRANCH.search(row)) and branch[1] in labels:
            spans.append((labels[branch[1]], number))
    return [a for a in spans if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in spans)]


def _of_block(config: str, source: str, warp: int) -> float | None:
    """Elements of a block for each thread of its warps; a product of matrices has no such elements."""
    blocks, warps = _BLOCK.findall(config), _WARPS.search(config)
    if not blocks or warps is None or "tl.dot" in source:
        return None
    return math.prod(map(int, blocks)) / (warp * int(warps[1]))


def _stepped(rows: Sequence[str], lines: Sequence[int], source: str) -> float | None:
    """The step of the loop as it is written, if the compiler did not unroll it: an index or address is increased by it."""
    above = map(_STEP.search, reversed(source.split("\n")[: min(lines, default=0)]))
    step = next((int(match[1]) for match in above if match), 0)
    increased = {int(number) for row in rows for number in _INCREMENT.findall(row)}
    return step if step > 1 and increased & {step * size for size in (1, 2, 4, 8)} else None


def _waits(rows: Sequence[str], instructions: str) -> tuple[float | None, tuple[tuple[str, float], ...]]:
    program = shutil.which("llvm-mca")
    if program is None:
        return None, ()
    command = [program, f"-mcpu={_CPUS.get(instructions, 'native')}", "-bottleneck-analysis", f"-iterations={_PASSES}"]
    try:
        said = output_of(command, text="\n".join(rows))
    except LoweringError:  # it does not know an instruction
        return None, ()
    cycles = _CYCLES.search(said)
    waits = tuple((name, float(share)) for name, share in _WAIT.findall(said) if float(share))
    return (int(cycles[1]) / _PASSES, waits) if cycles else (None, ())
