"""The assembly that GCC or Clang writes for a C++ kernel: only what belongs to the kernel, with its line table.

The compiler writes thousands of lines of directives and debug information around a kernel's instructions.  Here the
directives are read for what they say (which line an instruction came from, what was inlined where) and left out, as
Compiler Explorer does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.ir.line_tables import KernelText, Lines, gas_lines

# GCC writes who called an inlined function into the debug information alone, which `-dA` comments.
FLAGS = ("-S", "-g1", "-dA", "-w")
"""What a compiler needs in order to write what `clean_assembly` reads.  None of it changes the instructions."""

_ENTRY = re.compile(r'extern\s+"C"\s+[\w\s*]*?\b(\w+)\s*\(')
_LABEL = re.compile(r"^([\w.$@]+):")
_FUNCTION = re.compile(r"^\s*\.type\s+([\w.$@]+),\s*[@%]function")
_LOCAL = re.compile(r"\.L\w+")
_DIRECTIVE = re.compile(r"^\s*\.\w")
_DATA = re.compile(
    r"^\s*\.(?:long|quad|byte|value|short|word|zero|string|asciz?|double|float|single|octa|xword|hword)\b"
)
_COMMENT = re.compile(r"^\s*(?:#|//|@ )")


def clean_assembly(assembly: str, kernel: KernelText, source: str) -> tuple[str, Lines]:
    """The kernel's functions with their instructions, the labels that they use and the constants that they read.

    Args:
        assembly: What the compiler wrote with `FLAGS`.
        kernel: The file that it compiled.
        source: The C++ text; its ``extern "C"`` functions are the kernel.

    Raises ValueError if the assembly has none of them.
    """
    rows = assembly.split("\n")
    names = {name for match in _ENTRY.finditer(source) for name in (match[1], "_" + match[1])}
    spans = [(start, end) for name, start, end in _functions(rows) if _belongs(name, names)]
    if not spans:
        raise ValueError(f"the assembly has no function {' or '.join(sorted(names)) or 'extern C'}")
    line_of = dict(gas_lines(assembly, kernel))
    for row, line in _inlined_lines(rows, kernel):
        line_of.setdefault(row + 1, line)
    inside = [row for start, end in spans for row in range(start, end)]
    used = {label for row in inside if not _DIRECTIVE.match(rows[row]) for label in _LOCAL.findall(rows[row])}
    text, lines = _instructions(rows, spans, used, line_of)
    for constant, data in _constants(rows, used, set(inside)):
        text += ["", constant + ":", *data]
    return "\n".join(text) + "\n", lines


def _instructions(
    rows: list[str], spans: list[tuple[int, int]], used: set[str], line_of: dict[int, int]
) -> tuple[list[str], Lines]:
    """Rows without directives, comments and labels that nothing uses, and the lines that they came from."""
    text: list[str] = []
    lines: Lines = []
    for start, end in spans:
        if text:
            text.append("")
        for row in range(start, end):
            content = rows[row].rstrip()
            if label := _LABEL.match(content):
                if row == start or label[1] in used:
                    text.append(content)
            elif content.strip() and not _DIRECTIVE.match(content) and not _COMMENT.match(content):
                text.append(content)
                if row + 1 in line_of:
                    lines.append((len(text), line_of[row + 1]))
    return text, lines


def _functions(rows: list[str]) -> Iterator[tuple[str, int, int]]:
    """Name and rows of each function, from its label to where its frame information ends."""
    declared = {match[1] for row in rows if (match := _FUNCTION.match(row))}
    start, name = -1, ""
    for number, row in enumerate(rows):
        if row.startswith("\t.cfi_endproc") and name:
            yield name, start, number
            name = ""
        elif (match := _LABEL.match(row)) and match[1] in declared:
            start, name = number, match[1]


def _belongs(symbol: str, names: set[str]) -> bool:
    """Whether a function is the kernel, a part of it (``kernel._omp_fn.0``, ``kernel.cold``) or a lambda in it."""
    return any(symbol == name or symbol.startswith(name + ".") or f"ZZ{len(name)}{name}" in symbol for name in names)


def _constants(rows: list[str], used: set[str], inside: set[int]) -> Iterator[tuple[str, list[str]]]:
    label, data = "", list[str]()
    for number, row in enumerate([*rows, ".end:"]):
        match = _LABEL.match(row)
        if match or not _DATA.match(row):
            if label and data and (match or not row.lstrip().startswith((".align", ".p2align"))):
                yield label, data
                label = ""
            if match and number not in inside:
                label, data = (match[1], []) if match[1] in used else ("", [])
        elif label:
            data.append(row.rstrip())


# --- what was inlined where -------------------------------------------------------------------------------------------

_DIE = re.compile(r"\(DIE \(0x[0-9a-f]+\) (DW_TAG_\w+)\)")
_CALL_FILE = re.compile(r"DW_AT_call_file \((?:\d+, )?(.*)\)$")
# As data, or as a comment alone where all calls of this shape have it in common.
_CALL_LINE = re.compile(r"^\s*\.\w+\s+(0x[0-9a-f]+|\d+)\s.*DW_AT_call_line$|DW_AT_call_line \((0x[0-9a-f]+|\d+)\)$")


def _inlined_lines(rows: list[str], kernel: KernelText) -> Iterator[tuple[int, int]]:
    """Row and source line for the rows of what was inlined from a header, the innermost call first."""
    labels = ((number, _LABEL.match(row)) for number, row in enumerate(rows) if row.startswith(".L"))
    where = {match[1]: number for number, match in labels if match}
    ranges = _range_lists(rows)
    calls = [
        (end - start, start, end, line)
        for line, spans in _inlined_calls(rows, ranges, kernel)
        for first, last in spans
        if (start := where.get(first, 0)) < (end := where.get(last, 0))
    ]
    for _, start, end, line in sorted(calls):
        yield from ((number, line) for number in range(start, end))


Spans = list[tuple[str, str]]
"""Pairs of labels: from the first up to the second."""


def _inlined_calls(rows: list[str], ranges: dict[str, Spans], kernel: KernelText) -> Iterator[tuple[int, Spans]]:
    """The line of each call in the kernel's file whose callee was inlined, and where its code is."""
    for inlined in _inlined_rows(rows):
        file, line, low, spans = "", 0, "", Spans()
        for row in inlined:
            if match := _CALL_FILE.search(row):
                file = match[1]
            elif match := _CALL_LINE.search(row):
                line = int(match[1] or match[2], 0)
            elif "DW_AT_low_pc" in row and (match := _LOCAL.search(row)):
                low = match[0]
            elif "DW_AT_high_pc" in row and (match := _LOCAL.search(row)):
                spans = [(low, match[0])]
            elif "DW_AT_ranges" in row and (match := _LOCAL.search(row)):
                spans = ranges.get(match[0], [])
        if (line_of_call := kernel.line_of(file, line)) is not None:
            yield line_of_call, spans


def _inlined_rows(rows: list[str]) -> Iterator[list[str]]:
    """The rows that describe each call whose callee was inlined."""
    number = 0
    while number < len(rows):
        tag = _DIE.search(rows[number])
        number += 1
        if tag is not None and tag[1] == "DW_TAG_inlined_subroutine":
            begin = number
            while number < len(rows) and not _DIE.search(rows[number]) and "end of children" not in rows[number]:
                number += 1
            yield rows[begin:number]


def _range_lists(rows: list[str]) -> dict[str, Spans]:
    """``.LLRL7`` → where the pieces of one inlined call are."""
    found: dict[str, Spans] = {}
    name, begin = "", ""
    for row in rows:
        if row.startswith(".LLRL"):
            name = row.rstrip().rstrip(":")
            found[name] = []
        elif name and "Range begin address" in row and (match := _LOCAL.search(row)):
            begin = match[0]
        elif name and ("Range end address" in row or "Range length" in row) and (match := _LOCAL.search(row)):
            found[name].append((begin, match[0]))
        elif "end_of_list" in row:
            name = ""
    return found
