"""The phases and the symbols of each compile, as a session writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irscope import phases
from irscope.capture.stack import shape_guard_is_checked
from irscope.capture.stages import KINDS, position
from irscope.capture.trace import Record
from irscope.protocol import StageRef
from irscope.symbols import EVENTS, Place, Symbols
from irscope.usercode import is_user_file

PHASES = "phases"
SYMBOLS = "symbols"
WriteStage = Callable[[str, StageRef, str, float, object], None]


class PhaseStages:
    """Writes the stage ``phases`` of a compile whenever all that began has ended: after the forward, the backward.

    Parameters
    ----------
    name_of
        The name of a record's compile in the run.  While the first phases of a compile begin PyTorch has not said that
        it is a new one, so it is asked when they have ended.
    """

    def __init__(self, name_of: Callable[[Record], str | None], write: WriteStage) -> None:
        self._name_of, self._write = name_of, write
        self._open: dict[str, tuple[list[phases.Event], int]] = {}  # PyTorch's compile id → events, how deep
        self._ended: dict[str, list[phases.Event]] = {}
        self._metrics: dict[str, dict[str, Any]] = {}

    def note(self, record: Record) -> None:
        """Takes in a timed event."""
        event = phases.event_of(record.payload, record.facts.get("thread"))
        if event is None:
            return
        if record.compile is None:  # in another thread, which does not know for which compile it works
            for events, _ in list(self._open.values())[-1:]:
                events.append(event)
            return
        events, depth = self._open.get(record.compile, ([], 0))
        events.append(event)
        depth += 1 if event.begins else -1
        if depth > 0:
            self._open[record.compile] = (events, depth)
            return
        self._open.pop(record.compile, None)
        if (name := self._name_of(record)) is not None:
            self._ended[name] = self._ended.get(name, []) + events
            self._put(name)

    def metrics(self, record: Record) -> None:
        """Takes in ``compilation_metrics``; ``record.compile`` is the name in the run."""
        if record.compile is not None:
            self._metrics[record.compile] = record.facts
            if record.compile in self._ended:
                self._put(record.compile)

    def _put(self, name: str) -> None:
        tree = phases.build(self._ended[name])
        text = phases.text_of(phases.totals([tree]))
        stage = StageRef(f"{name}/{PHASES}", PHASES, KINDS[PHASES].language, len(text))
        self._write(name, stage, text, position(PHASES, True), phases.to_data(tree, self._metrics.get(name, {})))


class SymbolStages:
    """Writes the stage ``symbols`` of a compile that has some, when its guards are known and again when it ends."""

    def __init__(self, write: WriteStage) -> None:
        self._write = write
        self._files: dict[Any, str] = {}  # PyTorch's numbers for interned strings
        self._attempts: dict[str, tuple[int, Symbols]] = {}

    def note(self, record: Record) -> None:
        """Takes in a record; ``record.compile`` is the name in the run, or nothing."""
        if record.event == "str":
            self._files[record.facts.get("index")] = str(record.facts.get("text", ""))
        elif record.compile is None:
            return
        elif record.event in EVENTS:
            if record.event == "guard_added_fast" and not shape_guard_is_checked():
                return
            attempt, symbols = self._attempts.get(record.compile, (-1, Symbols()))
            if attempt != record.attempt and record.event.startswith("create"):
                symbols = Symbols()  # Dynamo has begun anew
                attempt = record.attempt
            self._attempts[record.compile] = (attempt, symbols)
            symbols.note(record.event, record.facts, self._place(record.facts.get("user_stack") or []))
        elif record.event in ("dynamo_cpp_guards_str", "compilation_metrics", "bwd_compilation_metrics"):
            _, symbols = self._attempts.get(record.compile, (0, Symbols()))
            if symbols.symbols:
                self._put(record.compile, symbols)

    def _put(self, compile: str, symbols: Symbols) -> None:
        text = symbols.text()
        stage = StageRef(f"{compile}/{SYMBOLS}", SYMBOLS, KINDS[SYMBOLS].language, len(text))
        self._write(compile, stage, text, position(SYMBOLS, False), symbols.data())

    def _place(self, stack: list[dict[str, Any]]) -> Place | None:
        """The innermost frame in the user's code, else the innermost."""
        places = [
            Place(self._files.get(frame.get("filename"), ""), int(frame.get("line") or 0), str(frame.get("name", "")))
            for frame in stack
        ]
        places = [place for place in places if place.file]
        return next((place for place in reversed(places) if is_user_file(place.file)), places[-1] if places else None)
