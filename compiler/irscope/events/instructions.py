"""An instruction that Dynamo walks over, as text and as a place in the source."""

from __future__ import annotations

import dis
import re
from typing import Any

from irscope.events.trackers import value_words
from irscope.usercode.source import read_source


def argument_of(instruction: Any) -> str:
    """Formats it as `dis` does, with a limit."""
    text, value = instruction.argrepr, instruction.argval
    if instruction.arg is None and instruction.opname != "LOAD_CONST":  # Dynamo makes some of those itself
        return ""
    if not text:
        if instruction.opname == "BINARY_OP":
            return str(dis._nb_ops[value][1])  # type: ignore[attr-defined]
        if instruction.opname == "FORMAT_VALUE":
            return str(instruction.arg)
        text = value if isinstance(value, str) and instruction.opname != "LOAD_CONST" else value_words(value)
    return re.sub(r"0x[0-9a-f]+", "0x…", str(text)[:200])


class Columns:
    """Turns the byte columns of instructions into columns of the text."""

    def __init__(self) -> None:
        self._files: dict[str, list[str] | None] = {}

    def of(self, file: str, instruction: Any) -> tuple[int, int, int, int]:
        """Line, end line, column, end column; -1 if it has none."""
        where = instruction.positions
        if where is None or where.lineno is None:
            return (instruction.starts_line or -1, -1, -1, -1)
        line, end = where.lineno, where.end_lineno or where.lineno
        return (line, end, self._column(file, line, where.col_offset), self._column(file, end, where.end_col_offset))

    def _column(self, file: str, line: int, byte: int | None) -> int:
        if byte is None:
            return -1
        if file not in self._files:
            text = read_source(file)
            self._files[file] = None if text.isascii() else text.split("\n")
        lines = self._files[file]
        if lines is None or not 1 <= line <= len(lines):
            return byte
        return len(lines[line - 1].encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "replace"))
