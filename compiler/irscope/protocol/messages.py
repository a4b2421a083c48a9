"""What a run in progress sends: facts of its course, which are also told to who started it, and what only the store keeps.

The run's process has no descriptor of the store: its driver puts into the store what is sent (`irscope.store.run_writer`).
"""

from __future__ import annotations

import dataclasses
import json
import typing
from typing import Any, Union

from irscope.protocol.plain import encodable, from_json, to_json
from irscope.protocol.report import CaptureGap, Compile, Finding, Kernel, Origin, Raised, StageRef
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

    Args:
        text: ``forward 1 of 2: compiling kernel 12 of 40: step (model.py:30, 0/0); left: 28 kernels, the backward``.
        phase: The same in few words: ``forward 1 of 2: compiling kernel 12 of 40``.
        done, total: Kernels of the current graph; a total of 0: there are none to count.
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
    place: Origin | None = None
    """The line that ``error`` names at its end."""


@dataclass(frozen=True)
class KernelsWritten:
    """Kernels are new, or something of them changed.  Their stages were sent before them."""

    kernels: tuple[Kernel, ...]


Message = Union[
    Started, Refused, Unfit, CompileSeen, KernelsWritten, FindingSeen, GapSeen, Progress, LimitReached, ScriptEnded
]


@dataclass(frozen=True)
class StageWritten:
    """A stage of a compile is new, or its text has changed.

    Args:
        position: Orders the stages of a compile along the pipeline.
        text: None if it is made from the data when it is read.
        data: What the text does not tell, as JSON text; None: nothing.
    """

    compile: str
    stage: StageRef
    position: float
    text: str | None = None
    data: str | None = None


@dataclass(frozen=True)
class DataWritten:
    """What is kept of a stage beside its text is replaced, by JSON text; ``nodes`` as in `StageRef`, None: as they were."""

    stage: str
    data: str | None = None
    nodes: int | None = None


@dataclass(frozen=True)
class SourceWritten:
    """The text that a file has in this run."""

    file: str
    text: str | None = None


@dataclass(frozen=True)
class PredictionWritten:
    """A compile for a target, which the script itself did not do."""

    compile: Compile


@dataclass(frozen=True)
class FactsWritten:
    """What else is known about the run, by the names of `RUN_FACTS`, as plain JSON values."""

    facts: dict[str, object]


RUN_FACTS = frozenset(
    {"device", "files", "groups", "compile_on_one_rank", "arrivals", "packages", "process", "runtime_collectives"}
)
"""The name of the GPU; digests of the user's files by path; how many packages of AOTInductor the script made; of a rank how many ranks each process group has, whether
``torch.distributed.config.compile_on_one_rank`` is on, when it arrived at its collectives, and those that are in no graph; which process a run is that the script of another run has started."""

StoreWrite = Union[StageWritten, DataWritten, SourceWritten, PredictionWritten, FactsWritten]

_CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (*typing.get_args(Message), *typing.get_args(StoreWrite))
}
_TEXTS = {StageWritten: ("text", "data"), DataWritten: ("data",), SourceWritten: ("text",)}
"""Fields that may be megabytes: they follow the JSON object as they are, so that nobody has to look through them."""


def encode_message(message: Message | StoreWrite) -> dict[str, Any]:
    """The JSON object of a message; its key ``is`` names the class."""
    return {"is": type(message).__name__, **to_json(message)}


def decode_message(data: dict[str, Any]) -> Message | StoreWrite:
    """The inverse of `encode_message`.  Raises ValueError for something that is not a message."""
    name = data.get("is", "") if isinstance(data, dict) else None
    cls = _CLASSES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"not a message: {str(data)[:200]}")
    return typing.cast(Message, from_json(cls, encodable(data)))


def pack_message(message: Message | StoreWrite) -> bytes:
    """A message as the payload of a frame: a line of JSON, then its long texts in UTF-8."""
    data = encode_message(message)
    texts = {
        name: text.encode("utf-8", "surrogatepass")
        for name in _TEXTS.get(type(message), ())
        if (text := data.pop(name)) is not None
    }
    if texts:
        data["texts"] = {name: len(text) for name, text in texts.items()}
    return b"".join((json.dumps(data).encode(), b"\n", *texts.values()))


def unpack_message(payload: bytes) -> Message | StoreWrite:
    """The inverse of `pack_message`.  Raises ValueError, KeyError, TypeError or RecursionError for anything else."""
    head, _, rest = payload.partition(b"\n")
    data = json.loads(head)
    message = decode_message(data)
    lengths = data.get("texts", {})
    if not isinstance(lengths, dict) or not lengths.keys() <= set(_TEXTS.get(type(message), ())):
        raise ValueError("texts that the message does not have")
    texts, start = {}, 0
    for name, length in lengths.items():
        if type(length) is not int or not 0 <= length <= len(rest) - start:
            raise ValueError("a text that is not there")
        texts[name] = rest[start : start + length].decode("utf-8", "surrogatepass")
        start += length
    return dataclasses.replace(typing.cast(Any, message), **texts) if texts else message
