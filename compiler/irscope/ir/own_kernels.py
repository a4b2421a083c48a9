"""Hand-written Triton kernels that compiled code launches: which lines of their file they come from.

Inductor copies such a kernel into its output code, with the functions that it calls, below its own head.  The file
and the line of the first decorator are in a comment; what else it tells is in the texts themselves.

The data of such a kernel's stage is ``{"file": …, "places": [[line of the text, line of the file], …]}``, both 1-based.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from irscope.protocol import Origin
from irscope.vocabulary.patterns import pattern

_WRITTEN = pattern(r"^# Original path: (?P<file>.+):(?P<line>\d+)\n(?P<name>\w+) = async_compile\.\w+\(", re.MULTILINE)
_COPIED = pattern(r"^@triton\.\w+\ndef (?P<name>\w+)\(", re.MULTILINE)
_FUNCTION = pattern(r"^[ \t]*def (?P<name>\w+)\(", re.MULTILINE)


def written_in(output_code: str) -> dict[str, Origin]:
    """The hand-written kernels of an output code → the first line of each in its file."""
    if "# Original path: " not in output_code:
        return {}
    return {match["name"]: Origin(match["file"], int(match["line"])) for match in _WRITTEN.finditer(output_code)}


def data_of(text: str, home: Origin, source: str) -> dict[str, Any] | None:
    """The data of a kernel's stage.

    Args:
        text: The kernel's, as Inductor copied it.
        home, source: Where the kernel was written, and the text of that file.  Functions of other files have no lines
            there.

    Returns None if the kernel is not found in its file.
    """
    places = list(_places(text.split("\n"), text, home, source))
    return {"file": home.file, "places": places} if places else None


def places_of(data: Any) -> dict[int, Origin]:
    """Line of the text → line of the user; empty for the data of another stage."""
    if not isinstance(data, dict) or "places" not in data:
        return {}
    return {int(row): Origin(str(data["file"]), int(line)) for row, line in data["places"]}


def _places(rows: list[str], text: str, home: Origin, source: str) -> Iterator[tuple[int, int]]:
    lines = source.split("\n")
    written = {
        match["name"]: _line_at(source, match.start("name")) for match in reversed([*_FUNCTION.finditer(source)])
    }
    copies = [(match["name"], _line_at(text, match.start("name"))) for match in _COPIED.finditer(text)]
    ends = [row - 2 for _, row in copies[1:]] + [len(rows)]
    for number, ((name, row), end) in enumerate(zip(copies, ends, strict=True)):
        if number == 0:  # Inductor may have given it another name
            line = next((at for at in sorted(written.values()) if at >= home.line), None)
        else:
            line = written.get(name)
        if line is None:
            continue
        copy, original = ([one.strip() for one in part] for part in (rows[row - 1 : end], lines[line - 1 :]))
        for block in SequenceMatcher(None, copy, original[: len(copy)], autojunk=False).get_matching_blocks():
            yield from ((row + block.a + i, line + block.b + i) for i in range(block.size) if copy[block.a + i])


def _line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
