"""From the lines of a kernel's lower stages (ttir … sass, assembly) to the lines of the kernel's own text.

Compilers write the line that something came from beside it: ``loc(…)`` in MLIR, ``!dbg`` in LLVM IR, ``.loc`` in PTX
and in assembly.  The functions here read these notes; no compiler is needed.

What the store gives of a lower stage beside its text (`Store.stage_data`) is the same for all of them:

``lines``
    ``[[line of the stage, line of the source], …]``, both 1-based, sorted, many to many.  A line without a pair came
    from no line, or the compiler does not say (constants, what a pass made up).
``source``
    The id of the stage that the second numbers count in: the kernel's text, ``0/0/kernel/triton_poi_fused_add_0``.

A run keeps `KERNEL_TEXT` in the place of the lines (`place_of`), and they are worked out when the data is read
(`with_lines`): a GPU program has hundreds of such texts, and few are ever looked at.

So two stages of one kernel are linked by the source lines that they share.  Where a library function was inlined, the
source line is the innermost one that lies in the kernel's own text: the line that called it.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass

Lines = list[tuple[int, int]]


@dataclass(frozen=True)
class KernelText:
    """Where the kernel's text lies, so that a compiler's file and line become a line of the text.

    Args:
        file: The file that the compiler read, as it names it.
        first_line: 1-based line of the file at which the text begins; 0 or less where the file lacks lines that the
            text has.
        lines: How many lines the text has.
    """

    file: str
    first_line: int
    lines: int

    def line_of(self, file: str, line: int) -> int | None:
        """The line of the text; None for a place outside of it.  A bare file name stands for any folder."""
        if file != self.file and not (os.path.basename(file) == file == os.path.basename(self.file)):
            return None
        number = line - self.first_line + 1
        return number if 1 <= number <= self.lines else None


FileLine = tuple[str, int]
"""A file and a 1-based line."""


def lines_of(language: str, text: str, kernel: KernelText) -> Lines:
    """The line table of a text below a kernel, by its language; empty for a language without one."""
    reader = _READERS.get(language)
    return [] if reader is None else reader(text, kernel)


KERNEL_TEXT = "kernel_text"
"""The key of what `place_of` keeps."""


def place_of(kernel: KernelText) -> dict[str, Any]:
    """What is kept in the data of a stage whose line table is worked out when it is read."""
    return {KERNEL_TEXT: {"file": kernel.file, "first_line": kernel.first_line, "lines": kernel.lines}}


def with_lines(data: Any, language: str, text: str | None) -> Any:
    """The data of a stage with its line table in the place of what `place_of` keeps; without lines where the text is
    missing, or the data is not what it should be.

    Args:
        data: Plain JSON values of any stage.
    """
    if not isinstance(data, dict) or KERNEL_TEXT not in data:
        return data
    rest = {key: value for key, value in data.items() if key != KERNEL_TEXT}
    try:
        kept = data[KERNEL_TEXT]
        place = KernelText(str(kept["file"]), int(kept["first_line"]), int(kept["lines"]))
    except (LookupError, TypeError, ValueError, OverflowError):
        return {"lines": [], **rest}
    lines = lines_of(language, text, place) if text is not None else []
    return {"lines": [list(pair) for pair in lines], **rest}


def source_lines(lines: Iterable[tuple[int, int] | list[int]], line: int) -> list[int]:
    """The source lines of one line of a stage, from its table."""
    table = [(int(a), int(b)) for a, b in lines]
    found = []
    for at in range(bisect_left(table, (line, 0)), len(table)):
        if table[at][0] != line:
            break
        found.append(table[at][1])
    return found


def _innermost(chain: Iterable[FileLine], kernel: KernelText) -> int | None:
    """The line of the first place that lies in the kernel; ``chain`` goes from the inlined line to its callers."""
    return next((number for place in chain if (number := kernel.line_of(*place)) is not None), None)


# --- MLIR: ttir, ttgir ------------------------------------------------------------------------------------------------

_MLIR_ALIAS = pattern(r"^(#loc\d*) = loc\((.*)\)$")
_MLIR_FILE = pattern(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_MLIR_REFERENCE = pattern(r"#loc\d*\b")
_MLIR_AT_END = pattern(r" loc\((?P<place>.*)\)$")


def mlir_lines(text: str, kernel: KernelText) -> Lines:
    """By ``loc(…)`` at the end of each operation, which mostly names an entry of the table ``#loc12 = loc(…)``."""
    aliases: dict[str, str] = {}
    rows = text.split("\n")
    for row in rows:
        if row.startswith("#loc") and (match := _MLIR_ALIAS.match(row)):
            aliases[match[1]] = match[2]
    known: dict[str, list[FileLine]] = {}
    lines: Lines = []
    for number, row in enumerate(rows, 1):
        if row.startswith("#loc") or not (match := _MLIR_AT_END.search(row)):
            continue
        # Arguments have their own places in the middle of a line; the operation's is the last.
        place = match["place"].rpartition(" loc(")[2]
        if (line := _innermost(_mlir_chain(place, aliases, known), kernel)) is not None:
            lines.append((number, line))
    return lines


def _mlir_chain(place: str, aliases: dict[str, str], known: dict[str, list[FileLine]]) -> list[FileLine]:
    """The places in a location, in the order in which they are: in ``callsite(#inner at #outer)`` the inner first."""
    if place in known:
        return known[place]
    known[place] = []  # a table that refers to itself ends here
    found: list[FileLine] = []
    at = 0
    while at < len(place):
        if match := _MLIR_FILE.match(place, at):
            found.append((match[1], int(match[2])))
        elif match := _MLIR_REFERENCE.match(place, at):
            found.extend(_mlir_chain(aliases.get(match[0], ""), aliases, known))
        at = match.end() if match else at + 1
    known[place] = found
    return found


# --- LLVM IR ----------------------------------------------------------------------------------------------------------

_LLVM_NODE = pattern(r"^(![0-9]+) = (?:distinct )?!(DI\w+)\((.*)\)")
_LLVM_FIELD = pattern(r'\b(\w+): ("(?:[^"\\]|\\.)*"|![0-9]+|[0-9]+)')
_LLVM_USE = pattern(r"!dbg (![0-9]+)")


def llvm_lines(text: str, kernel: KernelText) -> Lines:
    """By ``!dbg !12`` and the metadata at the end: ``!12 = !DILocation(line: 3, scope: !4, inlinedAt: !7)``."""
    nodes: dict[str, dict[str, str]] = {}
    rows = text.split("\n")
    for row in rows:
        if row.startswith("!") and (match := _LLVM_NODE.match(row)):
            nodes[match[1]] = dict(_LLVM_FIELD.findall(match[3]))
    lines: Lines = []
    for number, row in enumerate(rows, 1):
        if row.startswith("!") or not (match := _LLVM_USE.search(row)):
            continue
        if (line := _innermost(_llvm_chain(match[1], nodes), kernel)) is not None:
            lines.append((number, line))
    return lines


def _llvm_chain(node: str, nodes: dict[str, dict[str, str]]) -> list[FileLine]:
    found: list[FileLine] = []
    seen: set[str] = set()
    while node in nodes and node not in seen:
        seen.add(node)
        fields = nodes[node]
        file = nodes.get(_llvm_file(fields.get("scope", node), nodes), {})
        path = os.path.join(_unquoted(file.get("directory", "")), _unquoted(file.get("filename", "")))
        found.append((path, int(fields.get("line", "0"))))
        node = fields.get("inlinedAt", "")
    return found


def _llvm_file(scope: str, nodes: dict[str, dict[str, str]]) -> str:
    seen: set[str] = set()
    while scope in nodes and scope not in seen:
        seen.add(scope)
        if file := nodes[scope].get("file"):
            return file
        scope = nodes[scope].get("scope", "")
    return ""


def _unquoted(text: str) -> str:
    return text[1:-1].replace("\\\\", "\\")


# --- PTX, AMDGCN and host assembly ------------------------------------------------------------------------------------

_GAS_FILE = pattern(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_GAS_LOC = pattern(r"^\s*\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?")
_GAS_INLINED_AT = pattern(r"inlined_at (\d+) (\d+) (\d+)")
_GAS_CHAIN = pattern(r"@\[ ([^ ]+?):(\d+)(?::\d+)?")
_NO_CODE = pattern(r"^\s*(?:\.|//|#|;|$|[{}()])|^\s*[\w.$@]+:\s*(?:[#/;].*)?$")


def gas_lines(text: str, kernel: KernelText) -> Lines:
    """By the directive ``.loc FILE LINE COLUMN``, which holds until the next one."""
    rows = text.split("\n")
    files = gas_files(rows)
    calls: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    current: int | None = None
    lines: Lines = []
    for number, row in enumerate(rows, 1):
        if match := _GAS_LOC.match(row):
            current = _innermost(_gas_chain(row, match, files, calls), kernel)
        elif current is not None and not _NO_CODE.match(row):
            lines.append((number, current))
    return lines


def gas_files(rows: list[str]) -> dict[int, str]:
    """The table of files: ``.file 1 "/folder" "name.cpp"``, or the path as one."""
    found = {}
    for row in rows:
        if ".file" in row and (match := _GAS_FILE.match(row)):
            found[int(match[1])] = os.path.join(match[2], match[3] or "") if match[3] else match[2]
    return found


def library_calls(ptx: str, kernel: KernelText) -> dict[FileLine, list[int]]:
    """Where lines outside of the kernel were inlined: file and line → lines of the kernel's text.

    For the machine code, whose table says the inlined line but not who called it.
    """
    rows = ptx.split("\n")
    files = gas_files(rows)
    calls: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    found: dict[FileLine, list[int]] = {}
    for row in rows:
        if match := _GAS_LOC.match(row):
            chain = _gas_chain(row, match, files, calls)
            line = _innermost(chain, kernel)
            if line is not None and kernel.line_of(*chain[0]) is None and line not in found.setdefault(chain[0], []):
                found[chain[0]].append(line)
    return found


def _gas_chain(
    row: str,
    match: re.Match[str],
    files: dict[int, str],
    calls: dict[tuple[int, int, int], tuple[int, int, int]],
) -> list[FileLine]:
    """The place and its callers: as PTX says them (``inlined_at``), else as LLVM's comment does (``@[ k.py:8:15 ]``)."""
    at = (int(match[1]), int(match[2]), int(match[3] or 0))
    chain = [(files.get(at[0], ""), at[1])]
    if inlined := _GAS_INLINED_AT.search(row):
        caller = (int(inlined[1]), int(inlined[2]), int(inlined[3]))
        calls[at] = caller
        for _ in range(100):  # a table that refers to itself ends
            chain.append((files.get(caller[0], ""), caller[1]))
            if caller not in calls:
                break
            caller = calls[caller]
    else:
        chain.extend((file, int(line)) for file, line in _GAS_CHAIN.findall(row))
    return chain


_READERS: dict[str, Callable[[str, KernelText], Lines]] = {
    "mlir": mlir_lines,
    "llvm": llvm_lines,
    "ptx": gas_lines,
    "asm": gas_lines,
}
