"""Where the threads are, how they step, and the call stack of a place.

Stepping over goes along the stages as the pipeline made them; stepping in and out goes along provenance.  Every step
is a pure look-up in the recording, so it can be taken back by the opposite step.  In a symbolic trace they go along
Dynamo's walk, as in a debugger for Python.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irscope.protocol import Origin
from irscope.usercode.user_files import is_package_file, is_user_file

from irscope_server.dap.base.sections import Section, SourceSection, Spot, real
from irscope_server.dap.engine import source_steps
from irscope_server.dap.engine.links import Links
from irscope_server.dap.engine.programs import FIRST_THREAD, Programs, ProgramSection
from irscope_server.dap.engine.recording import PlaceInRun, Recording
from irscope_server.dap.trace import steps as tracesteps
from irscope_server.dap.trace.traces import TraceSection


@dataclass(frozen=True)
class Level:
    """A frame of the call stack: a spot of a stage, or a line of the user's that called it (which is not a place)."""

    section: Section
    spot: Spot
    place: PlaceInRun | None
    called: bool = False
    """In a symbolic trace: it called what is above it."""


@dataclass(frozen=True)
class Step:
    """Where a step led, and a sentence where it could not go where it was meant to."""

    place: PlaceInRun
    note: str = ""


class Granularity(enum.Enum):
    """How far a step goes: the protocol's words."""

    STATEMENT = "statement"
    """A node, a call or a line of a stage; in a symbolic trace a line of the user's."""
    LINE = "line"
    """All that comes from one line of the user's."""
    INSTRUCTION = "instruction"
    """In a symbolic trace a single instruction; else as `STATEMENT`."""


class Walker:
    """The places of all threads.  A thread is named by the number of its compile, or by that of a program of a kernel."""

    def __init__(self, recording: Recording, links: Links) -> None:
        self._recording, self._links = recording, links
        self._places: dict[int, PlaceInRun] = {}
        self._came_from: dict[PlaceInRun, PlaceInRun] = {}
        self.programs = Programs(recording)
        self.just_my_code = True
        """Whether steps go past frames of libraries."""

    def place(self, thread: int) -> PlaceInRun:
        """The place of a thread; of one that is gone the beginning of the run."""
        if thread in self._places:
            return self._places[thread]
        program = thread - FIRST_THREAD
        if 0 <= program < len(self.programs.entered):
            return self.programs.entered[program]
        return PlaceInRun(thread if thread < len(self._recording.tracks) else 0, 0, 0)

    def put(self, place: PlaceInRun) -> None:
        """Moves the thread of the place there, by whatever way."""
        self._set(place)
        self._came_from.clear()

    def _set(self, place: PlaceInRun) -> None:
        self._places[self.programs.thread_of(place)] = place

    # --- steps --------------------------------------------------------------------------------------------------------

    def over(self, thread: int, by: Granularity = Granularity.STATEMENT) -> Step:
        """The next spot of the stage, then the next stage."""
        place = self.place(thread)
        compile = place.compile
        if (trace := self._trace(place)) is not None:
            step = self._past_libraries(
                trace, place.spot, lambda at: tracesteps.over(trace, at, by_line=by is not Granularity.INSTRUCTION)
            )
            behind = self._behind(place) if step is None else PlaceInRun(compile, place.section, step)
            anew = self._trace(behind) if behind is not None and step is None else None
            note = "This compile ends here." if anew is None else f"{anew.title}: Dynamo restarts"
            return self._arrive(behind, place, note, always=anew is not None)
        if (program := self._program(place)) is not None:
            return self._in_program(program, place, place.spot + 1)
        if (source := self._source(place)) is not None:
            spot = source_steps.over(source, place.spot, self.just_my_code)
            following = self._behind(place) if spot is None else PlaceInRun(compile, place.section, spot)
            return self._arrive(following, place, "This compile ends here.")
        following = self.after(place)
        if by is Granularity.LINE:
            start = self._line_of(place)
            while (
                following is not None
                and start is not None
                and following.section == place.section
                and self._line_of(following) == start
            ):
                following = self.after(following)
        return self._arrive(following, place, "This compile ends here.")

    def _trace(self, place: PlaceInRun) -> TraceSection | None:
        """The symbolic trace that a place is in, if it can be walked."""
        section = self._recording.section(place)
        return section if isinstance(section, TraceSection) and section.walk is not None else None

    def back(self, thread: int, by: Granularity = Granularity.STATEMENT) -> Step:
        """The opposite of `over`."""
        place = self.place(thread)
        compile = place.compile
        if (trace := self._trace(place)) is not None:
            step = self._past_libraries(
                trace, place.spot, lambda at: tracesteps.back(trace, at, by_line=by is not Granularity.INSTRUCTION)
            )
            ahead = self._ahead(place) if step is None else PlaceInRun(compile, place.section, step)
            return self._arrive(ahead, place, "This compile begins here.")
        if (program := self._program(place)) is not None:
            return self._in_program(program, place, place.spot - 1)
        if (source := self._source(place)) is not None:
            spot = source_steps.back(source, place.spot, self.just_my_code)
            earlier = self._ahead(place) if spot is None else PlaceInRun(compile, place.section, spot)
            return self._arrive(earlier, place, "This compile begins here.")
        before = self.before(place)
        if by is Granularity.LINE:
            while before is not None and before.section == place.section:
                earlier = self.before(before)
                line = self._line_of(before)
                if (
                    earlier is None
                    or line is None
                    or earlier.section != before.section
                    or self._line_of(earlier) != line
                ):
                    break
                before = earlier
        return self._arrive(before, place, "This compile begins here.")

    def into(self, thread: int, target: PlaceInRun | None = None, by: Granularity = Granularity.STATEMENT) -> Step:
        """Down to what the spot became; to the next stage where that is not known.

        In a symbolic trace into the function that is called and inlined, else down to the node that is made.
        """
        place = self.place(thread)
        compile = place.compile
        if target is None and self._program(place) is not None:
            return self.over(thread, by)
        if target is None and self.programs.can_enter(place):
            return self._enter(place)
        below = target or self._past_library_call(place, next(iter(self.targets(thread, by)), None))
        if below is not None and below.section == place.section:
            return self._arrive(below, place, "")
        if below is None and self._trace(place) is not None:
            return self.over(thread, by)
        if below is not None:
            self._set(below)
            if not self._recording.section(place).stage.passed:
                self._came_from[below] = place
            return Step(below)
        if self._leads_on(place):
            return self._arrive(PlaceInRun(compile, place.section + 1, 0), place, "")
        why = self._links.fate(place)
        step = self.over(thread)
        return Step(
            step.place,
            step.note or f"It has no counterpart in a later stage{f' ({why})' if why else ''}: stepped over.",
        )

    def _program(self, place: PlaceInRun) -> ProgramSection | None:
        """The program of a kernel that a place is in."""
        section = self._recording.section(place)
        return section if isinstance(section, ProgramSection) else None

    def _in_program(self, program: ProgramSection, place: PlaceInRun, spot: int) -> Step:
        if 0 <= spot < len(program.spots):
            return self._arrive(PlaceInRun(place.compile, place.section, spot), place, "")
        return Step(place, f"The program {'begins' if spot < 0 else 'ends'} here: step out to the kernel.")

    def _enter(self, place: PlaceInRun) -> Step:
        """Into a program of the kernel; where that cannot be run to what lies below the line, as without it."""
        try:
            inside = self.programs.enter(place)
        except LookupError as error:
            below = next(iter(self.targets(place.compile)), None)
            return self._arrive(
                below or self.after(place), place, str(error.args[0] if error.args else error), always=True
            )
        self._set(inside)
        self._came_from[inside] = place
        return Step(inside)

    def _source(self, place: PlaceInRun) -> SourceSection | None:
        """The user's own code, where a place is in it."""
        section = self._recording.section(place)
        return section if isinstance(section, SourceSection) else None

    def _past_libraries(self, trace: TraceSection, at: int, step: Callable[[int], int | None]) -> int | None:
        """Steps until it is in the user's code again; in a library, where the user went on purpose, once."""
        found = step(at)
        if self.just_my_code and is_user_file(trace.spots[at].file):
            while found is not None and not is_user_file(trace.spots[found].file):
                found = step(found)
        return found

    def _past_library_call(self, place: PlaceInRun, below: PlaceInRun | None) -> PlaceInRun | None:
        """In place of a frame of a library: what it calls of the user's, None if that is nothing; from another stage the
        user's frame that called it."""
        trace = None if below is None else self._trace(below)
        if not self.just_my_code or trace is None or below is None or is_user_file(trace.spots[below.spot].file):
            return below
        if below.section != place.section:
            spots = iter(trace.chain(below.spot))
        elif is_user_file(trace.spots[place.spot].file):
            spots = iter(range(below.spot, len(trace.spots)))
        else:
            return below  # who is in a library already goes on there
        mine = next((spot for spot in spots if is_user_file(trace.spots[spot].file)), None)
        walk = trace.walk
        if below.section == place.section and mine is not None and walk is not None:
            if walk.frame_of(mine) == walk.frame_of(place.spot):
                return None  # the library called no code of the user's
        return below if mine is None else PlaceInRun(below.compile, below.section, mine)

    def _leads_on(self, place: PlaceInRun) -> bool:
        """Whether the next stage lies below a spot that has no provenance."""
        sections = self._recording.tracks[place.compile].sections
        if place.section + 1 >= len(sections):
            return False
        known = self._recording.spot(place).element is not None
        return not known or sections[place.section + 1].stage.id.startswith(f"{sections[place.section].stage.id}/")

    def out(self, thread: int) -> Step:
        """Up to what the spot came from; to the function where that is not known."""
        place = self.place(thread)
        compile = place.compile
        trace = self._trace(place)
        if trace is not None and place not in self._came_from:
            if (left := tracesteps.out(trace, place.spot)) is not None:
                return self._arrive(PlaceInRun(compile, place.section, left[0]), place, left[1], always=True)
        above = self._parent(place)
        if above is None and place.section > 0:
            above = PlaceInRun(compile, 0, self._source_spot(place) or 0)
        if above is None:
            return Step(place, "This is your own source line: no stage comes before it.")
        self._set(above)
        return Step(above)

    def targets(self, thread: int, by: Granularity = Granularity.STATEMENT) -> tuple[PlaceInRun, ...]:
        """What a step in can lead to."""
        place = self.place(thread)
        compile = place.compile
        if (trace := self._trace(place)) is None:
            known = self.programs.of_kernel(place) if self.programs.can_enter(place) else ()
            return (*(PlaceInRun(compile, number, 0) for number in known), *self._links.children(place))
        by_line = by is not Granularity.INSTRUCTION
        called = [
            PlaceInRun(compile, place.section, step) for step in tracesteps.calls(trace, place.spot, by_line=by_line)
        ]
        made = self._links.nodes_of(place, tracesteps.makers(trace, place.spot, by_line=by_line))
        return (*called, *made)

    def restart(self, place: PlaceInRun) -> Step:
        """To the beginning of a stage, or of a function in a symbolic trace."""
        trace = self._trace(place)
        first = PlaceInRun(place.compile, place.section, 0 if trace is None else tracesteps.entry(trace, place.spot))
        self.put(first)
        return Step(first)

    def _arrive(self, place: PlaceInRun | None, otherwise: PlaceInRun, note: str, *, always: bool = False) -> Step:
        self.put(place or otherwise)
        return Step(place or otherwise, "" if place is not None and not always else note)

    # --- order --------------------------------------------------------------------------------------------------------

    def after(self, place: PlaceInRun) -> PlaceInRun | None:
        """The next place of a compile; None after its last one."""
        sections = self._recording.tracks[place.compile].sections
        if place.spot + 1 < len(sections[place.section].spots):
            return PlaceInRun(place.compile, place.section, place.spot + 1)
        return self._behind(place)

    def _behind(self, place: PlaceInRun) -> PlaceInRun | None:
        """Where the next stage begins."""
        sections = self._recording.tracks[place.compile].sections
        return PlaceInRun(place.compile, place.section + 1, 0) if place.section + 1 < len(sections) else None

    def _ahead(self, place: PlaceInRun) -> PlaceInRun | None:
        """Where the stage before ends."""
        if place.section == 0:
            return None
        spots = self._recording.tracks[place.compile].sections[place.section - 1].spots
        return PlaceInRun(place.compile, place.section - 1, len(spots) - 1)

    def before(self, place: PlaceInRun) -> PlaceInRun | None:
        """The place before it in a compile; None before its first one."""
        if place.spot > 0:
            return PlaceInRun(place.compile, place.section, place.spot - 1)
        return self._ahead(place)

    def last(self, compile: int) -> PlaceInRun:
        """The last spot of the last stage of a compile."""
        sections = self._recording.tracks[compile].sections
        return PlaceInRun(compile, len(sections) - 1, len(sections[-1].spots) - 1)

    # --- the call stack -----------------------------------------------------------------------------------------------

    def stack(self, thread: int) -> list[Level]:
        """The place at hand, the same operation in each earlier stage, the user's line, and the lines that called it.

        Where there is a symbolic trace the last ones are the functions that Dynamo was in when it made the operation.
        """
        place: PlaceInRun | None = self.place(thread)
        compile = self.place(thread).compile
        levels: list[Level] = []
        lines: tuple[Origin, ...] = ()
        while place is not None and place.section > 0:
            if (trace := self._trace(place)) is not None:
                chain = [PlaceInRun(compile, place.section, step) for step in trace.chain(place.spot)]
                return levels + [Level(trace, self._recording.spot(each), each, each != place) for each in chain]
            section, spot = self._recording.section(place), self._recording.spot(place)
            levels.append(Level(section, spot, place))
            if isinstance(section, ProgramSection):  # its line in the kernel's text is the same
                place = self._node_of(place, section) or self._parent(self._text_of(place, section))
                continue
            lines = section.origins(place.spot) or lines  # those of the stage that is nearest to the user's code
            above = self._parent(place)
            if above is not None and above.section == 0:
                levels += self._beside(place)
            if above is not None and self._trace(above) is not None:
                # The way in may have begun at another instruction of the line.
                above = next((each for each in self._links.parents(place) if each.section == above.section), above)
            place = above
        return levels + self._user_lines(compile, place, lines)

    def _beside(self, place: PlaceInRun) -> list[Level]:
        """The instruction of the bytecode that is between a node and the user's line."""
        found = [each for each in self._links.parents(place) if each.section > 0][:1]
        return [Level(self._recording.section(each), self._recording.spot(each), each) for each in found]

    def _user_lines(self, compile: int, place: PlaceInRun | None, lines: Sequence[Origin]) -> list[Level]:
        """The line at hand, then those that called it, without torch's own; failing all the function."""
        source = self._recording.tracks[compile].source
        if place is None and lines and (spots := source.spots_in(lines[0].file, lines[0].line)):
            place = PlaceInRun(compile, 0, spots[0])
        if place is None and not lines:
            place = PlaceInRun(compile, 0, 0)
        levels = []
        if place is not None:
            levels.append(Level(source, self._recording.spot(place), place))
            lines = lines or self._traced_lines(compile, place)
        for line in lines:
            here = levels[-1].spot if levels else None
            is_shown = is_user_file(line.file) or is_package_file(line.file)
            if here is None or (is_shown and (real(line.file), line.line) != (real(here.file), here.line)):
                levels.append(Level(source, Spot(line.line, "", line.file), None))
        return levels

    def _traced_lines(self, compile: int, place: PlaceInRun) -> tuple[Origin, ...]:
        """A line of the user's and those that called it, as the node tells that it was traced into."""
        source = self._recording.tracks[compile].source
        if place.spot == 0 or source.graph is None or (spot := source.leads_to(place.spot)) is None:
            return ()
        return source.graph.origins(spot)

    def _parent(self, place: PlaceInRun) -> PlaceInRun | None:
        """The stage above always is before the one below, so going up comes to an end."""
        if (known := self._came_from.get(place)) is not None:
            return known
        if (program := self._program(place)) is not None:
            return self._text_of(place, program)
        return next((each for each in self._links.parents(place) if each.section < place.section), None)

    def _node_of(self, place: PlaceInRun, program: ProgramSection) -> PlaceInRun | None:
        """The node of the last graph that a statement computes; None if that is not known."""
        track = self._recording.tracks[place.compile]
        number = track.number_of(program.graph)
        if number is None:
            return None
        found = (track.section(number).by_name.get(name) for name in program.nodes_of(place.spot))
        return next((PlaceInRun(place.compile, number, spot) for spot in found if spot is not None), None)

    def _text_of(self, place: PlaceInRun, program: ProgramSection) -> PlaceInRun:
        """The line of the kernel's text that a statement is."""
        line = program.spots[place.spot].line
        return PlaceInRun(place.compile, program.number, program.kernel.spot_at(line))

    def _source_spot(self, place: PlaceInRun) -> int | None:
        """The spot of the user's code that a place comes from."""
        section = self._recording.section(place)
        source = self._recording.tracks[place.compile].source
        for origin in section.origins(place.spot) if self._recording.spot(place).name else ():
            if spots := source.spots_in(origin.file, origin.line):
                return spots[0]
        return None

    def _line_of(self, place: PlaceInRun) -> Origin | None:
        return next(iter(self._recording.section(place).origins(place.spot)), None)
