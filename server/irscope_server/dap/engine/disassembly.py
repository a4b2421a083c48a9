"""Instructions in the debugger's disassembly view: machine code from the text of a stage, and the user's bytecode from
the symbolic traces.

The addresses are made up: one an instruction, far enough apart that no two listings meet.  What a GPU or a CPU really
does with machine code is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from irscope.pipelines.registry import stage_kind
from irscope.protocol import Range

from irscope_server.dap.base.sections import Section
from irscope_server.dap.engine.recording import Recording
from irscope_server.dap.trace.traces import Code, TraceSection

_APART = 1 << 32
_NO_INSTRUCTION = re.compile(r"^\s*(?:$|//|#|;|\.(?!L)\w|[\w.$@]+:\s*$|[{}()]|/\*[^*]*\*/\s*$)")
"""Blank lines, comments, directives, labels and braces."""


@dataclass(frozen=True)
class Instruction:
    """The line of machine code in the text of the stage, of bytecode in the user's file; ``text`` is empty and
    ``line`` 0 outside of the code."""

    address: int
    text: str
    line: int
    range: Range | None = None


@dataclass(frozen=True)
class MachineCode:
    """The machine code of a kernel; `lines` are those of its instructions."""

    section: Section
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)

    def instruction(self, address: int, at: int) -> Instruction:
        """The instruction with the index `at`; its line is one of the stage's text."""
        return Instruction(address, self.section.lines[self.lines[at] - 1].strip(), self.lines[at])


@dataclass(frozen=True)
class Bytecode:
    """A function of the user's, or one that it called, as Dynamo walked over it."""

    code: Code
    texts: Sequence[tuple[str, Range | None]]

    def __len__(self) -> int:
        return len(self.texts)

    def instruction(self, address: int, at: int) -> Instruction:
        """The instruction with the index `at`; its line is 0 if the source place is not known."""
        text, where = self.texts[at]
        return Instruction(address, text, where.start.line if where is not None else 0, where)


Listing = MachineCode | Bytecode


class Disassembly:
    """All code of a run that has instructions.  Bytecode is listed at the first stop in it."""

    def __init__(self, recording: Recording) -> None:
        self._sections = [
            section for _, _, section in recording.sections() if stage_kind(section.stage.name).is_machine_code
        ]
        self._recording = recording
        self._machine: dict[int, MachineCode] = {}
        self._codes: dict[Code, int] = {}
        self._bytecode: list[Bytecode] = []

    @property
    def has_code(self) -> bool:
        """Whether the run has any machine code or bytecode to show."""
        return bool(self._sections or self._bytecode) or any(track.traces() for track in self._recording.tracks)

    # --- from places to addresses -------------------------------------------------------------------------------------

    def address(self, section: Section, line: int) -> int | None:
        """The address of the instruction at a line, or of the next one; None if the stage is not machine code."""
        if section not in self._sections:
            return None
        index = self._sections.index(section)
        lines = self._machine_code(index).lines
        number = next((number for number, each in enumerate(lines) if each >= line), None)
        return None if number is None else (index + 1) * _APART + number

    def address_of_step(self, section: TraceSection, step: int) -> int | None:
        """The address of the instruction that a step of a symbolic trace runs."""
        found = section.instruction_of(step)
        if found is None:
            return None
        code, at = found
        if code not in self._codes:
            self._codes[code] = len(self._bytecode)
            self._bytecode.append(Bytecode(code, _texts_of(section, step)))
        return (len(self._sections) + self._codes[code] + 1) * _APART + at

    def _machine_code(self, index: int) -> MachineCode:
        if index not in self._machine:
            section = self._sections[index]
            lines = [number for number, line in enumerate(section.lines, 1) if not _NO_INSTRUCTION.match(line)]
            self._machine[index] = MachineCode(section, lines)
        return self._machine[index]

    # --- and back -----------------------------------------------------------------------------------------------------

    def find(self, address: int) -> tuple[Listing, int] | None:
        """The listing that an address lies in, and which of its instructions it is (outside of it: -1)."""
        # The nearest one: an address a little before the first instruction belongs to the listing after it.
        number = (address + _APART // 2) // _APART - 1
        listing: Listing
        if 0 <= number < len(self._sections):
            listing = self._machine_code(number)
        elif 0 <= number - len(self._sections) < len(self._bytecode):
            listing = self._bytecode[number - len(self._sections)]
        else:
            return None
        at = address - (number + 1) * _APART
        return listing, at if 0 <= at < len(listing) else -1

    def read(self, address: int, count: int) -> tuple[Listing | None, list[Instruction]]:
        """Exactly ``count`` instructions from an address on; outside of the code they are empty."""
        found = self.find(address) or self.find(address + count)
        if found is None:
            return None, [Instruction(max(address + each, 0), "", 0) for each in range(count)]
        listing = found[0]
        base = (address + _APART // 2) // _APART * _APART if self.find(address) else None
        if base is None:
            base = (address + count + _APART // 2) // _APART * _APART
        return listing, [
            listing.instruction(each, each - base)
            if 0 <= each - base < len(listing)
            else Instruction(max(each, 0), "", 0)
            for each in range(address, address + count)
        ]


def _texts_of(section: TraceSection, step: int) -> list[tuple[str, Range | None]]:
    assert section.walk is not None
    listing = section.walk.listing(section.walk.code_of(step))
    width = max((len(each.operation) for each in listing), default=0)
    return [
        (f"{each.offset if each.offset >= 0 else '':>5} {each.operation:<{width}} {each.argument}".rstrip(), each.range)
        for each in listing
    ]
