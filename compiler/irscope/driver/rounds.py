"""Asks the processes of a comparison for timings: one after the other, so that they take turns on the machine."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Outcome
from irscope.runner.rounds import READY, STOP, answer_file, round_file
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass

_POLL_SECONDS = 0.01
_TURN_SECONDS = 300.0
"""A turn takes a fraction of a second; this is for a machine that does something else for minutes."""
_MOST_BYTES = 10_000_000


@dataclass
class Measured:
    """The run of one pipeline, and what its process measured.

    Args:
        programs: The script's compiled programs, as the process told them when it was ready; None if it never was.
        rounds: The seconds of the programs, by round.
    """

    spec: RunSpec
    run: str = ""
    outcome: Outcome | None = None
    problem: str = ""
    """Why nothing was measured; empty if it was."""
    programs: list[dict[str, Any]] | None = None
    rounds: list[list[dict[str, Any]]] = field(default_factory=list)


def measured(
    specs: Sequence[RunSpec],
    store_path: str,
    folder: str,
    rounds: int,
    *,
    on_step: Callable[[str], None] = lambda text: None,
    on_output: Callable[[str, str], None] = lambda stream, text: None,
    cancel: threading.Event | None = None,
) -> list[Measured]:
    """Runs the same script through several pipelines, and times what was compiled.

    The scripts run one after the other, so that no compile slows another one down; their processes stay until all
    rounds have ended.

    Args:
        folder: A private folder, which is empty.
        on_step: Called with what begins now, in few words.
        cancel: Once it is set, what goes on is stopped and nothing else begins.
    """
    stop = cancel or threading.Event()
    turns = [_Turn(spec, store_path, os.path.join(folder, str(at)), on_output, stop) for at, spec in enumerate(specs)]
    try:
        for turn in turns:
            if stop.is_set():
                break
            on_step(f"running the script through {turn.found.spec.pipeline}")
            turn.start()
        for number in range(rounds):
            if stop.is_set():
                break
            on_step(f"timing, round {number + 1} of {rounds}")
            for turn in turns[number % len(turns) :] + turns[: number % len(turns)]:
                turn.ask(number)
    finally:
        for turn in turns:
            turn.stop()
    return [turn.found for turn in turns]


class _Turn:
    """One process of a comparison."""

    def __init__(
        self, spec: RunSpec, store: str, folder: str, on_output: Callable[[str, str], None], all_stop: threading.Event
    ) -> None:
        self.found = Measured(spec)
        self._store, self._folder, self._on_output = store, folder, on_output
        self._cancel, self._all_stop = threading.Event(), all_stop
        self._thread = threading.Thread(target=self._run, name=f"irscope-compare-{spec.pipeline}", daemon=True)
        self._is_ready = False

    def start(self) -> None:
        """Runs the script; returns when it has ended and its process is ready for rounds, or is gone."""
        os.mkdir(self._folder, 0o700)
        self._thread.start()
        answer = self._wait_for(READY, None)
        self._is_ready = answer is not None
        if answer is not None:
            self.found.programs = [one for one in answer.get("programs", ()) if isinstance(one, dict)]

    def ask(self, number: int) -> None:
        """One round, if the process is still there."""
        if not self._is_ready:
            return
        with open(os.path.join(self._folder, round_file(number)), "w", encoding="utf-8"):
            pass
        answer = self._wait_for(answer_file(number), _TURN_SECONDS)
        self._is_ready = answer is not None
        if answer is not None:
            self.found.rounds.append([one for one in answer.get("programs", ()) if isinstance(one, dict)])

    def stop(self) -> None:
        """Ends the process; its run keeps what it found."""
        if self._thread.ident is None:
            return
        if self._is_ready:
            with open(os.path.join(self._folder, STOP), "w", encoding="utf-8"):
                pass
        else:
            self._cancel.set()
        self._thread.join()
        outcome = self.found.outcome
        if self.found.programs is None and not self.found.problem:
            self.found.problem = outcome.message if outcome else "The run did not start."

    def _run(self) -> None:
        try:
            with Store(self._store) as store:
                spec = dataclasses.replace(self.found.spec, rounds=self._folder)
                self.found.run, self.found.outcome = execute(
                    spec, store, on_output=self._on_output, cancel=self._cancel
                )
        except Exception as error:  # noqa: BLE001  the other pipelines are compared all the same
            self.found.problem = str(error)

    def _wait_for(self, name: str, seconds: float | None) -> dict[str, Any] | None:
        """What the process writes into a file; None if it ends before, takes too long, or is to stop."""
        path, started = os.path.join(self._folder, name), time.monotonic()
        while True:
            is_over = not self._thread.is_alive()
            try:
                with open(path, encoding="utf-8") as file:
                    found = json.loads(file.read(_MOST_BYTES))
                return found if isinstance(found, dict) else None
            except FileNotFoundError:
                pass
            except (OSError, ValueError):
                return None
            if is_over or self._all_stop.is_set() or (seconds is not None and time.monotonic() - started > seconds):
                return None
            time.sleep(_POLL_SECONDS)
