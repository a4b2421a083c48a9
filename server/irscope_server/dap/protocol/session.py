"""One debug session: its state, its messages, and the table from commands to those who answer them."""

from __future__ import annotations

import enum
import itertools
import sqlite3
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from irscope.protocol import Outcome
from irscope.store.store import StoreError
from irscope.vocabulary.visible import without_links

from irscope_server.base.bodies import BrokenBody
from irscope_server.dap.engine.breakpoints import Stop, Stops
from irscope_server.dap.engine.columns import Columns
from irscope_server.dap.engine.disassembly import Disassembly
from irscope_server.dap.engine.links import Links
from irscope_server.dap.engine.names import Names
from irscope_server.dap.engine.programs import FIRST_THREAD
from irscope_server.dap.engine.recording import FunctionNames, Recording
from irscope_server.dap.engine.values import RunValues
from irscope_server.dap.engine.walking import Level, Walker
from irscope_server.dap.protocol.sources import Sources
from irscope_server.dap.protocol.variables import Handles
from irscope_server.dap.protocol.wire import Arguments, Body, Cancelled, NotNow, Refused, RequestFailed, WrongMessage

Answer = Callable[[Arguments], "Body | None"]

_MOST_CANCELLED = 1000


def _failure(error: Exception, what: str) -> str:
    """What to say where something failed; a defect of ours is written to standard error, too."""
    if isinstance(error, (StoreError, sqlite3.Error)) or type(error) is LookupError:
        return str(error)  # the store is damaged or locked, or its content has changed
    traceback.print_exc()
    return f"{what}: {type(error).__name__}: {error}"


class State(enum.Enum):
    """Where a session is."""

    NEW = "before initialize"
    READY = "before launch or attach"
    CONFIGURING = "before configurationDone"
    RUNNING = "while the script runs"
    STOPPED = "stopped"
    ENDED = "after its end"


class Group(Protocol):
    """Answers some requests: each by a method ``<command>_request``, in the states that `allowed` names."""

    allowed: ClassVar[Mapping[str, frozenset[State]]]


@dataclass(frozen=True)
class Client:
    """What a client said of itself in ``initialize``."""

    first_line: int = 1
    first_column: int = 1
    reports_progress: bool = False


class Debuggee:
    """The stored run that is debugged, with all that looks at it."""

    def __init__(self, recording: Recording, log: Callable[[str], None]) -> None:
        self.recording = recording
        self.links = Links(recording)
        self.walker = Walker(recording, self.links)
        self.names = Names(recording)
        self.stops = Stops(recording, self.names, log)
        self.sources = Sources(recording)
        self.functions = FunctionNames(recording)
        self.columns = Columns(recording, self.links)
        self.disassembly = Disassembly(recording)
        self.values = RunValues(recording, self.links)
        self.names.values = self.stops.values = self.values
        self.stops.programs = self.walker.programs

    def close(self) -> None:
        """End the value process and close the store."""
        self.values.close()
        self.recording.store.close()


class Session:
    """Handles messages one after the other; only `send` and what it is built on may be called from other threads.

    Args:
        write: Takes a whole message; called under a lock.
        post: Has a function called by the thread that handles messages, later.
    """

    def __init__(self, write: Callable[[Body], None], post: Callable[[Callable[[], None]], None]) -> None:
        self._write, self.post = write, post
        self._lock, self._seq = threading.Lock(), itertools.count(1)
        self._afterwards: list[Callable[[], None]] = []
        self._table: dict[str, Answer] = {}
        self._allowed: dict[str, frozenset[State]] = {}
        self._refusals: dict[str, str] = {}
        self.state = State.NEW
        self.client = Client()
        self.debuggee: Debuggee | None = None
        self.handles = Handles()
        self.frames: dict[int, tuple[int, Level]] = {}
        self._next_frame = itertools.count(1)
        self.last_stops: dict[int, Stop] = {}
        self._programs_told = 0
        self.outcome: Outcome | None = None
        self.interrupted = threading.Event()
        """Set by the reading thread when a client wants a search to end."""
        self.cancelled: set[int] = set()
        """Requests that a client took back, by their numbers; filled by the reading thread."""
        self.growing = False
        """The script still runs: more stages will be stored."""
        self.catch_up: Callable[[], None] = lambda: None
        """Adds what was stored since; where the threads are stays as it is.  Old frames do not hold any more."""
        self.over = False
        """The process is to end."""

    # --- the table ----------------------------------------------------------------------------------------------------

    def add(self, group: Group) -> None:
        """Takes up the requests that a group answers."""
        for command, states in group.allowed.items():
            self._table[command] = getattr(group, f"{command}_request")
            self._allowed[command] = states

    def refuse(self, refusals: Mapping[str, str]) -> None:
        """Requests that are never answered with anything but a sentence."""
        self._refusals.update(refusals)

    def commands(self) -> frozenset[str]:
        """The names of all requests that can be answered."""
        return frozenset(self._table)

    # --- messages in --------------------------------------------------------------------------------------------------

    def handle(self, message: Any) -> None:
        """Answers a message, whatever it is."""
        if isinstance(message, BrokenBody):
            number = message.id if isinstance(message.id, int) else 0
            self._answer(number, "", WrongMessage(f"A message could not be read: {message}."))
            return
        if not isinstance(message, dict):
            self._answer(0, "", WrongMessage("A message must be a JSON object."))
            return
        if message.get("type") in ("response", "event"):
            return  # nothing is asked of clients, and they have no events of their own
        seq, command = message.get("seq"), message.get("command")
        number = seq if isinstance(seq, int) and not isinstance(seq, bool) else 0
        name = command if isinstance(command, str) else ""
        if message.get("type") != "request" or not name:
            self._answer(number, name, WrongMessage("A request needs type 'request' and a command."))
            return
        try:
            body: Body | RequestFailed | None = self._ask(number, name, message.get("arguments"))
        except RequestFailed as failure:
            body = failure
        except Exception as error:  # noqa: BLE001  a defect in one answer must not end the session
            body = RequestFailed(_failure(error, f"irscope failed at {name!r}"), show=True)
        self._answer(number, name, body)
        self._run_afterwards()

    def _ask(self, number: int, command: str, arguments: Any) -> Body | None:
        if number in self.cancelled:
            self.cancelled.discard(number)
            raise Cancelled()
        if command in self._refusals:
            raise Refused(self._refusals[command])
        if command not in self._table:
            raise Refused(f"Unknown request: {command[:60]!r}.")
        if self.state not in self._allowed[command]:
            when = f"This cannot be done {self.state.value}: {command!r}."
            if self.state is State.STOPPED:
                when = f"This is no longer possible: {command!r}."
            raise NotNow(when)
        return self._table[command](Arguments(arguments))

    def _run_afterwards(self) -> None:
        while self._afterwards:
            work = self._afterwards.pop(0)
            try:
                work()
            except Exception as error:  # noqa: BLE001
                self.output(f"{_failure(error, 'irscope failed')}\n", "stderr")

    def do(self, work: Callable[[], None]) -> None:
        """Something that does not come from a message: the end of a run."""
        self._afterwards.append(work)
        self._run_afterwards()

    def afterwards(self, work: Callable[[], None]) -> None:
        """Has something done when the answer to the request at hand has been sent."""
        self._afterwards.append(work)

    def take_back(self, number: int) -> None:
        """Note that the client cancelled the request of this number."""
        if len(self.cancelled) < _MOST_CANCELLED:
            self.cancelled.add(number)

    # --- messages out -------------------------------------------------------------------------------------------------

    def _answer(self, number: int, command: str, body: Body | RequestFailed | None) -> None:
        message: Body = {"type": "response", "request_seq": number, "command": command, "success": True}
        if isinstance(body, RequestFailed):
            message["success"] = False
            said = without_links(str(body))  # VS Code shows it in a message
            message["message"] = said
            # A brace in a format stands for a variable, so the sentence is one.
            error = {"id": body.id, "format": "{sentence}", "variables": {"sentence": said}, "showUser": body.show}
            message["body"] = {"error": error}
        elif body is not None:
            message["body"] = body
        self._send(message)

    def event(self, name: str, body: Body | None = None) -> None:
        """Send an event; may be called from any thread."""
        self._send({"type": "event", "event": name, **({"body": body} if body is not None else {})})

    def output(self, text: str, category: str = "console", **more: Any) -> None:
        """Show text in the debug console; links are removed from everything but the script's own output."""
        if category not in (
            "stdout",
            "stderr",
        ):  # what the script prints is its own; VS Code shows *important* in a message
            text = without_links(text)
        self.event("output", {"category": category, "output": text, **more})

    def _send(self, message: Body) -> None:
        with self._lock:
            self._write({"seq": next(self._seq), **message})

    # --- what several groups need -------------------------------------------------------------------------------------

    def here(self) -> Debuggee:
        """The run at hand.  Raises NotNow if there is none yet."""
        if self.debuggee is None:
            raise NotNow("No run is available yet.")
        return self.debuggee

    def compile_of(self, arguments: Arguments) -> int:
        """The number of the compile, or of the program of a kernel, that ``threadId`` names.  Raises WrongMessage if there
        is none."""
        thread, here = arguments.integer("threadId"), self.here()
        programs = range(FIRST_THREAD + 1, FIRST_THREAD + 1 + len(here.walker.programs.entered))
        if not 1 <= thread <= len(here.recording.tracks) and thread not in programs:
            raise WrongMessage(f"Unknown thread: {thread}.")
        return thread - 1

    def new_frame(self, compile: int, level: Level) -> int:
        """A number for a level of a thread's call stack, by which later requests name it."""
        number = next(self._next_frame)
        self.frames[number] = (compile, level)
        return number

    def frame(self, number: int) -> tuple[int, Level]:
        """Raises WrongMessage for an invalid or old frame."""
        if number not in self.frames:
            raise WrongMessage(
                f"Unknown frame: {number}. Frames are valid only until the next step. Ask for the stack trace again."
            )
        return self.frames[number]

    def stopped(self, stop: Stop) -> None:
        """Tells that a thread is somewhere else now (or still is there)."""
        self.handles.clear()
        self.frames.clear()
        self.state = State.STOPPED
        programs = self.here().walker.programs
        for number in range(self._programs_told, len(programs.entered)):
            self.event("thread", {"reason": "started", "threadId": FIRST_THREAD + number + 1})
        self._programs_told = len(programs.entered)
        thread = programs.thread_of(stop.place)
        self.last_stops.pop(thread, None)
        self.last_stops[thread] = stop
        body: Body = {"reason": stop.reason, "threadId": thread + 1, "allThreadsStopped": True}
        if stop.description:
            body["description"] = stop.description
        if stop.finding is not None:
            body["text"] = stop.finding.message
        if stop.breakpoints:
            body["hitBreakpointIds"] = list(stop.breakpoints)
        self.event("stopped", body)

    def end(self) -> None:
        """Tells the client that there is nothing more to debug."""
        if self.state is not State.ENDED:
            self.state = State.ENDED
            if self.outcome is not None and self.outcome.exit_code is not None:
                self.event("exited", {"exitCode": self.outcome.exit_code})
            self.event("terminated")

    def close(self) -> None:
        """Close the run that is debugged, if there is one."""
        if self.debuggee is not None:
            self.debuggee.close()
            self.debuggee = None
