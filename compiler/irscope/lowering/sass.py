"""A Triton kernel's machine code for an NVIDIA GPU, with its line table."""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil

from irscope.ir.line_tables import KernelText, Lines, library_calls
from irscope.lowering.tools import LoweringError, in_interpreter, kernel_text, output_of
from irscope.pipelines.inductor.stages import AMDGCN, BINARY, PTX
from irscope.store.store import Store
from irscope.system.commands import temporary_folder

_PLACE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_DIRECTIVE = re.compile(r"^\s*\.\w[\w.]*\s|^\s*\.text\.|^\s*//")
_RELEVANT = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/|^[\w.$]+:")
_INSTRUCTION = re.compile(r"^\s*(?P<address>/\*[0-9a-f]{4,}\*/)\s*(?P<predicate>@!?\w+)?\s*(?P<rest>\S.*)$")


def sass_of(store: Store, run: str, kernel: str, python: str) -> tuple[str, Lines]:
    """Disassembles the binary of a kernel, which the run kept as ``<kernel>/binary``.

    Raises LoweringError if there is none, or no disassembler.
    """
    kept = store.stage_data(run, f"{kernel}/{BINARY.name}")
    if not isinstance(kept, dict) or kept.get("format") != "cubin":
        raise LoweringError(f"{kernel} has no machine code for an NVIDIA GPU; see its stage {AMDGCN.name}.")
    try:
        binary = base64.b64decode(str(kept.get("base64", "")), validate=True)
    except binascii.Error as error:
        raise LoweringError(f"The binary of {kernel} is damaged in the store: {error}.") from error
    disassembler = _disassembler(python)
    with temporary_folder() as work:
        with open(os.path.join(work, "kernel.cubin"), "wb") as file:
            file.write(binary)
        listing = output_of([disassembler, "-c", "-gi", "kernel.cubin"], cwd=work)
    text = kernel_text(kept)
    try:
        calls = library_calls(store.stage_text(run, f"{kernel}/{PTX.name}"), text)
    except LookupError:
        calls = {}
    return clean_sass(listing, text, calls)


def _disassembler(python: str) -> str:
    """``nvdisasm`` of the interpreter's triton, else the one on the PATH."""
    found = in_interpreter(python, "lowering/triton_tools.py").get("nvdisasm") or shutil.which("nvdisasm")
    if not found:
        raise LoweringError(
            f"nvdisasm not found: {python} has no triton that ships it, and it is not on the PATH. "
            "Name the interpreter that ran the script: --python PATH or IRSCOPE_PYTHON."
        )
    return str(found)


def clean_sass(listing: str, kernel: KernelText, calls: dict[tuple[str, int], list[int]]) -> tuple[str, Lines]:
    """The instructions and labels of what ``nvdisasm -c -gi`` prints.

    Args:
        calls: Lines outside of the kernel → the kernel's lines that they were inlined into (`library_calls`).  A binary
            by Triton names only the inlined line, so an instruction from a library has all the lines that it may belong
            to.
    """
    text: list[str] = []
    lines: Lines = []
    current: list[int] = []
    fresh = True
    for row in listing.split("\n"):
        if match := _PLACE.match(row):
            here = _kernel_lines(match, kernel, calls)
            # One instruction has a row for each of its callers; the first row that is in the kernel counts.
            current = here if fresh or not current else current
            fresh = False
            continue
        if not _RELEVANT.match(row) or _DIRECTIVE.match(row):
            continue
        text.append(moved_left(row.rstrip()))
        if not row.rstrip().endswith(":"):
            lines.extend((len(text), line) for line in current)
            fresh = True
    return "\n".join(text) + "\n", lines


def moved_left(row: str) -> str:
    """An instruction without the 35 columns that nvdisasm leaves before it: beside other stages there is room for few
    more.  Its address stays, and there is room for a predicate (``@!UP0``), so that the instructions are in a column.
    """
    match = _INSTRUCTION.match(row)
    return f"{match['address']} {match['predicate'] or '':>5} {match['rest']}" if match else row


def _kernel_lines(match: re.Match[str], kernel: KernelText, calls: dict[tuple[str, int], list[int]]) -> list[int]:
    place = (match[1], int(match[2]))
    if (line := kernel.line_of(*place)) is not None:
        return [line]
    if match[3] and (line := kernel.line_of(match[3], int(match[4]))) is not None:
        return [line]
    return sorted(calls.get(place, []))
