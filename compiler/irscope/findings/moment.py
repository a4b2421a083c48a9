"""What a finding's detector is given: one event, with what is around it at this very moment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import Any

from irscope.events.compiles import CompileBook
from irscope.events.stack import told_now
from irscope.events.trace import Record
from irscope.internals.dynamo_frames import break_error, is_fullgraph
from irscope.protocol import Compile, Finding
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Known:
    """What the run has shown so far.

    Args:
        compiles: The compiles.
        findings: The findings, one for each cause.
        notes: What detectors keep from one event for a later one, by their own name.
    """

    compiles: CompileBook = field(default_factory=CompileBook)
    findings: Collection[Finding] = ()
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """An event, as it happens.

    Args:
        record: The record of the trace; of a signal, one with its name.
        compile: What is known about the compile it belongs to; None if it belongs to none or to one that has not begun.
        error: The exception in flight, if any.
        fullgraph: Whether a graph break is an error here.
        known: What the run has shown so far.
    """

    record: Record
    compile: Compile | None
    error: BaseException | None
    fullgraph: bool
    known: Known = field(default_factory=Known)


def look(record: Record, compile: Compile | None, known: Known | None = None) -> Moment:
    """The moment at which an event is being handled, on the stack on which it was written."""
    if (told := told_now()) is not None:
        return Moment(record, compile, told.error, told.fullgraph, known or Known())
    return Moment(record, compile, break_error(), is_fullgraph(), known or Known())
