"""Breakpoints, and the search for the next place at which one of them stops.

The search goes from mark to mark: for each stage it is worked out once which spots a breakpoint marks, so that a run of
20,000 nodes is not looked at node by node.
"""

from __future__ import annotations

import bisect
import fnmatch
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.findings.kinds.divergence import KIND
from irscope.findings.kinds.kernel_check import KIND as CHECKED
from irscope.ir.graphs import GraphNode
from irscope.protocol import Finding
from irscope.values.expressions import NoValueHere, check, evaluate, hits_wanted, interpolate
from irscope.values.facts import BadExpression

from irscope_server.dap.base.sections import Section
from irscope_server.dap.engine.names import Names
from irscope_server.dap.engine.programs import Programs, ProgramSection
from irscope_server.dap.engine.recording import PlaceInRun, Recording
from irscope_server.dap.engine.values import RunValues
from irscope_server.dap.trace.traces import Code, TraceSection

MOST_LOGGED = 1000
"""Lines that log points write in one search; a log point on a line of twenty thousand nodes is a mistake."""


@dataclass
class Breakpoint:
    """What a client set, of whatever kind.

    Args:
        file, line: For a line of the user's.
        stage, spot: For a line or an instruction of a stage.
        within: For an expression of a line of the user's: tells the spots of a stage that come from it.
        instruction: For an instruction of the user's bytecode: its code object and which one it is.
        function: For the name of an operation, a pass, a kernel or a function of the user's that was traced; ``*`` and
            ``?`` mean what they mean in file names.
        reason: The protocol's word for a stop at it.
    """

    id: int
    reason: str
    file: str = ""
    line: int = 0
    stage: str = ""
    spot: int = -1
    instruction: tuple[Code, int] | None = None
    function: str = ""
    condition: str = ""
    log: str = ""
    hit_condition: str = ""
    hits: int = 0
    access: tuple[str, int, tuple[str, ...]] | None = None
    """For an element of a kernel's memory: the parameter, its index, and ``read``, ``write`` or both."""
    program: tuple[int, ...] | None = None
    """For the beginning of a program of the kernel that `stage` is."""
    within: Callable[[Section], Sequence[int]] | None = None
    wrong: str = ""
    """Why it can never stop; empty if it can."""

    def __post_init__(self) -> None:
        self._wanted: Callable[[int], bool] = lambda hits: True
        try:
            if self.condition:
                check(self.condition)
            if self.hit_condition:
                self._wanted = hits_wanted(self.hit_condition)
        except BadExpression as error:
            self.wrong = str(error)

    def wants(self, hits: int) -> bool:
        """Whether to stop at the hit of this number (1 for the first)."""
        return self._wanted(hits)

    def marks(self, section: Section) -> Sequence[int]:
        """The spots of a stage at which it may stop."""
        if self.wrong:
            return ()
        if self.function:
            return self._called(section)
        if self.instruction is not None:
            return section.by_instruction.get(self.instruction, ()) if isinstance(section, TraceSection) else ()
        if self.access is not None or self.program is not None:
            if not isinstance(section, ProgramSection) or section.kernel.stage.id != self.stage:
                return ()
            return section.accessing(*self.access) if self.access is not None else (0,) if section.program == self.program else ()  # fmt: skip
        if self.stage:
            return section.marked(self.stage, self.spot)
        if self.within is not None:
            return self.within(section)
        return section.stops_of_line(self.file, self.line)

    def _called(self, section: Section) -> Sequence[int]:
        passed = section.stage.passed
        if passed and fnmatch.fnmatchcase(passed, self.function):
            return (first_change(None, section) or 0,)
        if not any(sign in self.function for sign in "*?["):
            return section.by_call.get(self.function, ())
        found = {
            spot
            for name, spots in section.by_call.items()
            if fnmatch.fnmatchcase(name, self.function)
            for spot in spots
        }
        return sorted(found)


@dataclass(frozen=True)
class Stop:
    """A place at which a thread stops, and why."""

    place: PlaceInRun
    reason: str
    description: str = ""
    breakpoints: tuple[int, ...] = ()
    finding: Finding | None = None


@dataclass
class Stops:
    """Everything that can stop a thread.

    Args:
        kinds: Kinds of findings to stop at, with their conditions (empty: always).
        each_stage, each_pass: Whether to stop where a stage begins, and at the first node that a pass changed.
    """

    recording: Recording
    names: Names
    log: Callable[[str], None]
    breakpoints: list[Breakpoint] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    each_stage: bool = False
    each_pass: bool = False
    values: RunValues | None = None
    programs: Programs | None = None

    def __post_init__(self) -> None:
        self._marks: dict[tuple[int, int], dict[int, list[Breakpoint]]] = {}
        self._logged = 0
        self._complained: set[tuple[str, str]] = set()

    def changed(self) -> None:
        """Has to be called after breakpoints were set."""
        self._marks.clear()

    def search(
        self,
        start: PlaceInRun,
        *,
        forward: bool,
        single: bool,
        interrupted: Callable[[], bool],
        from_stage: bool = False,
    ) -> Stop | None:
        """The next stop after a place, or before it; None if the run ends or begins without one.

        Args:
            single: Only the place's own compile is searched.
            interrupted: Asked now and then; if it says so, the search stops at the place that it has come to.
            from_stage: Begin where the stage of the place begins, and not after the place.
        """
        self._logged = 0
        last = start
        for compile, number in self._route(start, forward, single):
            if interrupted():
                return Stop(last, "pause", "Paused")
            last = PlaceInRun(compile, number, 0)
            here = start.spot if (compile, number) == (start.compile, start.section) and not from_stage else None
            for spot in self._ahead(compile, number, here, forward):
                if (stop := self._stop_at(PlaceInRun(compile, number, spot))) is not None:
                    return stop
        return None

    def _route(self, start: PlaceInRun, forward: bool, single: bool) -> Iterator[tuple[int, int]]:
        """The stages that are searched, in order."""
        tracks = self.recording.tracks
        compiles: Sequence[int] = range(start.compile, len(tracks)) if forward else range(start.compile, -1, -1)
        program = self.recording.section(start)
        first = program.number if isinstance(program, ProgramSection) else start.section
        for compile in compiles[:1] if single else compiles:
            numbers = range(len(tracks[compile].sections))
            if compile == start.compile:
                numbers = numbers[first:] if forward else numbers[: first + 1]
            for number in numbers if forward else reversed(numbers):
                yield from ((compile, each) for each in self._with_programs(compile, number, start, forward))

    def _with_programs(self, compile: int, number: int, start: PlaceInRun, forward: bool) -> Sequence[int]:
        """A stage, and the programs of a kernel after it, from the place on where that is in one of them."""
        found = [number]
        if forward or (compile, number) != (start.compile, start.section):
            found += self._programs_of(compile, number)
        if compile == start.compile and start.section in found:
            at = found.index(start.section)
            found = found[at:] if forward else found[: at + 1]
        return found if forward else found[::-1]

    def _programs_of(self, compile: int, number: int) -> list[int]:
        """The programs of a kernel in which something may stop; the kernel is run to find them."""
        place = PlaceInRun(compile, number, 0)
        if self.programs is None or not self.programs.can_enter(place):
            return []
        section = self.recording.section(place)
        wanted: list[dict[str, Any]] = []
        for each in self.breakpoints:
            if each.stage != section.stage.id or each.wrong:
                continue
            if each.program is not None:
                self._try(functools.partial(self.programs.enter, place, each.program), section)
            elif each.access is not None:
                wanted.append({"argument": each.access[0], "index": each.access[1]})
            elif each.condition and 0 <= each.spot < len(section.spots):
                wanted.append({"line": section.spots[each.spot].line, "condition": each.condition})
        if wanted or CHECKED.id in self.kinds:
            self._try(functools.partial(self.programs.find, place, wanted), section)
        return self.programs.of_kernel(place)

    def _try(self, run: Callable[[], object], section: Section) -> None:
        """Runs a kernel; why it cannot be run is told once."""
        try:
            run()
        except LookupError as error:
            if (section.stage.id, "") not in self._complained:
                self._complained.add((section.stage.id, ""))
                self.log(f"{section.title}: {error.args[0] if error.args else error}")

    def _ahead(self, compile: int, number: int, here: int | None, forward: bool) -> Sequence[int]:
        spots = sorted({*self._marks_of(compile, number), *self._others(compile, number)})
        if forward:
            return spots if here is None else spots[bisect.bisect_right(spots, here) :]
        return (spots if here is None else spots[: bisect.bisect_left(spots, here)])[::-1]

    def _marks_of(self, compile: int, number: int) -> dict[int, list[Breakpoint]]:
        known = self._marks.get((compile, number))
        if known is None:
            known = {}
            if self.breakpoints:
                section = self.recording.tracks[compile].section(number)
                for breakpoint in self.breakpoints:
                    for spot in breakpoint.marks(section):
                        known.setdefault(spot, []).append(breakpoint)
            self._marks[compile, number] = known
        return known

    def _others(self, compile: int, number: int) -> Iterator[int]:
        track = self.recording.tracks[compile]
        if isinstance(section := track.section(number), ProgramSection):
            yield from section.breaks
            return
        if self.each_stage:
            yield 0
        if self.each_pass and number > 0 and self._passed(compile, number) is not None:
            yield self._passed(compile, number) or 0
        if number > 0 and KIND.id in self.kinds and self.values is not None:
            yield from (each.place.spot for key, each in self.values.divergent.items() if key == (compile, number))
        if self.kinds and any(finding.kind in self.kinds for finding in track.source.findings):
            yield from track.stops_at.get(number, ())

    def _passed(self, compile: int, number: int) -> int | None:
        """The first spot of a graph that differs from the graph before it."""
        sections = self.recording.tracks[compile].sections
        section = sections[number]
        if not section.nodes:
            return None
        backward = "backward" in section.stage.id
        before = next(
            (
                each
                for each in reversed(sections[1:number])
                if each.nodes and ("backward" in each.stage.id) in (backward, False)
            ),
            None,
        )
        return first_change(before, section)

    def _stop_at(self, place: PlaceInRun) -> Stop | None:
        finding = next((finding for finding in self._findings_at(place) if self._excepted(finding, place)), None)
        if finding is not None:
            return Stop(place, "exception", f"Finding: {finding.kind}", finding=finding)
        hit = [
            each for each in self._marks_of(place.compile, place.section).get(place.spot, ()) if self._hits(each, place)
        ]
        if hit:
            return Stop(place, hit[0].reason, "", tuple(each.id for each in hit))
        section = self.recording.section(place)
        if isinstance(section, ProgramSection):
            wrong = section.breaks.get(place.spot)
            return Stop(place, "exception", wrong) if wrong else None
        if self.each_pass and place.section > 0 and self._passed(place.compile, place.section) == place.spot:
            by = f"The pass {section.stage.passed}" if section.stage.passed else "What led to this stage"
            return Stop(place, "pass", f"{by} changed the graph here")
        if self.each_stage and place.spot == 0:
            return Stop(place, "stage", f"The stage {section.title} begins")
        return None

    def _findings_at(self, place: PlaceInRun) -> tuple[Finding, ...]:
        stops = self.recording.tracks[place.compile].stops_at if self.kinds else {}
        findings = tuple(stops.get(place.section, {}).get(place.spot, ()))
        if self.values is not None and KIND.id in self.kinds:  # a divergence stops at its node, not at the user's line
            divergent = self.values.divergence_at(place)
            findings = tuple(finding for finding in findings if not self.values.stops_elsewhere(place, finding))
            findings += (divergent.finding,) if divergent is not None else ()
        return findings

    def _excepted(self, finding: Finding, place: PlaceInRun) -> bool:
        if finding.kind not in self.kinds:
            return False
        condition = self.kinds[finding.kind]
        return not condition or self._is_true(
            condition, self.names.lookup(place, finding), f"The filter {finding.kind}"
        )

    def _hits(self, breakpoint: Breakpoint, place: PlaceInRun) -> bool:
        lookup = self.names.lookup(place)
        if breakpoint.condition and not self._is_true(breakpoint.condition, lookup, f"Breakpoint {breakpoint.id}"):
            return False
        breakpoint.hits += 1
        if not breakpoint.wants(breakpoint.hits):
            return False
        if breakpoint.log:
            self._write(interpolate(breakpoint.log, lookup))
            return False
        return True

    def _is_true(self, condition: str, lookup: Callable[[str], Any], who: str) -> bool:
        """A condition on what a place does not have (a node's dtype, at a line of a kernel) is not met.

        Any other that has no value is not met either, and the user is told about it once.
        """
        try:
            return bool(evaluate(condition, lookup))
        except NoValueHere:
            return False
        except BadExpression as error:
            if (who, condition) not in self._complained:
                self._complained.add((who, condition))
                self.log(f"{who}: its condition has no value: {error}.")
            return False

    def _write(self, text: str) -> None:
        self._logged += 1
        if self._logged <= MOST_LOGGED:
            self.log(text)
        elif self._logged == MOST_LOGGED + 1:
            self.log(f"More than {MOST_LOGGED} lines were logged; the rest of this search is silent.")


def first_change(before: Section | None, section: Section) -> int | None:
    """The first spot of a graph that is not the same in the graph before it; None if both are the same.

    A version that a pass made knows itself what changed.
    """
    kept = section.changed_names
    if kept:
        return min((section.by_name[name] for name in kept if name in section.by_name), default=0)
    if before is None or section.stage.passed:
        return 0 if section.stage.passed else None
    pairs = itertools.zip_longest(section.nodes.values(), before.nodes.values())
    for number, (one, other) in enumerate(pairs):
        if one is None or other is None or _facts(one) != _facts(other):
            return min(number, len(section.spots) - 1)
    return None


def _facts(node: GraphNode) -> tuple[object, ...]:
    return node.name, node.op, node.target, node.detail, node.inputs
