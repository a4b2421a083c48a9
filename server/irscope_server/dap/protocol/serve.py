"""Runs a debug session on a pair of streams: one thread reads, one answers."""

from __future__ import annotations

import gc
import os
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from irscope.system.commands import leave_nothing

from irscope_server.base.transport import END, Writer, read_frame, take_protocol_streams
from irscope_server.dap.protocol.breakpoint_requests import BreakpointRequests
from irscope_server.dap.protocol.inspecting_requests import InspectingRequests
from irscope_server.dap.protocol.lifecycle_requests import LifecycleRequests
from irscope_server.dap.protocol.moving_requests import MovingRequests
from irscope_server.dap.protocol.session import Session
from irscope_server.dap.protocol.value_requests import ValueRequests
from irscope_server.dap.protocol.wire import Body, encode

_WAITING = 10_000
"""Messages that wait for their answer; a client that sends more waits itself."""

_INTERRUPTING = frozenset({"pause", "terminate", "disconnect", "restart"})


def make_session(
    write: Callable[[Body], None], post: Callable[[Callable[[], None]], None]
) -> tuple[Session, LifecycleRequests]:
    """A session with everything that it can answer."""
    session = Session(write, post)
    moving, breakpoints, inspecting = MovingRequests(session), BreakpointRequests(session), InspectingRequests(session)
    lifecycle = LifecycleRequests(session, moving, breakpoints, inspecting)
    for group in (lifecycle, moving, breakpoints, inspecting, ValueRequests(session)):
        session.add(group)
    session.refuse(REFUSALS)
    return session, lifecycle


def serve(stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serves until ``disconnect`` or the end of the input; then the script, if one runs, has ended too."""
    waiting: queue.Queue[Any] = queue.Queue(_WAITING)
    writer = Writer(stdout)
    session, lifecycle = make_session(lambda message: writer.write(encode(message)), lambda work: waiting.put(work))
    threading.Thread(target=_read, args=(stdin, session, waiting), name="irscope-stdin", daemon=True).start()
    try:
        while not session.over and (item := waiting.get()) is not END:
            if callable(item):
                session.do(item)
            else:
                session.handle(item)
    finally:
        lifecycle.stop()
        session.close()


def _read(stdin: BinaryIO, session: Session, waiting: queue.Queue[Any]) -> None:
    try:
        while (message := read_frame(stdin, "seq")) is not END:
            _look_ahead(message, session)
            waiting.put(message)
    except (OSError, ValueError):
        pass
    session.interrupted.set()
    waiting.put(END)


def _look_ahead(message: Any, session: Session) -> None:
    """Handles what cannot wait: stopping a search, cancelling a request."""
    if not isinstance(message, dict) or not isinstance(message.get("command"), str):
        return
    if message["command"] in _INTERRUPTING:
        session.interrupted.set()
    elif message["command"] == "cancel" and isinstance(message.get("arguments"), dict):
        number = message["arguments"].get("requestId")
        if isinstance(number, int):
            session.take_back(number)


def serve_stdio() -> None:
    """Serves on this process's own standard input and output, and ends the process."""
    stdin, stdout = take_protocol_streams()
    gc.set_threshold(
        200_000, 20, 100
    )  # a graph of 20,000 nodes is a million objects that stay; collecting finds nothing
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    try:
        serve(stdin, stdout)
    finally:
        leave_nothing()
        os._exit(0)


def _leave(number: int, frame: object) -> None:
    """Ends the wait for messages, so that a script that runs is stopped on the way out."""
    raise SystemExit


_RECORD = "The run is a record of what the compiler did: it can be looked at, but not changed."
_MEMORY = "A stored run has no memory: there are no addresses of data in it."

REFUSALS: Mapping[str, str] = {
    "setVariable": _RECORD,
    "setExpression": _RECORD,
    "writeMemory": _RECORD,
    "readMemory": _MEMORY,
    "locations": "Values of irscope have no locations.",
    "modules": "A compile has no modules; loadedSources lists its stages.",
    "terminateThreads": "A thread is a compile that has ended already; terminate ends the session.",
    "runInTerminal": "This is a request from adapters to clients.",
    "startDebugging": "This is a request from adapters to clients.",
}
