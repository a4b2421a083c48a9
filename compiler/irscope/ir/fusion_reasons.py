"""Why two nodes were not fused, in Inductor's words."""

from __future__ import annotations

from typing import Any

Reasons = dict[tuple[str, str], tuple[str, tuple[Any, ...]]]
"""The last reason for not fusing two nodes, with the values that go into its text, by their names."""


LIBRARY_REASON = "a call into a library"
"""What is said of a pair of which one is one: Inductor does not consider it."""
_MEANINGS = {
    "no shared data": "they access the buffer in a different order, shape or part, so fusing saves no memory access",
    "intermediate nodes between": "a node between them reads the first and feeds the second",
    "will create cycle": "each would depend on the other",
    "exceeds max fusion": "the fused kernel would be larger than Inductor's settings allow",
    LIBRARY_REASON: "Inductor cannot fuse it with its own code",
}
"""What Inductor's words mean, if they do not speak for themselves."""


def told(reason: str) -> str:
    """A reason for people: what it means first, since Inductor's words alone may say the opposite of what is shown."""
    meaning = next((words for start, words in _MEANINGS.items() if reason.startswith(start)), "")
    return f"{meaning} ({reason})" if meaning else reason


def reason_text(reason: str, args: tuple[Any, ...]) -> str:
    """Inductor's reason, with what it names."""
    try:
        return (reason % args).strip().rstrip(".")
    except (TypeError, ValueError):
        return reason
