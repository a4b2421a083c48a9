"""The symbolic trace as a debugger walks through it: a spot for each instruction that Dynamo walked over.

There is one for each attempt of a compile; only the last one's nodes are those of the graphs.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from irscope.findings.registry import all_kinds, kind_of
from irscope.protocol import Compile, Finding, Origin, Report, StageRef
from irscope.provenance import Provenance
from irscope.store.store import Store
from irscope.symbolic.lines import Lines
from irscope.symbolic.trace import Outcome, Walk
from irscope.values.facts import Lazy

from irscope_server.dap.base.sections import DAMAGED, Section, Spot, real

Code = tuple[str, str, int]
"""A code object: file, function, first line.  Compiles and attempts that walk over the same one share it."""

_MOST_LINES = 1000
"""The most lines of a finding's range; a store from elsewhere may name any."""

_NUMBERED = re.compile(r"^ *(\d+) ")
FOUND_IN_TRACES = frozenset(id for id, kind in all_kinds().items() if kind.explains_steps)
"""Kinds of findings that say how a step ended."""


class TraceSection(Section):
    """One attempt.  A spot's number is the number of its step.

    Args:
        attempt, attempts: Which one of the compile's it is, from 1 on, and how many there are.
        findings: The findings of the compile.
    """

    def __init__(
        self,
        store: Store,
        report: Report,
        provenance: Provenance,
        compile: Compile,
        stage: StageRef,
        attempt: tuple[int, int],
        findings: Sequence[Finding],
    ) -> None:
        super().__init__(store, report, provenance, compile, stage)
        self.attempt, self.attempts = attempt
        self._findings = findings

    @property
    def title(self) -> str:
        """``Symbolic trace``, with the number of the attempt where there were several."""
        return "Symbolic trace" + (f", attempt {self.attempt} of {self.attempts}" if self.attempts > 1 else "")

    @cached_property
    def walk(self) -> Walk | None:
        """None if the store's data cannot be read; the text is walked line by line then."""
        try:
            walk = Walk(self._data)
        except DAMAGED:
            return None
        return walk if len(walk) else None

    @cached_property
    def steps_by_line(self) -> Lines:
        """The steps of each line of the user's code."""
        assert self.walk is not None
        return Lines(self.walk)

    @property
    def is_last(self) -> bool:
        """Whether the graphs are those of this attempt."""
        return self.walk is not None and self.walk.last

    # --- spots --------------------------------------------------------------------------------------------------------

    @cached_property
    def spots(self) -> Sequence[Spot]:
        """One spot for each step, made when it is looked at; those of the text where the trace cannot be read."""
        if self.walk is None:
            return super().spots
        return Lazy(len(self.walk), self._spot)

    def _spot(self, step: int) -> Spot:
        assert self.walk is not None
        found = self.findings_at.get(step)
        return Spot(self.line(step), "", self.walk.place_of(step)[0], (found,) if found is not None else ())

    def line(self, step: int) -> int:
        """The line of the user's file that a step is in."""
        assert self.walk is not None
        instruction = self.walk.instruction(step)
        if instruction.range is not None:
            return instruction.range.start.line
        known = self.steps_by_line.line(step)
        return known if known > 0 else max(self.walk.codes()[self.walk.code_of(step)][2], 1)

    def origins(self, spot: int) -> tuple[Origin, ...]:
        """The line of a step, and those of the calls that led to it."""
        if self.walk is None:
            return super().origins(spot)
        return tuple(Origin(self.walk.place_of(step)[0], self.line(step)) for step in self.chain(spot))

    def chain(self, step: int) -> list[int]:
        """The step, the one that called its function, and so on to the compiled function."""
        assert self.walk is not None
        found = [step]
        while (caller := self.walk.caller(found[-1])) is not None:
            found.append(caller)
        return found

    @cached_property
    def by_origin(self) -> Mapping[Origin, Sequence[int]]:
        """Where the walk comes to each line of a file; what goes on in a line is passed over."""
        if self.walk is None:
            return super().by_origin
        found: dict[Origin, list[int]] = {}
        for step in self.steps_by_line.starts():
            found.setdefault(Origin(real(self.walk.place_of(step)[0]), self.line(step)), []).append(step)
        return found

    @cached_property
    def by_call(self) -> Mapping[str, Sequence[int]]:
        """Where each function is entered, by its name."""
        if self.walk is None:
            return super().by_call
        found: dict[str, list[int]] = {}
        seen: set[int] = set()
        for step in range(len(self.walk)):
            if (frame := self.walk.frame_of(step)) not in seen:
                seen.add(frame)
                found.setdefault(self.walk.place_of(step)[1], []).append(step)
        return found

    @cached_property
    def by_name(self) -> Mapping[str, int]:
        """Empty: instructions have no names."""
        return {} if self.walk is not None else super().by_name

    @cached_property
    def by_element(self) -> Mapping[str, int]:
        """Empty: instructions are no elements of a graph."""
        return {} if self.walk is not None else super().by_element

    # --- its document -------------------------------------------------------------------------------------------------

    @cached_property
    def _written(self) -> tuple[list[int], list[int]]:
        """The steps that the text has a line for, and those lines."""
        steps: list[int] = []
        lines: list[int] = []
        for number, line in enumerate(self.lines, 1):
            if (match := _NUMBERED.match(line)) is not None and (not steps or int(match[1]) > steps[-1]):
                steps.append(int(match[1]))
                lines.append(number)
        return steps, lines

    def document_line(self, spot: int) -> int:
        """The line of the trace's text (1-based) that a step is shown at."""
        if self.walk is None:
            return super().document_line(spot)
        steps, lines = self._written
        at = bisect.bisect_right(steps, spot) - 1
        return lines[at] if at >= 0 else 1

    def spot_at(self, line: int) -> int:
        """The first step that is shown at a line of the trace's text or after it."""
        if self.walk is None:
            return super().spot_at(line)
        steps, lines = self._written
        at = bisect.bisect_left(lines, line)
        step = steps[at] if at < len(steps) else len(self.walk) - 1
        return min(step, len(self.walk) - 1)

    # --- instructions -------------------------------------------------------------------------------------------------

    @cached_property
    def _positions(self) -> tuple[list[Code], list[dict[int, int]]]:
        """The name of each code object, and from offsets to positions in its listing."""
        assert self.walk is not None
        codes = self.walk.codes()
        listings = [self.walk.listing(number) for number in range(len(codes))]
        return codes, [{each.offset: at for at, each in enumerate(listing)} for listing in listings]

    def instruction_of(self, step: int) -> tuple[Code, int] | None:
        """The code object of a step, and which of its instructions the step ran."""
        if self.walk is None:
            return None
        codes, positions = self._positions
        code = self.walk.code_of(step)
        at = positions[code].get(self.walk.instruction(step).offset)
        return None if at is None else (codes[code], at)

    @cached_property
    def by_instruction(self) -> Mapping[tuple[Code, int], Sequence[int]]:
        """The steps that ran each instruction."""
        found: dict[tuple[Code, int], list[int]] = {}
        for step in range(len(self.walk) if self.walk is not None else 0):
            if (at := self.instruction_of(step)) is not None:
                found.setdefault(at, []).append(step)
        return found

    # --- how steps ended ----------------------------------------------------------------------------------------------

    @cached_property
    def findings_at(self) -> Mapping[int, Finding]:
        """The steps that findings of the compile are about."""
        found: dict[int, Finding] = {}
        for step, outcome in self.walk.outcomes() if self.walk is not None else ():
            if 0 <= step < len(self.spots) and (finding := self._finding_of(step, outcome)) is not None:
                found[step] = finding
        return found

    def _finding_of(self, step: int, outcome: Outcome) -> Finding | None:
        """The finding with the outcome's code that lies where Dynamo was; else with either.

        A finding of a compiled function of a library lies at the user's call of it, where no step is.
        """
        fitting = [each for each in self._findings if outcome.kind in kind_of(each.kind).explains_steps]
        if not fitting:
            return None
        lines = {(real(origin.file), origin.line) for origin in self.origins(step)}
        here = [each for each in fitting if any(place in lines for place in _lines_of(each))]
        coded = [each for each in fitting if each.code and each.code in outcome.text.split()]
        both = [each for each in here if each in coded]
        alone = coded if len(coded) == 1 else []
        return next(iter(both or here or alone), None)


def _lines_of(finding: Finding) -> Iterator[tuple[str, int]]:
    """Files and lines that a finding names: its own, and those that it came by."""
    for file, where in ((finding.file, finding.range), *((each.file, each.range) for each in finding.related)):
        last = min(where.end.line, where.start.line + _MOST_LINES)
        yield from ((real(file), line) for line in range(where.start.line, last + 1))
