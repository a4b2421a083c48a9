"""Numbers from outside, within bounds: an argument, a trace and a profile may have any.

What passes here can be kept in the store and computed with: SQLite takes it, and a sum of millions of it is finite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

MOST_WHOLE = (1 << 63) - 1
MOST_SECONDS = 1e12
"""30,000 years: also times that count from a machine's start or from 1970."""
_ODD = re.compile(r"\d{19}|\d[eE]\+?\d{2}|NaN|Infinity")
"""What a number has in JSON that may be out of bounds."""


class BoundedDecoder(json.JSONDecoder):
    """Reads JSON.  A number that is out of bounds becomes the bound, and ``NaN`` becomes null.

    Args:
        note: Called for each of them.
    """

    def __init__(self, note: Callable[[], None]) -> None:
        super().__init__(parse_int=self._whole, parse_float=self._real, parse_constant=self._constant)
        self._note = note

    def _whole(self, text: str) -> int:
        if len(text) < 19:  # most are
            return int(text)
        number = int(text) if len(text) <= 20 else -MOST_WHOLE - 1 if text[0] == "-" else MOST_WHOLE + 1
        bounded = min(max(number, -MOST_WHOLE), MOST_WHOLE)
        if bounded != number or len(text) > 20:
            self._note()
        return bounded

    def _real(self, text: str) -> float:
        number = float(text)
        bounded = min(max(number, -float(MOST_WHOLE)), float(MOST_WHOLE))
        if bounded != number:
            self._note()
        return bounded

    def _constant(self, name: str) -> float | None:
        self._note()
        return None if name == "NaN" else self._real(name)


def bounded_json(text: str) -> tuple[str, bool]:
    """A text, and whether numbers of it were out of bounds: where it is JSON, they are brought there.

    A text that is not JSON is left as it is.
    """
    if text[:1] not in ("{", "[") or _ODD.search(text) is None:
        return text, False
    odd: list[None] = []
    try:
        value = BoundedDecoder(lambda: odd.append(None)).decode(text)
    except (ValueError, RecursionError):
        return text, False
    return (json.dumps(value), True) if odd else (text, False)


def whole(value: Any, least: int = 0, most: int = MOST_WHOLE) -> int | None:
    """The value as a whole number, brought to the nearer bound; None if it is not a number (a boolean, a text)."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return min(max(value, least), most) if type(value) is int else None


def seconds(value: Any, least: float = 0.0) -> float | None:
    """Like `whole`, for a time in seconds."""
    if type(value) not in (int, float) or value != value:
        return None
    return float(min(max(value, least), MOST_SECONDS))
