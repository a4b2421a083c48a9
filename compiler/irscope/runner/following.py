"""The capture in a process that the script has started: a new interpreter, or a fork."""

from __future__ import annotations

import atexit
import contextlib
import sys

from irscope.protocol import Refused, RunRequest, Started
from irscope.runner.joining import joined, process_facts
from irscope.runner.messages import MessagePipe
from irscope.runner.session import Session
from irscope.runner.torch_here import find_torch
from irscope.usercode.user_files import set_torch_folder, treat_as_user_code


def in_fork(address: str, error: Exception | None) -> None:
    """Captures from now on in a fork of a process under capture, whose own capture has ended in it; or says that an error
    keeps it from that."""
    if error is not None:
        report_failure(address, error)
    elif (answer := joined(address)) is not None:
        begin(*answer)


def begin(request: RunRequest, messages: MessagePipe) -> None:
    """Captures from now to the end of this process."""
    messages.send(process_facts())
    found = find_torch()
    if isinstance(found, str):
        messages.send(Refused(found))
        return
    folder, version = found
    set_torch_folder(folder)
    treat_as_user_code(request.script)
    messages.send(Started(version))
    session = Session(request, messages, None, in_fork)
    session.start()
    at_exit = AtExit(session)
    atexit.register(at_exit.end)
    at_exit.after_multiprocessing()
    _KEPT.append(at_exit)


def report_failure(address: str, error: Exception) -> None:
    """An error of irscope's own keeps it from capturing in this process: the run has a capture gap that says so."""
    with contextlib.suppress(Exception):  # the driver is gone, too
        if (answer := joined(address)) is not None:
            _, messages = answer
            messages.send(process_facts())
            messages.send(Refused(f"irscope failed there: {error!r}"))
            messages.close()


_KEPT: list[AtExit] = []
"""Multiprocessing refers to them weakly."""


class AtExit:
    """Ends the capture of a process: multiprocessing ends its processes without the functions of `atexit`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def after_multiprocessing(self) -> None:
        """Has multiprocessing end it, too, where that is what started this process."""
        if (util := sys.modules.get("multiprocessing.util")) is not None:
            # It forgets what was to be done at the end when it begins the process.
            util.register_after_fork(self, AtExit._register)
            self._register()

    def _register(self) -> None:
        sys.modules["multiprocessing.util"].Finalize(None, self.end, exitpriority=-1)

    def end(self) -> None:
        """Once."""
        error = getattr(sys, "last_value", None)
        self._session.script_ended(1 if error is not None else 0, "" if error is None else repr(error))
        self._session.finish()
