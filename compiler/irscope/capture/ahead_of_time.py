"""Compiles ahead of time as any other compile of a run (`irscope.internals.ahead_of_time`)."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import types
from collections.abc import Callable
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.events.trace import Record
from irscope.internals.ahead_of_time import hook
from irscope.internals.dynamo_frames import name_of_program
from irscope.internals.hooks import Hook

_BEGINS, _FAILS, _ENDS = "dynamo_start", "dynamo_error", "compilation_metrics"


class AheadOfTime:
    """Tells the run's book of compiles that have no ``dynamo_start``.

    Parameters
    ----------
    show
        Called with the name of a compile that begins and the function that it is of.
    receive
        Takes a record that PyTorch would have written.
    """

    def __init__(
        self, book: RunBook, show: Callable[[str, types.CodeType], None], receive: Callable[[Record], None]
    ) -> None:
        self._book, self._show, self._receive = book, show, receive
        self._failed: set[str] = set()
        self._started: dict[str, float] = {}
        self._operations: dict[str, int] = {}

    def hook(self) -> Hook:
        """The hook that reports them."""
        return hook(self)

    def began(self, compile: str, code: types.CodeType, program: Any) -> None:
        """A compile begins."""
        with contextlib.suppress(Exception):  # never reaches the script
            self._book.guarded(self._begin)(compile, code, program)

    def traced(self, compile: str, operations: int) -> None:
        """Its graph is there."""
        self._operations[self._name(compile)] = operations

    def failed(self, compile: str) -> None:
        """It ends with an exception: what PyTorch says of other compiles that do."""
        if compile not in self._failed:
            self._failed.add(compile)
            self._book.guarded(self._receive)(Record(_FAILS, {}, compile, 0, ""))

    def completed(self, record: Record) -> Record:
        """A record with the facts that PyTorch leaves out of the metrics of such a compile."""
        if record.event != _ENDS or record.compile not in self._started:
            return record
        name = record.compile
        facts = {
            **record.facts,
            "has_guarded_code": name in self._operations,
            "graph_op_count": self._operations.get(name),
            "entire_frame_compile_time_s": time.perf_counter() - self._started[name],
        }
        return dataclasses.replace(record, facts=facts)

    def _begin(self, compile: str, code: types.CodeType, program: Any) -> None:
        name = self._book.compiles.name_of(Record(_BEGINS, {}, compile, 0, ""))
        if name is None:
            return
        self._started[name] = time.perf_counter()
        self._book.put_compile(self._book.compiles.began_ahead(name, code, name_of_program(program)))
        self._show(name, code)

    def _name(self, compile: str) -> str:
        return self._book.compiles.name_of(Record("", {}, compile, 0, "")) or compile
