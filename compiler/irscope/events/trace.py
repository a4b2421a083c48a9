"""PyTorch's structured trace, the spine of every capture: its records, parsed once, for live and stored traces alike.

The records are those behind ``TORCH_TRACE``: a dict of metadata in which one key names the event, and a payload text.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable
from typing import Any

from irscope.events.listening import LogHandler
from irscope.internals.unread import TIMED
from irscope.vocabulary.records import dataclass

GRAPH_BREAK = "dynamo_graph_break_reason"
RECOMPILATION = "recompile_reasons"
# Keys of a record's metadata that say where it belongs, not what happened (torch._logging.trace_structured).
_CONTEXT_KEYS = frozenset(
    [
        "rank",
        "compiled_autograd_id",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "severity",
        "timestamp",
        "pathname",
        "lineno",
        "thread",
        "subgraph_name",
        "has_payload",
        "stack",
    ]
)


@dataclass(frozen=True)
class Record:
    """One event of the trace.

    Args:
        event: ``dynamo_start``, ``aot_forward_graph``, … or, for an artifact, its own name (``recompile_reasons``).
        facts: The event's metadata; empty if it has none.
        compile: The compile it belongs to as PyTorch prints it (``0/0``), None if it belongs to none.
        attempt: How often this compile had been restarted.
        payload: Its text; empty if it has none.
    """

    event: str
    facts: dict[str, Any]
    compile: str | None
    attempt: int
    payload: str


def parse_record(metadata: dict[str, Any], payload: object) -> Record | None:
    """A record from its metadata and payload; None for metadata that names no event."""
    event = next((key for key in metadata if key not in _CONTEXT_KEYS), None)
    if event is None:
        return None
    facts = metadata[event]
    if event == "artifact" and isinstance(facts, dict):
        event = str(facts.get("name", event))
    return Record(
        event=event,
        facts=_facts(facts),
        compile=_compile_id(metadata),
        attempt=int(metadata.get("attempt") or 0),
        payload=payload if isinstance(payload, str) else "",
    )


def _facts(value: object) -> dict[str, Any]:
    """A dict as it is; the pair of an interned string (the event ``str``) as ``text`` and ``index``."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)) and len(value) == 2:
        return {"text": value[0], "index": value[1]}
    return {}


def _compile_id(metadata: dict[str, Any]) -> str | None:
    """The ID as ``torch._guards.CompileId`` prints itself."""
    autograd, frame, count = (metadata.get(f"{key}_id") for key in ("compiled_autograd", "frame", "frame_compile"))
    if autograd is None:
        return None if frame is None else f"{frame}/{count}"
    return f"!{autograd}" + ("" if frame is None else f"/{frame}/{count}")


def is_skipped(payload: str) -> bool:
    """Whether a `GRAPH_BREAK` record says that PyTorch gave up on the whole frame instead of cutting the graph."""
    return "falling back to eager" in payload or "will skip tracing the frame" in payload


def reasons_in(payload: str) -> list[str]:
    """The reasons of a `RECOMPILATION` record, newest compile first; PyTorch writes one alone as bare text."""
    try:
        data = json.loads(payload)
    except ValueError:
        data = payload
    return [str(reason) for reason in (data if isinstance(data, list) else [data]) if str(reason).strip()]


class TraceHandler(LogHandler):
    """Receives every record of this process's trace, synchronously, on the stack of what happened.

    Python's logger can have its handler before torch is imported; torch keeps handlers that it did not make.
    """

    LOGGER = "torch.__trace"

    def __init__(
        self, receive: Callable[[Record], None], receive_timing: Callable[[Record], None] | None = None
    ) -> None:
        super().__init__(logging.DEBUG)
        self._receive, self._receive_timing = receive, receive_timing

    def emit(self, record: logging.LogRecord) -> None:
        """Timed events, of which there are many, go to ``receive_timing`` alone."""
        metadata = getattr(record, "metadata", None)
        if not isinstance(metadata, dict):
            return
        receive: Callable[[Record], None] | None = self._receive
        if TIMED in metadata:
            receive = self._receive_timing
            metadata = {**metadata, TIMED: {"thread": record.thread}}
        if receive is not None and (parsed := parse_record(metadata, getattr(record, "payload", None))) is not None:
            receive(parsed)

    def timed(self, ids: dict[str, Any], event: dict[str, Any]) -> None:
        """Takes a timed event of this thread as PyTorch has it.

        Args:
            ids: The ids of its compile, as the metadata of a record have them.
            event: What the record's payload would be as JSON.
        """
        if (receive := self._receive_timing) is None:
            return
        facts = {"thread": threading.get_ident(), "event": event}
        with self.lock or contextlib.nullcontext():
            receive(Record(TIMED, facts, _compile_id(ids), int(ids.get("attempt") or 0), ""))

    def handleError(self, record: logging.LogRecord) -> None:
        """Prints nothing on the script's stderr: the receivers of the records handle their own errors."""
