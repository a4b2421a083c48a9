"""PyTorch's own words of a graph break, cleaned for people."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.events.break_message import BreakMessage
from irscope.vocabulary.patterns import pattern

_EMPTY_ADVICE = pattern(
    r"^(It may be possible to write Dynamo tracing rules|This is likely to be a Dynamo bug|Please (report|file|open) an issue"
    r"|This graph break is fundamental|This graph break may be difficult to debug|Report an issue to PyTorch"
    r"|File an issue to PyTorch|Your code may result in an error when running in eager)"
)
_OBJECTS = pattern(r" at 0x[0-9a-f]+")
_INTERNALS = pattern(r"\b(LazyVariableTracker\(\w+: )?(\w+Variable)\((?:[^()]|\([^()]*\))*\)\)?")
_COMPUTED = pattern(r'# File "(?P<file>[^"]+)", line (?P<line>\d+), in \S+?, code: (?P<code>.*)')
_ATTRIBUTED = pattern(
    r'^  \w*Tensor\w*\(.*\) originated from:\n  File "(?P<file>[^"]+)", line (?P<line>\d+)\n\s*(?P<code>.*)$',
    re.MULTILINE,
)


def hints_of(message: BreakMessage) -> list[str]:
    """PyTorch's hints, without those that are not about the user's code."""
    return [" ".join(hint.split()).rstrip(".") for hint in message.hints if not _EMPTY_ADVICE.match(hint.strip())]


def explanation_of(message: BreakMessage) -> str:
    """PyTorch's reason on one line, without addresses and the names of its inner classes."""
    text = _OBJECTS.sub("", " ".join(message.explanation.split()))
    context = _OBJECTS.sub("", " ".join(message.context.split()))
    if context and len(context) <= 120 and not _INTERNALS.search(context) and context not in text:
        text = f"{text} ({context})" if text else context
    return text


def type_of(message: BreakMessage) -> str:
    """The type as it is after a colon: ``Data-dependent`` is ``data-dependent``, ``RNN`` stays."""
    text = message.type.strip().rstrip(".")
    return text[:1].lower() + text[1:] if text[:2].istitle() else text


def places_of_tensors(payload: str) -> Iterator[tuple[str, int, str]]:
    """Where the tensors of a break were computed, as PyTorch says it: files, lines and their code."""
    for places in (_COMPUTED, _ATTRIBUTED):
        for match in places.finditer(payload):
            yield match["file"], int(match["line"]), match["code"].strip()
