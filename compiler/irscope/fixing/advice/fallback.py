"""PyTorch's own words, cleaned: for breaks without a rule, and for what a break led to."""

from __future__ import annotations

from irscope.events.break_message import BreakMessage
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.vocabulary.patterns import pattern

_EMPTY_ADVICE = pattern(
    r"^(It may be possible to write Dynamo tracing rules|This is likely to be a Dynamo bug|Please (report|file|open) an issue"
    r"|This graph break is fundamental|This graph break may be difficult to debug|Report an issue to PyTorch"
    r"|File an issue to PyTorch|Your code may result in an error when running in eager)"
)
_OBJECTS = pattern(r" at 0x[0-9a-f]+")
_INTERNALS = pattern(r"\b(LazyVariableTracker\(\w+: )?(\w+Variable)\((?:[^()]|\([^()]*\))*\)\)?")
_SEQUELS = {
    "GB7000": "It is inside of a loop, where a graph cannot be cut and resumed, so the whole function runs as plain Python.",
    "GB0066": "It is inside of a `with` block that a graph cannot leave and enter again, so the whole function runs as plain Python.",
    "GB0092": "Something that is alive here cannot be carried over the cut, so the whole function runs as plain Python.",
    "GB0065": "It is in a function that is called from the compiled one; the graph is cut at that call.",
}


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


def from_registry(spot: Spot) -> Advice:
    """Advice from PyTorch's own type, explanation and hints of a break."""
    cause = spot.cause
    node = spot.expression or spot.statement
    at = f" at {spot.short(node)}" if node is not None else ""
    what = f"{type_of(cause) or 'Dynamo cannot trace this'}{at}"
    return Advice(what, explanation_of(cause), tuple(map(Option, hints_of(cause))))


def sequel_of(spot: Spot) -> list[str]:
    """A sentence for each further message of a break's chain, and on why a whole function was given up."""
    messages = spot.context.messages[1:]
    said = [_SEQUELS.get(m.code) or f"Then: {m.type}. {explanation_of(m)}".strip() for m in messages]
    return list(dict.fromkeys(said))
