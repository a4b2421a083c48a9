"""The state of objects of libraries that keep something: buffers in memory, arrays, iterators, streams of random numbers."""

from __future__ import annotations

import array
import contextlib
import functools
import inspect
import io
import operator
import random
import sys
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.exporting import flatten

POSITION = " (its position)"
"""Ends the place of what each call moves on, and nothing can move back."""
_LONGEST = 400
_MOST_BYTES = 1 << 20
"""The most bytes of a buffer or an array that is looked at."""

_ARCHIVE, _END, _END_BYTES = b"PK\x03\x04", b"PK\x05\x06", 22
"""What a file of `torch.save` begins with, and what its last bytes begin with."""


def state_of_object(value: Any) -> tuple[str, Any, Callable[[], object] | None] | None:
    """What its place ends with, its state as a tensor or a text, and what puts it back; None for other objects."""
    torch: Any = sys.modules["torch"]
    generator: Any = getattr(torch, "Generator", ())
    numpy: Any = sys.modules.get("numpy", types.SimpleNamespace(ndarray=(), generic=()))
    streams: Any = sys.modules.get("numpy.random", types.SimpleNamespace(Generator=(), RandomState=()))
    if isinstance(value, (io.BytesIO, io.StringIO)):
        if value.closed:
            return "", "closed", None
        content, place = value.getvalue(), value.tell()
        looked, size = _without_marks(content), len(content)
        words = f"{looked[:_MOST_BYTES]!r} at " + (f"{place} of {size}" if looked is content else f"{place - size}")
        return "", short(words), lambda: _rewrite(value, content, place)
    if isinstance(value, (bytes, numpy.generic)):
        return "", short(repr(_without_marks(value)[:_MOST_BYTES] if isinstance(value, bytes) else value)), None
    if type(value) in (bytearray, array.array) and len(value) <= _MOST_BYTES:
        return "", short(repr(value)), functools.partial(value.__setitem__, slice(None), value[:])
    if isinstance(value, numpy.ndarray) and value.nbytes <= _MOST_BYTES:
        copy = value.copy()
        words = f"{value.dtype} {value.shape} {zlib.crc32(copy.tobytes())}" if value.dtype != object else repr(value)
        return "", short(words), functools.partial(value.__setitem__, ..., copy)
    if isinstance(value, generator):
        state = value.get_state()
        return "", state, functools.partial(value.set_state, state)
    if isinstance(value, random.Random):
        state = value.getstate()
        return "", short(repr(state)), functools.partial(value.setstate, state)
    if isinstance(value, streams.Generator):
        state = value.bit_generator.state
        return "", short(repr(state)), lambda: setattr(value.bit_generator, "state", state)
    if isinstance(value, streams.RandomState):
        state = value.get_state(legacy=False)
        return "", short(repr(state)), functools.partial(value.set_state, state)
    if isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools"):
        return POSITION, _position(value), None
    return None


def _without_marks(content: Any) -> Any:
    """What `torch.save` wrote, as it writes that without the attributes that Dynamo adds to parameters and buffers."""
    if not isinstance(content, bytes) or not content.startswith(_ARCHIVE) or len(content) > _MOST_BYTES:
        return content
    if not content.find(_END) == content.rfind(_END) == len(content) - _END_BYTES:
        return content  # there is more than one archive, or something after it
    torch: Any = sys.modules["torch"]
    with contextlib.suppress(Exception):  # it may be another archive, or hold objects that are not loaded unasked
        saved, written = torch.load(io.BytesIO(content), weights_only=True), io.BytesIO()
        for tensor in flatten(saved)[0]:
            for name in [name for name in getattr(tensor, "__dict__", ()) if name.startswith("_dynamo_")]:
                delattr(tensor, name)
        torch.save(saved, written)
        return written.getvalue()
    return content


def _rewrite(buffer: Any, content: Any, place: int) -> None:
    buffer.seek(0)
    buffer.truncate()
    buffer.write(content)
    buffer.seek(place)


def _position(iterator: Any) -> str:
    """How far an iterator has come."""
    if isinstance(iterator, types.GeneratorType):
        if iterator.gi_frame is None:
            return "ended"
        values = inspect.getgeneratorlocals(iterator).values()
        numbers = [value for value in values if isinstance(value, (int, float, str))]
        inner = "".join(_position(value) for value in values if isinstance(value, Iterator))
        return f"{iterator.gi_frame.f_lasti} {numbers}{inner}"
    left = operator.length_hint(iterator, -1)
    if left >= 0:
        return f"{left} left"
    with contextlib.suppress(Exception):  # not each iterator can be copied
        made = iterator.__reduce__()
        parts = [part for one in made[1:] for part in (one if isinstance(one, tuple) else (one,))]
        return " ".join(
            _position(part) if isinstance(part, Iterator) else str(part)
            for part in parts if isinstance(part, (int, Iterator))
        )  # fmt: skip
    return ""


def short(text: str) -> str:
    """A text, whose end is a checksum if it is long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… {zlib.crc32(text.encode('utf-8', 'replace'))}"
