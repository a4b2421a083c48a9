"""What a break led to: the further messages of its chain, and why a whole function was given up."""

from __future__ import annotations

from irscope.fixing.advice.fallback import explanation_of
from irscope.fixing.advice.spot import Spot

_SEQUELS = {
    "GB7000": "It is inside of a loop, where a graph cannot be cut and resumed, so the whole function runs as plain Python.",
    "GB0066": "It is inside of a `with` block that a graph cannot leave and enter again, so the whole function runs as plain Python.",
    "GB0092": "Something that is alive here cannot be carried over the cut, so the whole function runs as plain Python.",
    "GB0065": "It is in a function that is called from the compiled one; the graph is cut at that call.",
}


def sequel_of(spot: Spot) -> list[str]:
    """A sentence for each further message."""
    said = []
    for message in spot.context.messages[1:]:
        text = _SEQUELS.get(message.code) or f"Then: {message.type}. {explanation_of(message)}".strip()
        if text not in said:
            said.append(text)
    return said
