"""The Debug Adapter Protocol as data: what a request may hold, and the three ways in which one can fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from irscope.vocabulary.visible import visible

Body = dict[str, Any]

_MISSING: Any = object()


class RequestFailed(Exception):
    """A request that is answered with an error.  The subclass says whose fault it is.

    Args:
        message: One sentence or two for the user.
        show: Whether a client should put it before the user.
    """

    id = 1

    def __init__(self, message: str, *, show: bool = False) -> None:
        super().__init__(message)
        self.show = show


class WrongMessage(RequestFailed):
    """The client's fault: the message does not have the shape that the protocol gives it."""

    id = 2


class NotNow(RequestFailed):
    """Nobody's fault: it cannot be done in this state of the session."""

    id = 3


class Refused(RequestFailed):
    """It can never be done here: the run is a record, or the feature does not exist."""

    id = 4


class Cancelled(RequestFailed):
    """The client took the request back; the message is the word that the protocol gives to this."""

    id = 5

    def __init__(self) -> None:
        super().__init__("cancelled")


class Arguments:
    """The arguments of a request, read with their types.

    Each method raises `WrongMessage` where the argument is missing and has no default, or is of another type.
    """

    def __init__(self, values: Any, of: str = "arguments") -> None:
        if values is None:
            values = {}
        if not isinstance(values, dict):
            raise WrongMessage(f"{of!r} must be an object, not {_type(values)}.")
        self._values: Mapping[str, Any] = values

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def text(self, name: str, default: str = _MISSING) -> str:
        """The text of an argument.  Raises WrongMessage if it is missing without a default, or is not text."""
        return cast(str, self._get(name, str, default))

    def integer(self, name: str, default: int = _MISSING, *, least: int = -(2**53), most: int = 2**53) -> int:
        """The integer of an argument.  Raises WrongMessage if it is missing, has another type or is out of range."""
        value = cast(int, self._get(name, int, default))
        if value is not default and not least <= value <= most:
            raise WrongMessage(f"{name!r} must be from {least} to {most}, not {value}.")
        return value

    def number(self, name: str, default: float = _MISSING) -> float:
        """The number of an argument, as a float.  Raises WrongMessage if it is missing or has another type."""
        try:
            return float(self._get(name, (int, float), default))
        except OverflowError:
            raise WrongMessage(f"{name!r} is too large a number.") from None

    def flag(self, name: str, default: bool = False) -> bool:
        """The truth value of an argument.  Raises WrongMessage if it has another type."""
        return cast(bool, self._get(name, bool, default))

    def object(self, name: str) -> Arguments:
        """An object, empty if it is missing."""
        return Arguments(self._values.get(name), name)

    def objects(self, name: str) -> list[Arguments]:
        """A list of objects, empty if it is missing."""
        return [Arguments(each, f"{name}[]") for each in self._get(name, list, [])]

    def texts(self, name: str) -> list[str]:
        """A list of strings, empty if it is missing."""
        values = self._get(name, list, [])
        for each in values:
            if not isinstance(each, str):
                raise WrongMessage(f"{name!r} must hold strings, not {_type(each)}.")
        return cast("list[str]", values)

    def integers(self, name: str) -> list[int]:
        """A list of integers, empty if it is missing."""
        return [Arguments({name: each}).integer(name) for each in self._get(name, list, [])]

    def variables(self, name: str) -> dict[str, str]:
        """An object of strings (environment variables); null leaves one out."""
        values = self._values.get(name) or {}
        if not isinstance(values, dict):
            raise WrongMessage(f"{name!r} must be an object, not {_type(values)}.")
        for key, value in values.items():
            if not isinstance(value, (str, type(None))) or "\0" in f"{key}{value}" or not key or "=" in key:
                raise WrongMessage(f"{name!r} must hold strings by names of variables; {key!r} is none.")
        return {key: value for key, value in values.items() if value is not None}

    def raw(self, name: str) -> Any:
        """The argument as it was sent, unchecked; None if it is missing."""
        return self._values.get(name)

    def _get(self, name: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = self._values.get(name)
        if value is None:
            if default is _MISSING:
                raise WrongMessage(f"{name!r} is missing.")
            return default
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            words = {str: "a string", int: "an integer", bool: "true or false", list: "a list"}
            wanted = "a number" if isinstance(kind, tuple) else words[kind]
            raise WrongMessage(f"{name!r} must be {wanted}, not {_type(value)}.")
        return value


def _type(value: Any) -> str:
    words = {
        str: "a string",
        int: "a number",
        float: "a number",
        bool: "true or false",
        list: "a list",
        dict: "an object",
    }
    return words.get(type(value), "null")


_SHOWN = frozenset({"name", "value", "result", "type", "message", "description", "text", "instruction", "title"})
"""Keys of what a client only shows to the user."""


def _shown(part: Any, key: str = "") -> Any:
    """A message in which names of a script neither move nor hide what is around them."""
    if isinstance(part, str):
        return visible(part) if key in _SHOWN else part
    if isinstance(part, Mapping):
        return {name: _shown(value, name) for name, value in part.items()}
    return [_shown(each) for each in part] if isinstance(part, (list, tuple)) else part


def encode(message: Mapping[str, Any]) -> bytes:
    """A message with its header."""
    body = json.dumps(_shown(message), separators=(",", ":"), allow_nan=False).encode("ascii")
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
