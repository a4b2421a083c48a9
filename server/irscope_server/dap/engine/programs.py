"""Programs of Triton kernels as sections that are made when a thread enters them.

A program is recorded once, by Triton's interpreter in a process of the user's interpreter (`irscope.values.kernel`).  From
then on its statements are spots like any other: steps and searches look them up, and go back as well as forward.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from irscope.driver.kernel_checks import keep
from irscope.pipelines.registry import role_of
from irscope.protocol import Origin, StageRef
from irscope.values.facts import Facts, Lazy
from irscope.values.kernel.asking import StoredKernel
from irscope.values.kernel.blocks import block_facts
from irscope.values.kernel.running import run_kernel
from irscope.values.kernel.text import inputs_text, problem_text, program_text, programs_text
from irscope.vocabulary.stages import Role

from irscope_server.dap.base.sections import Section, Spot
from irscope_server.dap.engine.recording import PlaceInRun, Recording

_TRITON = "triton"
FIRST_THREAD = 1 << 20
"""The number of the thread of the first program; those below are compiles."""
_MOST_PROGRAMS = 12
"""Programs that a launch makes known: those in which something is, the first and the last."""
Program = tuple[int, ...]
"""Its three indices."""


class ProgramSection(Section):
    """One program of a kernel: a spot for each statement that it executed.  It is recorded when it is looked at.

    Args:
        kernel: The stage that has the kernel's text; ``number`` is its own in the track.
        stored: The kernel as it is run.
        record: Gives what `irscope.values.kernel.process` answers.
    """

    def __init__(self, kernel: Section, number: int, program: Program, stored: StoredKernel, record: Callable[[], Mapping[str, Any]]) -> None:  # fmt: skip
        told = "-".join(map(str, program))
        self._of(kernel, StageRef(f"{kernel.stage.id}/program-{told}", kernel.stage.name, kernel.stage.language, 0))
        self.kernel, self.number, self.program = kernel, number, program
        self.graph, self._stored, self._record = stored.graph, stored, record
        self.accesses: list[Mapping[str, Any]] = []
        """Accesses of elements that data breakpoints are on, as `irscope.values.kernel.finding` has them."""
        self._names: list[dict[str, Facts]] = []

    @cached_property
    def answer(self) -> Mapping[str, Any]:
        """What the interpreter told."""
        return self._record()

    @cached_property
    def _statements(self) -> Sequence[Mapping[str, Any]]:
        return list(self.answer["statements"])

    @property
    def thread_name(self) -> str:
        """What a list of threads says."""
        return f"{self.kernel.stage.id.rpartition('/')[2]} {self.title}"

    @property
    def document(self) -> Section:
        """The kernel's text."""
        return self.kernel

    @property
    def title(self) -> str:
        """``program (3, 0)``."""
        return f"program {program_text(list(self.program))}"

    @property
    def text(self) -> str:
        """The kernel's text."""
        return self.kernel.text

    @cached_property
    def spots(self) -> Sequence[Spot]:
        """The statements in the order of their execution."""
        return [Spot(each["line"]) for each in self._statements] or [Spot(1)]

    def nodes_of(self, spot: int) -> Sequence[str]:
        """The nodes that a statement computes."""
        return self._stored.line(self.spots[spot].line).nodes

    def origins(self, spot: int) -> tuple[Origin, ...]:
        """The user's lines of the node that the statement computes."""
        return self.kernel.origins(self.kernel.spot_at(self.spots[spot].line))

    def marked(self, stage: str, spot: int) -> Sequence[int]:
        """The statements on the line of a spot of the kernel's text."""
        if stage != self.kernel.stage.id or not 0 <= spot < len(self.kernel.spots):
            return super().marked(stage, spot)
        line = self.kernel.spots[spot].line
        return [index for index, each in enumerate(self.spots) if each.line == line]

    def accessing(self, argument: str, index: int, kinds: Sequence[str]) -> Sequence[int]:
        """The statements that access an element of a parameter's memory."""
        found = []
        for each in self.accesses:
            if each.get("argument") == argument and each["index"] == index and each["kind"] in kinds:
                lines = [at for at, spot in enumerate(self.spots) if spot.line == each["line"]]
                found += lines[each["times"] : each["times"] + 1]
        return found

    @cached_property
    def breaks(self) -> Mapping[int, str]:
        """Statements at which something is wrong → what: the first value that is not finite, and bad accesses."""
        found: dict[int, str] = {}
        for problem in self.answer["problems"]:
            at = next((index for index, each in enumerate(self.spots) if each.line == problem["line"]), None)
            if problem["kind"] == "non-finite":
                at = next((index for index, each in enumerate(self._statements) if each["breaks"]), None)
            if at is not None and problem["program"] == list(self.program):
                found.setdefault(at, problem_text(problem))
        return found

    def made(self, spot: int) -> Facts:
        """What a statement makes, by name."""
        values = self._statements[spot]["values"] if spot < len(self._statements) else {}
        return Facts("Statement", f"{len(values)} values", {name: block_facts(value) for name, value in values.items()})

    def names(self, spot: int) -> dict[str, Facts]:
        """The last value of each name after a statement."""
        while len(self._names) <= min(spot, len(self._statements) - 1):
            made = {name: block_facts(each) for name, each in self._statements[len(self._names)]["values"].items()}
            self._names.append({**(self._names[-1] if self._names else {}), **made})
        return self._names[spot] if self._names else {}

    def blocks(self, spot: int) -> Sequence[Facts]:
        """The scopes of a statement, each named by its kind: what it makes, all values after it, and the launch."""
        known = self.names(spot)
        blocks = Facts("Blocks", f"{len(known)} values", dict(reversed(known.items())))
        return self.made(spot), blocks, self.facts_of_launch()

    def facts_of_launch(self) -> Facts:
        """The launch that the program belongs to: grid, block sizes, where the inputs come from."""
        answer = self.answer
        return Facts("Launch", programs_text(answer), {
            "program": list(self.program), "grid": answer["grid"], "inputs": inputs_text(answer), **answer["blocks"],
            **{each["parameter"]: _memory(each) for each in answer["memory"]},
        })  # fmt: skip


def _memory(tensor: Mapping[str, Any]) -> Lazy:
    """A tensor after the launch; an element is told by its index, so that a data breakpoint can be on it."""
    numbers = tensor["elements"]
    told = f"{tensor['dtype']}[{', '.join(map(str, tensor['shape']))}] ({tensor['buffer']})"
    return Lazy(len(numbers), lambda at: numbers[at], label=str, text=told)


class Programs:
    """Makes the sections of programs, each once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.python = sys.executable
        """The interpreter that runs them; it needs torch and triton."""
        self.entered: list[PlaceInRun] = []
        """The first statement of each program that is known, in the order of threads."""
        self._numbers: dict[tuple[str, Program], int] = {}
        self._recorded: dict[str, Program] = {}
        self._searched: set[tuple[str, str]] = set()

    def thread_of(self, place: PlaceInRun) -> int:
        """The thread that a place belongs to: the compile's, or that of a program."""
        if place.section < len(self._recording.tracks[place.compile].sections):
            return place.compile
        first = PlaceInRun(place.compile, place.section, 0)
        return FIRST_THREAD + self.entered.index(first)

    def can_enter(self, place: PlaceInRun) -> bool:
        """Whether a place is in the text of a Triton kernel."""
        section = self._recording.section(place)
        is_text = role_of(section.stage.name) is Role.KERNEL and section.stage.language in ("python", _TRITON)
        return is_text and not isinstance(section, ProgramSection) and any(each.language == _TRITON for each in section.kernels)  # fmt: skip

    def of_kernel(self, place: PlaceInRun) -> list[int]:
        """The sections of the known programs of a kernel, in the order of the grid."""
        id = self._recording.section(place).stage.id
        return [self._numbers[key] for key in sorted(self._numbers, key=lambda each: each[1][::-1]) if key[0] == id]

    def enter(self, place: PlaceInRun, program: Program | None = None) -> PlaceInRun:
        """The statement of a program at a line of the kernel's text, else its first one; by default of the first that makes
        a value that is not finite, else of the first of all.

        Raises LookupError with a sentence if the kernel cannot be run.
        """
        kernel = self._recording.section(place)
        if program is None and kernel.stage.id not in self._recorded:
            self._launch(place, ())
        number = self._number(place, program or self._recorded[kernel.stage.id])
        line = self._recording.spot(place).line
        spots = self._recording.tracks[place.compile].section(number).spots
        spot = next((index for index, each in enumerate(spots) if each.line >= line), 0) if place.spot > 0 else 0
        return PlaceInRun(place.compile, number, spot)

    def find(self, place: PlaceInRun, wanted: Sequence[Mapping[str, Any]]) -> None:
        """Makes the programs of a kernel known that access an element or meet a condition, and those with problems.

        Args:
            wanted: ``argument`` and ``index``, or ``line`` and ``condition``.

        Raises LookupError with a sentence if the kernel cannot be run.
        """
        asked = self._recording.section(place).stage.id, json.dumps(wanted, sort_keys=True)
        if asked not in self._searched:
            self._launch(place, wanted)
            self._searched.add(asked)

    def _launch(self, place: PlaceInRun, wanted: Sequence[Mapping[str, Any]]) -> None:
        kernel = self._recording.section(place)
        stored = self._stored(kernel)
        answer = run_kernel(self.python, {**stored.request(), "step": True, "elements": True, "find": list(wanted)})
        with contextlib.suppress(sqlite3.Error):  # a store that cannot be written can be stepped through
            keep(self._recording.store, stored, answer)
        if not answer["statements"]:
            raise LookupError(answer["failed"] or "The program executed no statement.")
        recorded = tuple(answer["recorded"])
        self._recorded.setdefault(kernel.stage.id, recorded)
        x, y, z = answer["grid"]
        others = [*answer["found"], *answer["problems"], {"program": (0, 0, 0)}, {"program": (x - 1, y - 1, z - 1)}]
        self._number(place, recorded, answer)
        for program in list(dict.fromkeys(tuple(each["program"]) for each in others))[:_MOST_PROGRAMS]:
            self._number(place, program)
        track = self._recording.tracks[place.compile]
        for access in answer["found"]:
            if (number := self._numbers.get((kernel.stage.id, tuple(access["program"])))) is not None:
                section = track.section(number)
                assert isinstance(section, ProgramSection)
                section.accesses.append(access)

    def _stored(self, kernel: Section) -> StoredKernel:
        return StoredKernel(self._recording.store, self._recording.store.report(self._recording.report.run), kernel.stage.id)  # fmt: skip

    def _number(self, place: PlaceInRun, program: Program, answer: Mapping[str, Any] | None = None) -> int:
        """The section of a program, which is made if it is not known."""
        kernel = self._recording.section(place)
        if (kernel.stage.id, program) not in self._numbers:
            stored = self._stored(kernel)
            request = {**stored.request(), "step": True, "elements": True, "program": list(program)}
            section = ProgramSection(kernel, place.section, program, stored, lambda: answer or run_kernel(self.python, request))  # fmt: skip
            number = self._recording.tracks[place.compile].enter(section)
            self._numbers[kernel.stage.id, program] = number
            self.entered.append(PlaceInRun(place.compile, number, 0))
        return self._numbers[kernel.stage.id, program]
