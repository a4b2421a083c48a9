"""Machine code in the debugger's disassembly view: instructions with addresses, from the text of a stage.

The addresses are made up: one a line of instruction, far enough apart that no two stages meet.  What a GPU or a CPU
really does with them is not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from irscope_server.dap.recording import MACHINE_CODE, Recording
from irscope_server.dap.sections import Section

_APART = 1 << 32
_NO_INSTRUCTION = re.compile(r"^\s*(?:$|//|#|;|\.(?!L)\w|[\w.$@]+:\s*$|[{}()]|/\*[^*]*\*/\s*$)")
"""Blank lines, comments, directives, labels and braces."""


@dataclass(frozen=True)
class Instruction:
    """A line of machine code; ``line`` is 0 and ``text`` empty outside of the code."""

    address: int
    text: str
    line: int


class Disassembly:
    """The machine code of a run."""

    def __init__(self, recording: Recording) -> None:
        self._sections = [section for _, _, section in recording.sections() if section.stage.name in MACHINE_CODE]
        self._lines: dict[str, list[int]] = {}

    @property
    def has_code(self) -> bool:
        return bool(self._sections)

    def _instructions(self, section: Section) -> list[int]:
        known = self._lines.get(section.stage.id)
        if known is None:
            lines = enumerate(section.lines, 1)
            known = self._lines[section.stage.id] = [n for n, line in lines if not _NO_INSTRUCTION.match(line)]
        return known

    def address(self, section: Section, line: int) -> int | None:
        """The address of the instruction at a line, or of the next one; nothing where the stage is no machine code."""
        if section not in self._sections:
            return None
        lines = self._instructions(section)
        number = next((number for number, each in enumerate(lines) if each >= line), None)
        return None if number is None else self._base(section) + number

    def _base(self, section: Section) -> int:
        return (self._sections.index(section) + 1) * _APART

    def find(self, address: int) -> tuple[Section, int] | None:
        """The stage that an address lies in, and the line of its instruction (0: there is none)."""
        # The nearest stage: an address a little before the first instruction belongs to the stage behind it.
        number = (address + _APART // 2) // _APART - 1
        if not 0 <= number < len(self._sections):
            return None
        section = self._sections[number]
        lines, index = self._instructions(section), address - self._base(section)
        return section, lines[index] if 0 <= index < len(lines) else 0

    def read(self, address: int, count: int) -> tuple[Section | None, list[Instruction]]:
        """Exactly ``count`` instructions from an address on; outside of the code they are empty."""
        found = self.find(address) or self.find(address + count)
        if found is None:
            return None, [Instruction(max(address + each, 0), "", 0) for each in range(count)]
        section = found[0]
        base, lines = self._base(section), self._instructions(section)
        instructions = []
        for each in range(address, address + count):
            line = lines[each - base] if 0 <= each - base < len(lines) else 0
            instructions.append(Instruction(max(each, 0), section.lines[line - 1].strip() if line else "", line))
        return section, instructions
