"""Plain data to JSON and back."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Union

T = TypeVar("T")
_Refer = Mapping[Any, Callable[[Any], Any]]
_NONE: _Refer = {}


def to_json(value: Any, refer: _Refer = _NONE) -> Any:
    """Dataclasses to dicts, tuples to lists, enums to their values.

    Args:
        refer: By class what gives the JSON value that refers to an object of it, which is stored elsewhere.
    """
    if value is None or type(value) in (str, int, float, bool):  # most are; a large answer has a million
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if value.__class__ in refer:
        return refer[value.__class__](value)
    if names := _names(value.__class__):
        return {name: to_json(getattr(value, name), refer) for name in names}
    if isinstance(value, (list, tuple)):
        return [to_json(item, refer) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item, refer) for key, item in value.items()}
    return value


def json_text(data: Any) -> str | None:
    """Plain JSON values as short text; None for None."""
    return None if data is None else json.dumps(data, separators=(",", ":"))


@functools.cache
def _names(cls: type) -> tuple[str, ...]:
    """The names of the fields of a dataclass."""
    return tuple(field.name for field in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else ()


def from_json(cls: type[T], data: Any, refer: _Refer = _NONE) -> T:
    """The inverse of `to_json` for the dataclasses of this package.

    Unknown keys are passed over, so that an older reader understands a newer writer.
    What it is given is not trusted: a script can write where its run does.
    Raises KeyError for a missing field without default, ValueError for a value of another type or outside its enum.

    Args:
        refer: By class what decodes an object of it, or what refers to one.
    """
    return typing.cast(T, _decode(cls, data, refer))


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode(hint: Any, data: Any, refer: _Refer) -> Any:
    if refer and hint in refer:
        return refer[hint](data)
    if hint in (str, bool):  # these first, since nearly all values are
        return _checked(data, hint)
    if hint in (int, float):
        return _number(hint, data)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        members = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        if len(members) > 1 and all(map(dataclasses.is_dataclass, members)):
            return _decode_by_kind(members, data, refer)
        return _decode(members[0], data, refer)
    if origin is tuple:
        item = typing.get_args(hint)[0]
        entries = _checked(data, list, tuple)
        if item is int and all(
            type(entry) is int and 0 <= entry < 2**63 for entry in entries
        ):  # the lines of a kernel are many
            return tuple(entries)
        return tuple(_decode(item, entry, refer) for entry in entries)
    if origin is dict:
        return {
            _decode(str, key, refer): _decode(typing.get_args(hint)[1], value, refer)
            for key, value in _checked(data, dict).items()
        }
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _decode_dataclass(hint, _checked(data, dict), refer)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(_checked(data, str))
    return data


def _decode_dataclass(cls: Any, data: dict[str, Any], refer: _Refer) -> Any:
    hints = _hints(cls)
    values = {}
    for field in dataclasses.fields(cls):
        if field.name in data:
            values[field.name] = _decode(hints[field.name], data[field.name], refer)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise KeyError(f"{cls.__name__}.{field.name}")
    return cls(**values)


def _number(kind: type, data: Any) -> Any:
    number = _checked(data, int, float) if kind is float else _checked(data, int)
    if isinstance(data, bool) or not (math.isfinite(data) if isinstance(data, float) else -(2**63) <= data < 2**63):
        raise ValueError(f"not a number that can be kept: {str(data)[:40]}")
    return number


def _decode_by_kind(classes: list[Any], data: Any, refer: _Refer) -> Any:
    """An object of the class that its key ``kind`` names; None if only a newer irscope has that class."""
    kind = _checked(data, dict).get("kind")
    cls = next((cls for cls in classes if cls.kind == kind), None)
    return None if cls is None else _decode(cls, data, refer)


def _checked(data: Any, *kinds: type) -> Any:
    if not isinstance(data, kinds):
        raise ValueError(f"{type(data).__name__} where {' or '.join(kind.__name__ for kind in kinds)} is expected")
    return data


def encodable(data: Any) -> Any:
    """The same without lone surrogates, which no file, pipe or database takes; JSON can hold them."""
    if isinstance(data, str):
        return data.encode("utf-8", "replace").decode("utf-8")
    if isinstance(data, dict):
        return {encodable(key): encodable(value) for key, value in data.items()}
    return [encodable(item) for item in data] if isinstance(data, list) else data
