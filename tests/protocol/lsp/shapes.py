"""Whether JSON has the shape of a Python type that the extension's types are generated from."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, Union

from irscope_server.base.wire import wire_name
from irscope_server.graph.answers import GraphColumns, GraphHead


def misfits(hint: Any, data: Any, at: str = "") -> list[str]:
    """Where the data differs from the type; nothing where it fits."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if typing.is_typeddict(hint):
        return _of_object(hint, data, at, {name: name for name in typing.get_type_hints(hint)}, hint.__required_keys__)
    if dataclasses.is_dataclass(hint):
        names = {wire_name(field.name): field.name for field in dataclasses.fields(hint)}
        return _of_object(hint, data, at, names, names.keys())
    if origin in (Union, types.UnionType):
        return [] if any(misfits(one, data) == [] for one in arguments) else [f"{at}: {data!r} is not {hint}"]
    if origin in (list, tuple):
        if not isinstance(data, list):
            return [f"{at}: {data!r} is not a list"]
        return [each for number, one in enumerate(data) for each in misfits(arguments[0], one, f"{at}[{number}]")]
    fits = isinstance(data, (int, float) if hint is float else hint) and (hint is bool or not isinstance(data, bool))
    return [] if fits else [f"{at}: {data!r} is not {hint}"]


def _of_object(hint: Any, data: Any, at: str, names: dict[str, str], required: Any) -> list[str]:
    if not isinstance(data, dict):
        return [f"{at}: {data!r} is not an object"]
    wrong = [f"{at}.{key} is missing" for key in required if key not in data]
    wrong += [f"{at}.{key} is not declared" for key in data if key not in names]
    hints = typing.get_type_hints(hint)
    return wrong + [
        each for key in data if key in names for each in misfits(hints[names[key]], data[key], f"{at}.{key}")
    ]


def graph_misfits(answer: dict[str, Any]) -> list[str]:
    """Where an answer to ``irscope/graph`` differs from its type: a head and the columns in one object."""
    of_head = {wire_name(field.name) for field in dataclasses.fields(GraphHead)}
    head = {key: value for key, value in answer.items() if key in of_head}
    body = {key: value for key, value in answer.items() if key not in of_head}
    return misfits(GraphHead, head, "head") + misfits(GraphColumns, body, "columns")
