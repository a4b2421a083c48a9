"""Graph break: Dynamo could not go on tracing, so the graph is cut here, or the whole frame runs as plain Python."""

from __future__ import annotations

import re

from irscope.capture.stack import Place, innermost_user, live_places, related_to, traced_places
from irscope.findings.advice import BreakContext, Words, words_for
from irscope.findings.breakmessage import BreakMessage, parse_break_messages
from irscope.findings.moment import Moment
from irscope.protocol import Finding, Fix, Severity
from irscope.source import node_at_range, range_of_line

KIND = "graph-break"
EVENT = "dynamo_graph_break_reason"
_HEADER = re.compile(r"Graph break in user code at (?P<file>.+):(?P<line>\d+)")


def detect(moment: Moment) -> Finding | None:
    """The finding of a ``dynamo_graph_break_reason`` record; nothing for one that repeats another event."""
    header = _HEADER.search(moment.record.payload)
    if header is None and "Graph break: torch.compile cannot properly resume" not in moment.record.payload:
        return None
    text = str(moment.error) if moment.error is not None else moment.record.payload
    messages = parse_break_messages(text) or parse_break_messages(moment.record.payload)
    return make(moment, messages, is_skipped(moment.record.payload))


def is_skipped(payload: str) -> bool:
    """Whether PyTorch gave up on the whole frame instead of cutting the graph."""
    return "falling back to eager" in payload or "will skip tracing the frame" in payload


def make(moment: Moment, messages: list[BreakMessage], skipped: bool) -> Finding | None:
    """The finding at the innermost user frame of what was being traced, else of the Python stack."""
    places = [*live_places(), *traced_places(moment.error)]
    at = innermost_user(places)
    if at is None:
        if (header := _HEADER.search(moment.record.payload)) is None:
            return None
        file, line = header["file"], int(header["line"])
        places, at = [Place(file, "", range_of_line(file, line))], 0
    place = places[at]
    cause = messages[0] if messages else None
    words = words_at(place, messages, moment.record.payload, skipped)
    return Finding(
        kind=KIND,
        code=(cause.code if cause else "") or "graph-break",
        severity=Severity.WARNING,
        message=words.message,
        explanation=words.explanation,
        hints=words.hints,
        link=cause.link if cause else None,
        file=place.file,
        range=place.range,
        count=1,
        compiles=(moment.record.compile,) if moment.record.compile else (),
        related=related_to(places, at),
        fixes=fixes_of(words),
    )


def fixes_of(words: Words) -> tuple[Fix, ...]:
    """The options that can be applied as they are."""
    return tuple(Fix(option.do, option.caveat, option.edits) for option in words.options if option.edits)


def words_at(place: Place, messages: list[BreakMessage], payload: str, skipped: bool) -> Words:
    """What to say of a break at a place."""
    node = node_at_range(place.file, place.range)
    context = BreakContext(tuple(messages), place.file, place.function, place.range, node, payload, skipped)
    return words_for(context)
