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


def seconds_of(one: Measured) -> list[float]:
    """The seconds of a call of every program in each round; a round in which one was not timed is left out."""
    rows = [[program.get("seconds") for program in row] for row in one.rounds]
    numbers = [[float(each) for each in row if isinstance(each, (int, float))] for row in rows]
    return [sum(some) for some, row in zip(numbers, rows, strict=True) if row and len(some) == len(row)]


def why_not_timed(one: Measured) -> str:
    """Why nothing was timed; empty if that is not known."""
    told = (str(each["why_no_seconds"]) for each in one.programs or () if each.get("why_no_seconds"))
    return one.problem or next(told, "")


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
    with Turns(store_path, folder, on_step=on_step, on_output=on_output, cancel=cancel) as turns:
        for spec in specs:
            turns.start(spec, f"running the script through {spec.pipeline}")
        turns.time(rounds)
    return turns.found


class Turns:
    """Processes that wait for their rounds; they end with the context.

    Args:
        store_path, folder, on_step, on_output, cancel: As `measured` has them.
    """

    def __init__(
        self,
        store_path: str,
        folder: str,
        *,
        on_step: Callable[[str], None] = lambda text: None,
        on_output: Callable[[str, str], None] = lambda stream, text: None,
        cancel: threading.Event | None = None,
    ) -> None:
        self.store, self._folder, self._on_step, self._on_output = store_path, folder, on_step, on_output
        self._stop, self._turns = cancel or threading.Event(), list[_Turn]()

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(0)

    @property
    def found(self) -> list[Measured]:
        """What was measured in each process, in the order of their starts."""
        return [turn.found for turn in self._turns]

    def start(self, spec: RunSpec, what: str) -> Measured:
        """Runs the script, up to where its process is ready for rounds; what was measured there comes later."""
        turn = _Turn(spec, self.store, os.path.join(self._folder, str(len(self._turns))), self._on_output, self._stop)
        self._turns.append(turn)
        if not self._stop.is_set():
            self._on_step(what)
            turn.start()
        return turn.found

    def time(self, rounds: int) -> None:
        """Times the processes that are there, in turns."""
        turns = [turn for turn in self._turns if turn.is_ready]
        for number in range(rounds if turns else 0):
            if self._stop.is_set():
                return
            self._on_step(f"timing, round {number + 1} of {rounds}")
            for turn in turns[number % len(turns) :] + turns[: number % len(turns)]:
                turn.ask()

    def end(self, first: int) -> None:
        """Ends the processes from this number on."""
        for turn in self._turns[first:]:
            turn.stop()


class _Turn:
    """One process of a comparison."""

    def __init__(
        self, spec: RunSpec, store: str, folder: str, on_output: Callable[[str, str], None], all_stop: threading.Event
    ) -> None:
        self.found = Measured(spec)
        self._store, self._folder, self._on_output = store, folder, on_output
        self._cancel, self._all_stop = threading.Event(), all_stop
        self._thread = threading.Thread(target=self._run, name=f"irscope-compare-{spec.pipeline}", daemon=True)
        self.is_ready, self._asked = False, 0

    def start(self) -> None:
        """Runs the script; returns when it has ended and its process is ready for rounds, or is gone."""
        os.mkdir(self._folder, 0o700)
        self._thread.start()
        answer = self._wait_for(READY, None)
        self.is_ready = answer is not None
        if answer is not None:
            self.found.programs = [one for one in answer.get("programs", ()) if isinstance(one, dict)]

    def ask(self) -> None:
        """One round, if the process is still there."""
        if not self.is_ready:
            return
        number = self._asked
        self._asked += 1
        with open(os.path.join(self._folder, round_file(number)), "w", encoding="utf-8"):
            pass
        answer = self._wait_for(answer_file(number), _TURN_SECONDS)
        self.is_ready = answer is not None
        if answer is not None:
            self.found.rounds.append([one for one in answer.get("programs", ()) if isinstance(one, dict)])

    def stop(self) -> None:
        """Ends the process; its run keeps what it found."""
        if self._thread.ident is None:
            return
        if self.is_ready and not self.found.spec.steps:  # else the script would go on
            with open(os.path.join(self._folder, STOP), "w", encoding="utf-8"):
                pass
        else:
            self._cancel.set()
        self.is_ready = False
        self._thread.join()
        outcome = self.found.outcome
        if self.found.programs is None and not self.found.problem:
            self.found.problem = outcome.message if outcome else "The run did not start."

    def _run(self) -> None:
        try:
            with Store(self._store) as store:
                spec = dataclasses.replace(self.found.spec, rounds=self._folder)
                _, self.found.outcome = execute(
                    spec, store, on_start=self._began, on_output=self._on_output, cancel=self._cancel
                )
        except Exception as error:  # noqa: BLE001  the other pipelines are compared all the same
            self.found.problem = str(error)

    def _began(self, run: str) -> None:
        self.found.run = run

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
