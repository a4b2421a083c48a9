"""The metadata of a record, as a trace has them: whatever they say, the store can hold it and capture can compute with it.

A number that is out of bounds becomes the bound, what is not a number where PyTorch writes one is left out, and a text
is cut.  Each of them counts as damaged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from irscope.vocabulary.bounds import BoundedDecoder, seconds, whole

_LONGEST_TEXT = 1 << 20
_MOST_LINES = (1 << 30) - 1
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""A surrogate as JSON escapes it."""
_IDS = ("frame_id", "frame_compile_id", "attempt", "compiled_autograd_id")
_MOST_ID = (1 << 40) - 1
_LINES, _COUNTS = ("line", "co_firstlineno"), ("graph_op_count",)
_TIMES = ("entire_frame_compile_time_s", "inductor_compile_time_s")
_BOUNDED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_LINES, lambda value: whole(value, 1, _MOST_LINES)),
    **dict.fromkeys(_COUNTS, whole),
    **dict.fromkeys(_TIMES, seconds),
    "rank": lambda value: whole(value, 0, _MOST_ID),
}
"""By key, wherever it is, what bounds its value."""
_DEFAULTS: dict[str, Any] = {**dict.fromkeys(_LINES, 1), **dict.fromkeys((*_COUNTS, *_TIMES), 0)}
"""What stands for a value that is not a number; None for any other key."""


class NotMetadata(Exception):
    """A text is not the metadata of a record; the message says why."""


def read_metadata(line: bytes, note: Callable[[str], None]) -> dict[str, Any]:
    """The metadata that a line begins with.  Raises NotMetadata.

    Parameters
    ----------
    note
        Called with what is wrong with them, each time.
    """
    text = line.decode("utf-8", "replace")
    odd: list[None] = []
    try:
        metadata, end = BoundedDecoder(lambda: odd.append(None)).raw_decode(text)
        if isinstance(metadata, dict):
            has_odd_texts = _HALF.search(line) is not None or len(line) > _LONGEST_TEXT
            metadata = _bounded(metadata, odd, has_odd_texts)
    except (ValueError, RecursionError) as error:
        what = "is nested too deep" if isinstance(error, RecursionError) else "cannot be read"
        raise NotMetadata(f"a record's metadata {what}") from error
    if not isinstance(metadata, dict) or any(not _is_id(metadata.get(key)) for key in _IDS):
        raise NotMetadata("a record's metadata is not what PyTorch writes")
    if text[end:].strip():
        note("more text follows a record's metadata")
    for _ in odd:
        note("a number is out of bounds, or is not one")
    return metadata


def _bounded(value: Any, odd: list[None], has_odd_texts: bool) -> Any:
    """The same within bounds; a lone surrogate, which no file and no store can hold, becomes a question mark."""
    if isinstance(value, dict):
        made = {}
        for key, item in value.items():
            key = _text(key) if has_odd_texts else key
            bound = _BOUNDED.get(key)
            made[key] = _bounded(item, odd, has_odd_texts) if bound is None else _number(key, item, bound, odd)
        return made
    if isinstance(value, list):
        return [_bounded(item, odd, has_odd_texts) for item in value]
    return _text(value) if has_odd_texts and isinstance(value, str) else value


def _number(key: str, value: Any, bound: Callable[[Any], Any], odd: list[None]) -> Any:
    if value is None:
        return None
    bounded = bound(value)
    if bounded != value:
        odd.append(None)
    return _DEFAULTS.get(key) if bounded is None else bounded


def _text(text: str) -> str:
    return text[:_LONGEST_TEXT].encode("utf-8", "replace").decode()


def _is_id(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value <= _MOST_ID)
