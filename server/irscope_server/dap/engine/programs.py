"""Programs of Triton kernels as sections that are made when a thread enters them.

A program is recorded once, by Triton's interpreter in a process of the user's interpreter (`irscope.values.kernel`).  From
then on its statements are spots like any other: steps and searches look them up, and go back as well as forward.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from irscope.pipelines.registry import role_of
from irscope.protocol import Origin, StageRef
from irscope.values.kernel.asking import StoredKernel
from irscope.values.kernel.running import run_kernel
from irscope.values.kernel.text import inputs_text, problem_text, program_text, programs_text, value_text
from irscope.vocabulary.stages import Role

from irscope_server.dap.base.expressions import Facts, Lazy
from irscope_server.dap.base.sections import Section, Spot
from irscope_server.dap.engine.recording import PlaceInRun, Recording

_TRITON = "triton"


class ProgramSection(Section):
    """One program of a kernel: a spot for each statement that it executed.

    Parameters
    ----------
    kernel
        The stage that has the kernel's text; ``number`` is its own in the track.
    answer
        What `irscope.values.kernel.process` answered.
    graph, nodes
        The ID of the last graph, and by line of the kernel which of its nodes the line computes.
    """

    def __init__(
        self, kernel: Section, number: int, answer: Mapping[str, Any], graph: str, nodes: Mapping[int, Sequence[str]]
    ) -> None:
        program = answer["recorded"]
        told = "-".join(map(str, program))
        self._of(kernel, StageRef(f"{kernel.stage.id}/program-{told}", kernel.stage.name, kernel.stage.language, 0))
        self.kernel, self.number, self.answer, self.program = kernel, number, answer, tuple(program)
        self.graph, self._nodes = graph, nodes
        self._statements: Sequence[Mapping[str, Any]] = answer["statements"]

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
        return self._nodes.get(self.spots[spot].line, ())

    def origins(self, spot: int) -> tuple[Origin, ...]:
        """The user's lines of the node that the statement computes."""
        return self.kernel.origins(self.kernel.spot_at(self.spots[spot].line))

    def marked(self, stage: str, spot: int) -> Sequence[int]:
        """The statements on the line of a spot of the kernel's text."""
        if stage != self.kernel.stage.id or not 0 <= spot < len(self.kernel.spots):
            return super().marked(stage, spot)
        line = self.kernel.spots[spot].line
        return [index for index, each in enumerate(self.spots) if each.line == line]

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
        found: dict[str, Any] = {}
        for statement in self._statements[: spot + 1]:
            found.update(statement["values"])
        return {name: block_facts(value) for name, value in found.items()}

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
        })  # fmt: skip


def block_facts(value: Mapping[str, Any]) -> Facts:
    """A value of a kernel: of a block its dtype, shape, statistics, and its elements row by row, masked ones in parentheses."""
    facts = {key: value[key] for key in ("dtype", "shape", "value", "to", "min", "max", "nan", "inf", "masked") if value.get(key) is not None}  # fmt: skip
    if value.get("elements"):
        facts["elements"] = _rows(value, 0, list(value["shape"]) or [1])
    return Facts("block", value_text(value), facts)


def _rows(value: Mapping[str, Any], start: int, shape: Sequence[int]) -> Lazy:
    """The elements of a block, or of a part of it that begins at ``start``; texts are made when they are looked at."""
    size = math.prod(shape[1:])

    def row(index: int) -> Any:
        at = start + index * size
        if len(shape) > 1:
            return _rows(value, at, shape[1:])
        live = value.get("live")
        return value["elements"][at] if live is None or live[at] else f"({value['elements'][at]})"

    return Lazy(shape[0], row, text=f"[{', '.join(map(str, shape))}]")


class Programs:
    """Makes the sections of programs, each once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.python = sys.executable
        """The interpreter that runs them; it needs torch and triton."""
        self._made: dict[str, int] = {}

    def can_enter(self, place: PlaceInRun) -> bool:
        """Whether a place is in the text of a Triton kernel."""
        section = self._recording.section(place)
        is_text = role_of(section.stage.name) is Role.KERNEL and section.stage.language in ("python", _TRITON)
        return is_text and not isinstance(section, ProgramSection) and any(each.language == _TRITON for each in section.kernels)  # fmt: skip

    def enter(self, place: PlaceInRun) -> PlaceInRun:
        """The statement of the recorded program at a line of the kernel's text, else its first one.

        Raises LookupError with a sentence if the kernel cannot be run.
        """
        kernel = self._recording.section(place)
        track = self._recording.tracks[place.compile]
        if kernel.stage.id not in self._made:
            stored = StoredKernel(self._recording.store, self._recording.store.report(self._recording.report.run), kernel.stage.id)  # fmt: skip
            answer = run_kernel(self.python, {**stored.request(), "step": True, "elements": True})
            if not answer["statements"]:
                raise LookupError(answer["failed"] or "The program executed no statement.")
            nodes = {number: stored.line(number).nodes for number in {each["line"] for each in answer["statements"]}}
            section = ProgramSection(kernel, place.section, answer, stored.graph, nodes)
            self._made[kernel.stage.id] = track.enter(section)
        number = self._made[kernel.stage.id]
        line = self._recording.spot(place).line
        spots = track.section(number).spots
        spot = next((index for index, each in enumerate(spots) if each.line >= line), 0) if place.spot > 0 else 0
        return PlaceInRun(place.compile, number, spot)
