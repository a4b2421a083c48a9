"""Requests that move a thread: steps, continue, goto, and back again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from irscope.protocol import Origin

from irscope_server.dap.base.sections import Section, real
from irscope_server.dap.engine.breakpoints import Stop
from irscope_server.dap.engine.recording import PlaceInRun
from irscope_server.dap.engine.walking import Granularity, Step
from irscope_server.dap.protocol.session import Session, State
from irscope_server.dap.protocol.wire import Arguments, Body, NotNow, WrongMessage
from irscope_server.dap.trace.traces import TraceSection

_STOPPED = frozenset({State.STOPPED})
_LIVE = frozenset({State.RUNNING, State.STOPPED})

_MOST_TARGETS = 100
_MOST_KEPT = 10_000


class MovingRequests:
    """Every move answers first and tells where it led by a ``stopped`` event."""

    allowed: ClassVar[Mapping[str, frozenset[State]]] = {
        "continue": _STOPPED,
        "reverseContinue": _STOPPED,
        "next": _STOPPED,
        "stepBack": _STOPPED,
        "stepIn": _STOPPED,
        "stepOut": _STOPPED,
        "stepInTargets": _STOPPED,
        "restartFrame": _STOPPED,
        "gotoTargets": _STOPPED,
        "goto": _STOPPED,
        "pause": _LIVE,
    }

    def __init__(self, session: Session) -> None:
        self._session = session
        self._targets: dict[int, PlaceInRun] = {}
        self._last_target = 0

    # --- searching ----------------------------------------------------------------------------------------------------

    def continue_request(self, arguments: Arguments) -> Body:
        """The thread, and those that follow it, go on to the next breakpoint or the end; from the end the session ends."""
        return self._search(arguments, forward=True)

    def reverseContinue_request(self, arguments: Arguments) -> Body:
        """The thread, and those before it, go back to the last breakpoint, else to the beginning."""
        return self._search(arguments, forward=False)

    def _search(self, arguments: Arguments, *, forward: bool) -> Body:
        compile, single = self._session.compile_of(arguments), arguments.flag("singleThread")
        self._session.afterwards(lambda: self.go(compile, forward=forward, single=single))
        return {"allThreadsContinued": not single}

    def go(self, compile: int, *, forward: bool = True, single: bool = False, entry: Stop | None = None) -> None:
        """Runs a thread, and those after it, to the next stop, or to the end of the recording.

        Standing at the end already, going on ends the session.

        Args:
            entry: At the beginning of a session: where to stop if nothing else does; the beginning counts, too.
        """
        session = self._session
        session.catch_up()
        here = session.here()
        start, interrupted = here.walker.place(compile), session.interrupted.is_set
        stop = here.stops.search(
            start, forward=forward, single=single, interrupted=interrupted, from_stage=entry is not None
        )
        stop = stop or entry
        session.interrupted.clear()
        if stop is None:
            last = len(here.recording.tracks) - 1
            ending = start.compile if single else last if forward else 0
            what = "compile" if single else "run"
            so_far = " so far: the script still runs" if session.growing else ""
            stop = (
                Stop(here.walker.last(ending), "end", f"The end of the {what}{so_far}") if forward
                else Stop(PlaceInRun(ending, 0, 0), "entry", f"The beginning of the {what}")
            )  # fmt: skip
            if forward and stop.place == start and ending == last and not session.growing:
                session.end()
                return
        for passed in range(start.compile, stop.place.compile, 1 if forward else -1):
            here.walker.put(here.walker.last(passed) if forward else PlaceInRun(passed, 0, 0))
        here.walker.put(stop.place)
        session.stopped(stop)

    def pause_request(self, arguments: Arguments) -> None:
        """A search ends where it is, and tells so itself.  Where nothing runs there is nothing to do: what is stopped does
        not stop again.  Raises NotNow while the script runs."""
        session = self._session
        session.interrupted.clear()
        if session.state is State.RUNNING:
            raise NotNow("The script is running: it can be stopped (terminate), but not paused.")
        session.compile_of(arguments)

    # --- steps --------------------------------------------------------------------------------------------------------

    def next_request(self, arguments: Arguments) -> None:
        """One step forward, by the granularity that the client asks for."""
        by = self._granularity(arguments)
        self._step(arguments, lambda compile: self._session.here().walker.over(compile, by))

    def stepBack_request(self, arguments: Arguments) -> None:
        """One step back, by the granularity that the client asks for."""
        by = self._granularity(arguments)
        self._step(arguments, lambda compile: self._session.here().walker.back(compile, by))

    def stepOut_request(self, arguments: Arguments) -> None:
        """A step out to what the place came from; to the function where that is not known."""
        self._granularity(arguments)
        self._step(arguments, lambda compile: self._session.here().walker.out(compile))

    def stepIn_request(self, arguments: Arguments) -> None:
        """A step into what the place became, or to the target that the client chose."""
        by = self._granularity(arguments)
        number = arguments.integer("targetId", 0)
        target = self._target(number) if number else None
        compile = self._session.compile_of(arguments)
        if target is not None and target not in self._session.here().walker.targets(compile):
            raise WrongMessage(f"Target {number} does not belong to the current location of this thread.")
        self._step(
            arguments, lambda compile: self._session.here().walker.into(compile, target, by), fresh=target is None
        )

    def _granularity(self, arguments: Arguments) -> Granularity:
        word = arguments.text("granularity", "statement")
        try:
            return Granularity(word)
        except ValueError:
            message = f"'granularity' must be statement, line or instruction, not {word[:40]!r}."
            raise WrongMessage(message) from None

    def _step(self, arguments: Arguments, step: Callable[[int], Step], *, fresh: bool = True) -> None:
        compile = self._session.compile_of(arguments)
        arguments.flag("singleThread")

        def move() -> None:
            if fresh:
                self._session.catch_up()
            moved = step(compile)
            more = " The script still runs." if moved.note and self._session.growing else ""
            self._session.stopped(Stop(moved.place, "step", f"{moved.note}{more}"))

        self._session.afterwards(move)

    def stepInTargets_request(self, arguments: Arguments) -> Body:
        """The places that the top frame's place became; none for other frames."""
        compile, level = self._session.frame(arguments.integer("frameId"))
        here = self._session.here()
        if level.place != here.walker.place(compile):
            return {"targets": []}  # stepping in begins at the top of the stack
        return {"targets": [self._described(place) for place in here.walker.targets(compile)[:_MOST_TARGETS]]}

    def _described(self, place: PlaceInRun) -> Body:
        here = self._session.here()
        section, spot = here.recording.section(place), here.recording.spot(place)
        self._last_target += 1
        if len(self._targets) > _MOST_KEPT:
            self._targets.clear()
        self._targets[self._last_target] = place
        label = f"{section.title}: {spot.name or f'line {spot.line}'}"
        if isinstance(section, TraceSection) and section.walk is not None:
            label = f"{section.title}: {section.walk.place_of(place.spot)[1]}, line {spot.line}"
        return {"id": self._last_target, "label": label, "line": spot.line - 1 + self._session.client.first_line}

    def _target(self, number: int) -> PlaceInRun:
        if number not in self._targets:
            raise WrongMessage(f"Unknown target: {number}.")
        return self._targets[number]

    # --- jumps --------------------------------------------------------------------------------------------------------

    def restartFrame_request(self, arguments: Arguments) -> None:
        """The thread goes to the beginning of the frame's stage, or of its function in a symbolic trace."""
        _, level = self._session.frame(arguments.integer("frameId"))
        if level.place is None:
            raise NotNow("This frame is the line that called the frame above it: it has no stage to restart.")
        place = level.place

        def move() -> None:
            step = self._session.here().walker.restart(place)
            self._session.stopped(Stop(step.place, "restart", "The beginning of the stage"))

        self._session.afterwards(move)

    def gotoTargets_request(self, arguments: Arguments) -> Body:
        """The places of all threads that belong to a line, to choose one to go to."""
        here = self._session.here()
        line = arguments.integer("line") + 1 - self._session.client.first_line
        found = here.sources.find(arguments.object("source"))
        places: list[PlaceInRun] = []
        for number, track in enumerate(here.recording.tracks):
            if isinstance(found, Section):
                section = track.number_of(found.stage.id)
                if section is not None:
                    places.append(PlaceInRun(number, section, track.sections[section].spot_at(line)))
            else:
                places.extend(PlaceInRun(number, 0, spot) for spot in track.source.spots_in(found, line)[:1])
                here_first = Origin(real(found), line)
                for section, trace, _ in track.traces():
                    places.extend(PlaceInRun(number, section, step) for step in trace.by_origin.get(here_first, ())[:1])
        targets = []
        for place in places[:_MOST_TARGETS]:
            body = self._described(place)
            body["label"] = f"{here.recording.tracks[place.compile].name}: {body['label']}"
            targets.append(body)
        return {"targets": targets}

    def goto_request(self, arguments: Arguments) -> None:
        """The thread goes to a target from `gotoTargets_request`."""
        self._session.compile_of(arguments)
        place = self._target(arguments.integer("targetId"))

        def move() -> None:
            self._session.here().walker.put(place)
            self._session.stopped(Stop(place, "goto"))

        self._session.afterwards(move)
