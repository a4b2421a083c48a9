"""The phases and the symbols of each compile."""

from __future__ import annotations

from typing import Any

from irscope.capture.run_book import RunBook
from irscope.events.trace import Record
from irscope.internals.dynamo_frames import shape_guard_is_checked
from irscope.ir import phases
from irscope.ir.symbols import EVENTS, SymbolPlace, Symbols
from irscope.measures.compile_time import phases_text
from irscope.pipelines.dynamo_stages import PHASES, SYMBOLS
from irscope.usercode.user_files import is_user_file


class PhaseStages:
    """Writes the stage ``phases`` of a compile whenever all that began has ended: after the forward, the backward."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._open: dict[str, tuple[list[phases.Event], int]] = {}  # PyTorch's compile id → events, how deep
        self._ended: dict[str, list[phases.Event]] = {}
        self._metrics: dict[str, dict[str, Any]] = {}

    def note(self, record: Record) -> None:
        """Takes in a timed event."""
        event = phases.event_of(record.facts.get("event") or record.payload, record.facts.get("thread"))
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
        # While the first phases of a compile begin PyTorch has not said that it is a new one.
        if (name := self._book.compiles.name_of(record)) is not None:
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
        text = phases_text(tree)
        data = phases.to_data(tree, self._metrics.get(name, {}))
        # The backward's phases are among them, so they come after all of its stages.
        self._book.write_stage(name, PHASES.name, f"{name}/{PHASES.name}", text, data, backward=True)


class SymbolStages:
    """Writes the stage ``symbols`` of a compile that has some, when its guards are known and again when it ends."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._files: dict[Any, str] = {}  # PyTorch's numbers for interned strings
        self._attempts: dict[str, tuple[int, Symbols]] = {}

    def note(self, record: Record) -> None:
        """Takes in a record; ``record.compile`` is the name in the run, or None."""
        if record.event == "str":
            self._files[record.facts.get("index")] = str(record.facts.get("text", ""))
        elif record.compile is None:
            return
        elif record.event in EVENTS:
            if record.event == "guard_added_fast" and not shape_guard_is_checked():
                return
            attempt, symbols = self._attempts.get(record.compile, (-1, Symbols()))
            if attempt != record.attempt and record.event.startswith("create"):
                symbols = Symbols()  # Dynamo has restarted
                attempt = record.attempt
            self._attempts[record.compile] = (attempt, symbols)
            symbols.note(record.event, record.facts, self._place(record.facts.get("user_stack") or []))
        elif record.event in ("dynamo_cpp_guards_str", "compilation_metrics", "bwd_compilation_metrics"):
            _, symbols = self._attempts.get(record.compile, (0, Symbols()))
            if symbols.symbols:
                self._put(record.compile, symbols)

    def _put(self, compile: str, symbols: Symbols) -> None:
        id = f"{compile}/{SYMBOLS.name}"
        self._book.write_stage(compile, SYMBOLS.name, id, symbols.text(), symbols.data())

    def _place(self, stack: list[dict[str, Any]]) -> SymbolPlace | None:
        """The innermost frame in the user's code, else the innermost."""
        places = [
            SymbolPlace(
                self._files.get(frame.get("filename"), ""), int(frame.get("line") or 0), str(frame.get("name", ""))
            )
            for frame in stack
        ]
        places = [place for place in places if place.file]
        return next((place for place in reversed(places) if is_user_file(place.file)), places[-1] if places else None)
