"""Compiles ahead of time as any other compile of a run (`irscope.internals.ahead_of_time`)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.events.trace import Record
from irscope.internals.ahead_of_time import hooks
from irscope.internals.hooks import Hook
from irscope.protocol import CaptureGap

_BEGINS, _FAILS, _ENDS = "dynamo_start", "dynamo_error", "compilation_metrics"


class AheadOfTime:
    """Adds the records and facts that PyTorch does not write of these compiles.

    Args:
        receive: Takes a record as PyTorch would have written it.
    """

    def __init__(self, book: RunBook, receive: Callable[[Record], None]) -> None:
        self._book, self._receive = book, book.guarded(receive)
        self._started: dict[str, float] = {}
        self._operations: dict[str, int] = {}
        self._failed: set[str] = set()

    def hooks(self) -> list[Hook]:
        """The hooks that report them."""
        return hooks(self)

    def began(self, compile: str) -> None:
        """Its first record."""
        self._started[compile] = time.perf_counter()
        self._receive(Record(_BEGINS, {}, compile, 0, ""))

    def traced(self, compile: str, captured: Any) -> None:
        """Counts the operations of its graph."""
        self._book.guarded(self._count)(compile, lambda: captured.backend_input.graph_module)

    def ended(self, compile: str, graph: Any) -> None:
        """Its last record."""
        self._book.guarded(self._count)(compile, lambda: graph)
        self._receive(Record(_ENDS, {}, compile, 0, ""))

    def failed(self, compile: str) -> None:
        """Its error, once."""
        if compile not in self._failed:
            self._failed.add(compile)
            self._receive(Record(_FAILS, {}, compile, 0, ""))

    def missed(self, error: Exception) -> None:
        """A gap."""
        self._book.gap(CaptureGap("what is compiled ahead of time", f"{type(error).__name__}: {error}"))

    def completed(self, record: Record) -> Record:
        """A record by PyTorch's name of its compile, with the facts that PyTorch leaves out of the metrics of these."""
        if record.event != _ENDS or record.compile is None or record.compile not in self._started:
            return record
        facts = {
            **record.facts,
            "graph_op_count": self._operations.get(record.compile),
            "entire_frame_compile_time_s": time.perf_counter() - self._started[record.compile],
        }
        return dataclasses.replace(record, facts=facts)

    def _count(self, compile: str, graph: Callable[[], Any]) -> None:
        nodes = graph().graph.nodes
        self._operations[compile] = sum(node.op.startswith("call_") for node in nodes)
