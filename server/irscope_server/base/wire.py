"""How the types of `params` and `results` go over the wire, with their names in camelCase.

By hand, since pygls' way with unknown messages (nested named tuples) is slow and renames keys.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import typing
from typing import Any

from irscope.protocol import Lane


class BadParams(ValueError):
    """What a client sent does not have the shape that docs/PROTOCOL.md gives it."""


_PLAIN = frozenset({str, int, float, bool, type(None)})


def to_wire(value: Any) -> Any:
    """Dataclasses to what `json` can write, names in camelCase."""
    if type(value) in _PLAIN:  # most of what there is: a chart has a hundred thousand numbers
        return value
    if not isinstance(value, type) and dataclasses.is_dataclass(value):
        return {wire: to_wire(getattr(value, name)) for name, wire in _names(value.__class__)}
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    return value.value if isinstance(value, enum.Enum) else value


def from_wire(cls: type[Any], data: Any) -> Any:
    """Parameters of a custom message.  Unknown keys are passed over.

    Raises:
        BadParams: A key is missing or has another type; the message names it.
    """
    data = {} if data is None else data
    if not isinstance(data, dict):
        raise BadParams(f"the parameters must be an object, not {type(data).__name__}")
    hints = _hints(typing.cast(Any, cls))
    values = {}
    for field in dataclasses.fields(cls):
        name = wire_name(field.name)
        if name in data and not (data[name] is None and field.default is not dataclasses.MISSING):
            values[field.name] = _checked(name, hints[field.name], data[name])
        elif field.default is dataclasses.MISSING:
            raise BadParams(f"{name!r} is missing")
    return cls(**values)


def _checked(name: str, hint: Any, value: Any) -> Any:
    if hint is Lane:
        try:
            return Lane(value)
        except ValueError:
            raise BadParams(f"{name!r} must be 'fast' or 'deep', not {value!r}") from None
    if hint == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise BadParams(f"{name!r} must be an array of strings")
        return tuple(value)
    wanted = {str: str, int: int, bool: bool}.get(hint, str)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise BadParams(f"{name!r} must be a {wanted.__name__}, not {type(value).__name__}")
    return value


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@functools.cache
def _names(cls: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, wire_name(field.name)) for field in dataclasses.fields(cls))


def wire_name(name: str) -> str:
    """The name of a field as it is in messages: ``line_end`` is ``lineEnd``; ``pass_`` is ``pass``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
