"""The lines that kernels of a run have in common are stored once; the facts of a kernel have their numbers.

While a run goes on each of its kernels is stored with its lines, as older versions of irscope always did; when it has
ended all of them are stored again with numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from irscope.protocol import FileLines, Kernel, Origin, from_json, to_json

_SHARED = (Origin, FileLines)


def with_numbers(kernels: Iterable[Kernel]) -> tuple[list[str], str]:
    """The facts of each kernel, and what their numbers refer to, as JSON texts."""
    numbers: dict[Any, int] = {}
    refer = dict.fromkeys(_SHARED, lambda place: numbers.setdefault(place, len(numbers)))
    return [json.dumps(to_json(kernel, refer)) for kernel in kernels], json.dumps(to_json(list(numbers)))


def without_numbers(facts: Iterable[str], places: str | None) -> list[Kernel]:
    """The inverse of `with_numbers`, also for facts that have the lines themselves.

    Raises ValueError for a number that refers to nothing, and what `from_json` raises.
    """
    stored = from_json(tuple[Any, ...], json.loads(places or "[]"))
    refer = {cls: _reader(cls, stored) for cls in _SHARED}
    return [from_json(Kernel, json.loads(one), refer) for one in facts]


def _reader(cls: type, stored: tuple[Any, ...]) -> Callable[[Any], Any]:
    read: dict[int, Any] = {}

    def place(data: Any) -> Any:
        if type(data) is not int:
            return from_json(cls, data)
        if data not in read:
            if not 0 <= data < len(stored):
                raise ValueError(f"a kernel refers to line {data} of the run, which has {len(stored)}")
            read[data] = from_json(cls, stored[data])
        return read[data]

    return place
