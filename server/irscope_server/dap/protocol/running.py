"""Runs a script for a debug session, in a thread beside the one that answers requests."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from irscope.driver.driver import RunSpec, execute
from irscope.protocol import CompileSeen, Message, Outcome, OutcomeKind, Progress
from irscope.store.store import Store, StoreError

MOST_OUTPUT = 4 * 1024 * 1024
"""Characters of a script's output that a session shows; the script may print more."""

_CHUNK = 32 * 1024


@dataclass(frozen=True)
class Heard:
    """What a run calls back with, from its own thread."""

    started: Callable[[str], None]
    """The run's id, before anything runs."""
    output: Callable[[str, str], None]
    """``stdout`` or ``stderr``, and a piece of text."""
    progress: Callable[[str], None]
    compile: Callable[[str, str], None]
    """Id and function of a compile that has begun."""
    ended: Callable[[str, Outcome], None]
    """The run's id (empty if there is none) and how it ended; called once, at last."""


class ScriptRun:
    """A run of a script; starts at once."""

    def __init__(self, spec: RunSpec, store: str, heard: Heard) -> None:
        self._spec, self._store, self._heard = spec, store, heard
        self._cancel = threading.Event()
        self._shown = 0
        self._thread = threading.Thread(target=self._run, name="irscope-run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Kills the script's processes; `Heard.ended` is called soon after."""
        self._cancel.set()

    def join(self, seconds: float) -> None:
        """Wait for the end of the run, at most this long."""
        self._thread.join(seconds)

    def _run(self) -> None:
        run, outcome = "", Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, "", 0.0)
        try:
            with Store(self._store) as store:
                run, outcome = execute(
                    self._spec, store, on_start=self._heard.started, on_message=self._message,
                    on_output=self._output, cancel=self._cancel,
                )  # fmt: skip
        except StoreError as error:
            outcome = Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, str(error), 0.0)
        except Exception as error:  # noqa: BLE001  a defect of irscope must not leave the session waiting
            traceback.print_exc()
            outcome = Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, f"irscope failed: {error}", 0.0)
        self._heard.ended(run, outcome)
        if run:
            with contextlib.suppress(StoreError, sqlite3.Error), Store(self._store) as store:
                store.tidy(run)

    def _message(self, message: Message) -> None:
        if isinstance(message, Progress):
            self._heard.progress(message.text)
        elif isinstance(message, CompileSeen):
            self._heard.compile(message.compile.id, message.compile.title)

    def _output(self, stream: str, text: str) -> None:
        room = MOST_OUTPUT - self._shown
        self._shown += len(text)
        for start in range(0, min(len(text), max(room, 0)), _CHUNK):
            self._heard.output(stream, text[start : min(start + _CHUNK, room)])
        if room > 0 >= MOST_OUTPUT - self._shown:
            self._heard.output("console", "\nThe script prints more; the rest is not shown here.\n")
