"""PyTorch's own words, cleaned: for breaks without a rule, and for what a break led to."""

from __future__ import annotations

from irscope.events.break_words import explanation_of, hints_of, type_of
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot

_SEQUELS = {
    "GB7000": "It is inside of a loop, where a graph cannot be cut and resumed, so the whole function runs as plain Python.",
    "GB0066": "It is inside of a `with` block that a graph cannot leave and enter again, so the whole function runs as plain Python.",
    "GB0092": "Something that is alive here cannot be carried over the cut, so the whole function runs as plain Python.",
    "GB0065": "It is in a function that is called from the compiled one; the graph is cut at that call.",
}


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
