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
_USUAL = 1 << 20
"""Whole numbers from 1 up to here are within all bounds."""
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


class MetadataReader:
    """Reads the metadata of the records of one log."""

    def __init__(self) -> None:
        self._odd = 0
        self._decoder = BoundedDecoder(self._note)

    def _note(self) -> None:
        self._odd += 1

    def read(self, line: bytes, note: Callable[[str], None]) -> dict[str, Any]:
        """The metadata that a line begins with.  Raises NotMetadata.

        Args:
            note: Called with what is wrong with them, each time.
        """
        text = line.decode("utf-8", "replace")
        self._odd = 0
        try:
            metadata, end = self._decoder.raw_decode(text)
            if _HALF.search(line) is not None or len(line) > _LONGEST_TEXT:
                metadata = _with_storable_texts(metadata)
            if isinstance(metadata, (dict, list)):
                self._bound(metadata)
        except (ValueError, RecursionError) as error:
            what = "is nested too deep" if isinstance(error, RecursionError) else "cannot be read"
            raise NotMetadata(f"a record's metadata {what}") from error
        if not isinstance(metadata, dict) or any(not _is_id(metadata.get(key)) for key in _IDS):
            raise NotMetadata("a record's metadata is not what PyTorch writes")
        if text[end:].strip():
            note("more text follows a record's metadata")
        for _ in range(self._odd):
            note("a number is out of bounds, or is not one")
        return metadata

    def _bound(self, value: dict[str, Any] | list[Any]) -> None:
        """Bounds the numbers whose meaning is known, wherever they are."""
        if isinstance(value, dict):
            for key in _BOUNDED.keys() & value:
                number = value[key]
                if number is not None and not (number.__class__ is int and 0 < number < _USUAL):
                    bounded = _BOUNDED[key](number)
                    self._odd += bounded != number
                    value[key] = _DEFAULTS.get(key) if bounded is None else bounded
        for item in value.values() if isinstance(value, dict) else value:
            if item.__class__ is dict or item.__class__ is list:
                self._bound(item)


def _with_storable_texts(value: Any) -> Any:
    """The same with texts cut, and a question mark in place of a lone surrogate, which no file and no store can hold."""
    if isinstance(value, str):
        return value[:_LONGEST_TEXT].encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_with_storable_texts(item) for item in value]
    if isinstance(value, dict):
        return {_with_storable_texts(key): _with_storable_texts(item) for key, item in value.items()}
    return value


def _is_id(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value <= _MOST_ID)
