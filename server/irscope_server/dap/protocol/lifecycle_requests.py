"""Requests that begin and end a session: initialize, launch, attach, configurationDone, restart, terminate, disconnect."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from irscope.protocol import Outcome, OutcomeKind
from irscope.store.store import Store, StoreError
from irscope.vocabulary.visible import visible

from irscope_server.dap.engine.breakpoints import Stop
from irscope_server.dap.engine.recording import PlaceInRun, Recording
from irscope_server.dap.protocol.breakpoint_requests import FILTERS, BreakpointRequests
from irscope_server.dap.protocol.inspecting_requests import InspectingRequests
from irscope_server.dap.protocol.launching import Wanted, attach_of, launch_of
from irscope_server.dap.protocol.moving_requests import MovingRequests
from irscope_server.dap.protocol.rerunning import same_run, spec_of, values_are_there
from irscope_server.dap.protocol.running import Heard, ScriptRun
from irscope_server.dap.protocol.session import Client, Debuggee, Session, State
from irscope_server.dap.protocol.wire import Arguments, Body, NotNow, RequestFailed, WrongMessage

_EVERY = frozenset(State)
_LIVE = frozenset({State.READY, State.CONFIGURING, State.RUNNING, State.STOPPED})

_PROGRESS = "irscope-run"
_PROGRESS_SECONDS = 0.25
"""Between two progress events; a compile has hundreds of phases."""

_LOOK_SECONDS = 1.0
"""From a message of the script's to a look at what it has stored: more will have come by then."""

_STOP_SECONDS = 5.0

CAPABILITIES: Body = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsDataBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsEvaluateForHovers": True,
    "supportsClipboardContext": True,
    "supportsStepBack": True,
    "supportsRestartFrame": True,
    "supportsGotoTargetsRequest": True,
    "supportsStepInTargetsRequest": True,
    "supportsCompletionsRequest": True,
    "completionTriggerCharacters": ["."],
    "supportsExceptionFilterOptions": True,
    "supportsExceptionInfoRequest": True,
    "exceptionBreakpointFilters": FILTERS,
    "supportsDelayedStackTraceLoading": True,
    "supportsLoadedSourcesRequest": True,
    "supportsTerminateRequest": True,
    "supportTerminateDebuggee": True,
    "supportsRestartRequest": True,
    "supportsCancelRequest": True,
    "supportsBreakpointLocationsRequest": True,
    "supportsSteppingGranularity": True,
    "supportsInstructionBreakpoints": True,
    "supportsDisassembleRequest": True,
    "supportsSingleThreadExecutionRequests": True,
}


def _run_of(store: Store, wanted: Wanted) -> str:
    """The run to show.  Raises LookupError with a message for the user."""
    if wanted.run:
        return store.find_run(wanted.run)
    if (found := store.best_run(wanted.program or None)) is not None:
        return found
    if wanted.program:
        raise LookupError(f"No run of {wanted.program} in {store.path} yet. Run it first: irscope run {wanted.program}")
    return store.find_run()


class LifecycleRequests:
    """Begins and ends; owns the script's run while there is one."""

    allowed: ClassVar[Mapping[str, frozenset[State]]] = {
        "initialize": frozenset({State.NEW}),
        "launch": frozenset({State.READY}),
        "attach": frozenset({State.READY}),
        "configurationDone": frozenset({State.READY, State.CONFIGURING}),
        "restart": _LIVE - {State.READY, State.CONFIGURING},
        "terminate": _LIVE,
        "disconnect": _EVERY,
        "cancel": _EVERY,
    }

    def __init__(
        self, session: Session, moving: MovingRequests, breakpoints: BreakpointRequests, inspecting: InspectingRequests
    ) -> None:
        self._session, self._moving = session, moving
        self._breakpoints, self._inspecting = breakpoints, inspecting
        self._wanted: Wanted | None = None
        self._configured = False
        self._run: ScriptRun | None = None
        self._on_end: Callable[[str, Outcome], None] | None = None
        self._last_progress = 0.0
        self._stored = ""
        """The id of the run of the script."""
        self._will_look = False
        self._has_more = False
        """Stages may have been stored since the run was read."""
        session.catch_up = self._catch_up

    # --- beginning ----------------------------------------------------------------------------------------------------

    def initialize_request(self, arguments: Arguments) -> Body:
        """What the adapter can do; the event ``initialized`` follows."""
        session = self._session
        arguments.text("adapterID", "")
        if arguments.text("pathFormat", "path") != "path":
            raise WrongMessage("Only the path format 'path' is supported.")
        session.client = Client(
            first_line=1 if arguments.flag("linesStartAt1", True) else 0,
            first_column=1 if arguments.flag("columnsStartAt1", True) else 0,
            reports_progress=arguments.flag("supportsProgressReporting"),
        )
        session.state = State.READY
        session.afterwards(lambda: session.event("initialized"))
        return CAPABILITIES

    def launch_request(self, arguments: Arguments) -> None:
        """The answer says that the arguments are valid; the script starts after ``configurationDone``."""
        self._choose(launch_of(arguments))

    def attach_request(self, arguments: Arguments) -> None:
        """The answer says that the stored run was found; it is shown after ``configurationDone``."""
        self._choose(self._attached(arguments))

    def _attached(self, arguments: Arguments) -> Wanted:
        """What ``attach`` asks for: the run that is loaded then, or its script once more, for its values."""
        wanted = attach_of(arguments)
        self._load(wanted)
        recording = self._session.here().recording
        if wanted.values is None or values_are_there(recording, wanted.values):
            return wanted
        try:
            spec = spec_of(recording, wanted.values, arguments)
        finally:
            self._session.close()
        return dataclasses.replace(wanted, spec=spec, python=spec.python)

    def configurationDone_request(self, arguments: Arguments) -> None:
        """The run begins; raises NotNow when it is sent twice."""
        if self._configured:
            raise NotNow("configurationDone was sent already.")
        self._configured = True
        if self._wanted is not None:
            self._session.afterwards(self._begin)

    def _choose(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._session.state = State.CONFIGURING
        if self._configured:
            self._session.afterwards(self._begin)

    def _begin(self) -> None:
        wanted = self._wanted
        assert wanted is not None
        if wanted.spec is not None and not self._replays(wanted):
            self._start(wanted)
        elif wanted.spec is None:
            self._session.event(
                "process", {"name": self._session.here().recording.report.script, "startMethod": "attach"}
            )
            self._debug(wanted)

    def _replays(self, wanted: Wanted) -> bool:
        """Shows a stored run in place of one that would be the same; says whether there is one."""
        spec = wanted.spec
        if spec is None or wanted.only_run or not os.path.isfile(wanted.store):
            return False
        try:
            with Store(wanted.store) as store:
                same = same_run(store, spec)
            if same is None:
                return False
            self._load(dataclasses.replace(wanted, spec=None, run=same.run))
        except (LookupError, StoreError, RequestFailed):
            return False
        session = self._session
        session.event("process", {"name": spec.script, "startMethod": "launch"})
        at = time.strftime("%H:%M", time.localtime(same.started))
        session.output(f"Replaying run {same.run} of {at}: nothing has changed since. Restart runs the script.\n")
        self._debug(wanted)
        return True

    # --- a stored run -------------------------------------------------------------------------------------------------

    def _load(self, wanted: Wanted) -> None:
        """Raises RequestFailed if the run is missing or empty."""
        session = self._session
        try:
            store = Store(wanted.store)
        except StoreError as error:
            raise RequestFailed(str(error), show=True) from None
        try:
            recording = Recording(store, _run_of(store, wanted))
        except (LookupError, ValueError, StoreError) as error:
            store.close()
            raise RequestFailed(str(error.args[0]) if error.args else "The run cannot be read.", show=True) from None
        if not recording.tracks:
            store.close()
            outcome = recording.report.outcome.message
            raise RequestFailed(f"Nothing was compiled in run {recording.report.run}: {outcome}", show=True)
        session.close()
        session.debuggee = Debuggee(recording, lambda text: session.output(f"{text}\n"))
        session.handles.folder = recording.folder
        session.debuggee.walker.just_my_code = wanted.just_my_code
        session.debuggee.values.python = os.path.expanduser(wanted.python) or sys.executable
        session.debuggee.walker.programs.python = session.debuggee.values.python

    def _debug(self, wanted: Wanted) -> None:
        """Stops for the first time in the run that is loaded."""
        session, here = self._session, self._session.here()
        self._has_more = False
        session.last_stops.clear()
        session.interrupted.clear()
        self._breakpoints.verify_all()
        stop_on = wanted.stop_on or frozenset()
        here.stops.each_stage, here.stops.each_pass = "stage" in stop_on, "pass" in stop_on
        report = here.recording.report
        for number in range(1, len(here.recording.tracks) + 1):
            session.event("thread", {"reason": "started", "threadId": number})
        for gap in report.capture_gaps:
            session.output(f"Not captured: {gap.what}: {gap.why}\n", "important")
        entry = Stop(PlaceInRun(0, 0, 0), "entry", f"The beginning of run {report.run}")
        if wanted.stop_on is None and self._breakpoints.are_set:
            self._moving.go(0, entry=entry)
        elif wanted.stop_on is None or "entry" in wanted.stop_on:
            session.stopped(entry)
        else:
            self._moving.go(0)

    # --- a script -----------------------------------------------------------------------------------------------------

    def _start(self, wanted: Wanted) -> None:
        session = self._session
        assert wanted.spec is not None
        session.state, session.outcome = State.RUNNING, None
        session.growing, self._stored, self._has_more = False, "", False
        self._inspecting.forget_compiles()
        session.event("process", {"name": wanted.spec.script, "startMethod": "launch", "isLocalProcess": True})
        if session.client.reports_progress:
            title = f"Compiling {os.path.basename(wanted.spec.script)}"
            session.event("progressStart", {"progressId": _PROGRESS, "title": title, "cancellable": True})
        self._on_end = lambda run, outcome: self._finished(wanted, run, outcome)
        heard = Heard(
            started=lambda run: session.post(lambda: setattr(self, "_stored", run)),
            output=lambda stream, text: session.output(text, stream),
            progress=lambda text: self._progress(text, wanted),
            compile=lambda id, function: session.post(lambda: self._inspecting.compile_seen(id, function)),
            ended=lambda run, outcome: session.post(lambda: self._ended(run, outcome)),
        )
        self._run = ScriptRun(wanted.spec, wanted.store, heard)

    def _progress(self, text: str, wanted: Wanted) -> None:
        now = time.monotonic()
        if not self._will_look:
            self._will_look = True
            timer = threading.Timer(_LOOK_SECONDS, lambda: self._session.post(lambda: self._look(wanted)))
            timer.daemon = True
            timer.start()
        if self._session.client.reports_progress and now - self._last_progress > _PROGRESS_SECONDS:
            self._last_progress = now
            self._session.event("progressUpdate", {"progressId": _PROGRESS, "message": text})

    def _look(self, wanted: Wanted) -> None:
        """The script that runs may have stored more.  The session stops at the first function once that is traced,
        where it would stop there at the end, too; a breakpoint may be in stages that come later."""
        session, spec = self._session, wanted.spec
        self._will_look, self._has_more = False, True
        stops_there = not self._breakpoints.are_set if wanted.stop_on is None else "entry" in wanted.stop_on
        early = stops_there and not wanted.only_run and spec is not None and spec.values is None
        if self._run is None or session.state is not State.RUNNING or not early or not self._stored:
            return
        try:
            self._load(dataclasses.replace(wanted, spec=None, run=self._stored))
        except RequestFailed:
            return  # nothing is compiled yet
        first, *others = session.here().recording.tracks
        if first.source.graph is None and not others:  # one that has no graph is traced when the next one begins
            session.close()
            return
        session.growing = True
        session.output("The script still runs: stages are added while you step.\n")
        self._debug(wanted)

    def _catch_up(self) -> None:
        session = self._session
        if not self._has_more or not self._stored or session.debuggee is None or self._wanted is None:
            return
        old, self._has_more = session.debuggee, False
        places = [old.walker.place(number) for number in range(len(old.recording.tracks))]
        stages = [old.recording.section(place).stage.id for place in places]
        flags = old.stops.each_stage, old.stops.each_pass
        self._load(dataclasses.replace(self._wanted, spec=None, run=self._stored))
        here = session.here()
        here.stops.each_stage, here.stops.each_pass = flags
        for place, stage in zip(places, stages, strict=True):
            track = here.recording.tracks[place.compile]
            if (section := track.number_of(stage)) is not None:
                last = len(track.sections[section].spots) - 1
                here.walker.put(PlaceInRun(place.compile, section, min(place.spot, last)))
        self._breakpoints.verify_all()
        for gap in here.recording.report.capture_gaps[len(old.recording.report.capture_gaps) :]:
            session.output(f"Not captured: {gap.what}: {gap.why}\n", "important")

    def _ended(self, run: str, outcome: Outcome) -> None:
        self._run = None
        if self._session.client.reports_progress:
            self._session.event("progressEnd", {"progressId": _PROGRESS})
        then, self._on_end = self._on_end, None
        if then is not None:
            then(run, outcome)

    def _finished(self, wanted: Wanted, run: str, outcome: Outcome) -> None:
        """The script has ended: debugs what was captured of it, however it ended."""
        session = self._session
        session.outcome = outcome
        well = outcome.kind is OutcomeKind.COMPLETED
        said = outcome.message or outcome.kind.value
        session.output(visible(f"{said[:1].upper()}{said[1:]}\n"), "console" if well else "stderr")
        if session.growing:  # what was stored last is added by the next move
            session.growing, self._has_more = False, True
            return
        if wanted.only_run or not run:
            session.end()
            return
        try:
            self._load(dataclasses.replace(wanted, spec=None, run=run))
        except RequestFailed as failure:
            session.output(f"{failure}\n", "important")
            session.end()
            return
        self._debug(wanted)

    # --- again, and the end -------------------------------------------------------------------------------------------

    def restart_request(self, arguments: Arguments) -> None:
        """The script is run again, or the stored run is read again, with new arguments where the client gives them."""
        wanted = self._wanted
        assert wanted is not None
        if "arguments" in arguments:
            given = arguments.object("arguments")
            wanted = attach_of(given) if wanted.attached else launch_of(given)
            if wanted.attached and wanted.values is not None:
                wanted = self._attached(given)
        self._wanted = wanted
        again = wanted
        if again.spec is None:
            self._load(again)
            self._session.afterwards(lambda: self._debug(again))
        else:
            self._session.afterwards(lambda: self._stop_then(lambda: self._start_anew(again)))

    def _start_anew(self, wanted: Wanted) -> None:
        self._session.close()
        self._start(wanted)

    def terminate_request(self, arguments: Arguments) -> None:
        """The script is stopped, and the session ends."""
        arguments.flag("restart")
        self._session.interrupted.clear()
        self._session.afterwards(lambda: self._stop_then(self._session.end))

    def _stop_then(self, then: Callable[[], None]) -> None:
        """Stops the script, if it runs, and goes on when its processes are gone."""
        if self._run is None:
            then()
            return
        session = self._session

        def ended(run: str, outcome: Outcome) -> None:
            session.outcome = outcome
            then()

        self._on_end = ended
        self._run.stop()

    def disconnect_request(self, arguments: Arguments) -> None:
        """The session has ended; a script that still runs is stopped."""
        arguments.flag("restart")
        self.stop()
        self._session.over = True

    def stop(self) -> None:
        """Ends the script, if it runs, and waits for its processes."""
        if self._run is not None:
            self._run.stop()
            self._run.join(_STOP_SECONDS)

    def cancel_request(self, arguments: Arguments) -> None:
        """Requests are taken back where messages are read; here the script, whose progress a client sees, is."""
        arguments.integer("requestId", 0)
        if arguments.text("progressId", "") == _PROGRESS and self._run is not None:
            self._run.stop()
