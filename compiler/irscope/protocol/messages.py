"""What a run in progress sends: one JSON object a line."""

from __future__ import annotations

import typing
from typing import Any, Union

from irscope.protocol.plain import encodable, from_json, to_json
from irscope.protocol.report import CaptureGap, Compile, Finding, Raised
from irscope.vocabulary.limits import Limit
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Started:
    """The run's process is up; torch was found (its version) but is imported only when the script does so."""

    torch: str


@dataclass(frozen=True)
class Refused:
    """The environment cannot run it; the script has not started."""

    reason: str


@dataclass(frozen=True)
class Unfit:
    """A fork of the worker cannot run this script as a fresh process would; its run is discarded."""

    reason: str


@dataclass(frozen=True)
class CompileSeen:
    """A compile began, or ended."""

    compile: Compile


@dataclass(frozen=True)
class FindingSeen:
    """A finding is new, or its count grew."""

    finding: Finding


@dataclass(frozen=True)
class GapSeen:
    """Something could not be captured."""

    gap: CaptureGap


@dataclass(frozen=True)
class Progress:
    """What is going on, for a status line.

    Parameters
    ----------
    text
        ``compiling kernel 12 of 40: forward (model.py:30, 0/0)``.
    phase
        The same in few words: ``compiling kernel 12 of 40``.
    done, total
        Kernels of the current graph; a total of 0: there are none to count.
    """

    text: str
    phase: str = ""
    done: int = 0
    total: int = 0


@dataclass(frozen=True)
class LimitReached:
    """The run's process has seen that a limit is reached; the driver ends it."""

    limit: Limit
    message: str


@dataclass(frozen=True)
class ScriptEnded:
    """The script's main module ended.  ``error`` is empty if it ended well."""

    exit_code: int
    error: str
    raised: Raised | None = None
    """The exception that ended it."""


Message = Union[Started, Refused, Unfit, CompileSeen, FindingSeen, GapSeen, Progress, LimitReached, ScriptEnded]

_MESSAGES: dict[str, type[Any]] = {cls.__name__: cls for cls in typing.get_args(Message)}


def encode_message(message: Message) -> dict[str, Any]:
    """The JSON object of a message; its key ``is`` names the class."""
    return {"is": type(message).__name__, **to_json(message)}


def decode_message(data: dict[str, Any]) -> Message:
    """The inverse of `encode_message`.  Raises ValueError for something that is not a message."""
    name = data.get("is", "") if isinstance(data, dict) else None
    cls = _MESSAGES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"not a message: {str(data)[:200]}")
    return typing.cast(Message, from_json(cls, encodable(data)))
