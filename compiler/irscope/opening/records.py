"""The records of a log, one after the other: damaged ones are counted, the others read.

A record is a line with its metadata, and its payload in the lines after it, each behind a tab.  tlparse's ``raw.jsonl``
has a JSON object in each line, and the payloads in files beside it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

from irscope.opening.logs import HEAD, UNPACK_ERRORS, Log, cause_of
from irscope.opening.metadata import MetadataReader, NotMetadata
from irscope.opening.warnings import TraceError, Warnings
from irscope.usercode.reading import read_bounded, real_path
from irscope.vocabulary.bounds import bounded_json
from irscope.vocabulary.records import dataclass

_LONGEST_LINE = 32 << 20
_LONGEST_PAYLOAD = 128 << 20


@dataclass(frozen=True)
class RawRecord:
    """A record as it is in the log: its metadata, its payload, the thread that wrote it, and the time of day in seconds
    (0 if it is not known)."""

    metadata: dict[str, Any]
    payload: str
    thread: int
    time: float = 0.0


def read_records(log: Log, warnings: Warnings) -> Iterator[RawRecord]:
    """The records of a log.  A log that is cut off or damaged ends where nothing can be read any more."""
    yield from _of_jsonl(log, warnings) if log.is_jsonl else _of_log(log, warnings)


def _lines(log: Log, warnings: Warnings) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, without those that are too long.  Raises TraceError if the log is packed too tightly
    from its begin on; later, what was before is kept."""
    number, skipping, given = 0, False, False
    while True:
        try:
            line = log.stream.readline(_LONGEST_LINE)
        except UNPACK_ERRORS as error:
            warnings.add(f"the rest cannot be unpacked ({cause_of(error)})", f"{log.name}:{number + 1}")
            return
        except TraceError as error:
            if not given:
                raise
            warnings.add(f"the rest is left out ({str(error).rstrip('.')})", f"{log.name}:{number + 1}")
            return
        if not line:
            return
        ends = line.endswith(b"\n")
        number += not skipping
        if not skipping and (ends or len(line) < _LONGEST_LINE):
            given = True
            yield number, line
        elif not skipping:
            warnings.add("a line is too long", f"{log.name}:{number}")
        skipping = not ends and (skipping or len(line) >= _LONGEST_LINE)


class _Open:
    """A record whose payload is still being read."""

    def __init__(self, metadata: dict[str, Any], thread: int, where: str, time: float) -> None:
        self.metadata, self.thread, self.where, self.time = metadata, thread, where, time
        self.parts: list[bytes] = []
        self.length = 0

    def add(self, line: bytes, warnings: Warnings) -> None:
        """One more line of the payload, without its tab."""
        if self.length < _LONGEST_PAYLOAD <= self.length + len(line):
            warnings.add("a payload is too long", self.where)
        self.length += len(line)
        if self.length < _LONGEST_PAYLOAD:
            self.parts.append(line)

    def record(self, warnings: Warnings) -> RawRecord:
        """The whole of it."""
        payload = b"".join(self.parts).removesuffix(b"\n")
        told = self.metadata.get("has_payload")
        if isinstance(told, str) and hashlib.md5(payload, usedforsecurity=False).hexdigest() != told:
            warnings.add("a payload is not what was written (its checksum differs)", self.where)
        text = _bounded_payload(payload.decode("utf-8", "replace"), self.where, warnings)
        return RawRecord(self.metadata, text, self.thread, self.time)


def _of_log(log: Log, warnings: Warnings) -> Iterator[RawRecord]:
    current: _Open | None = None
    reader = MetadataReader()
    for number, line in _lines(log, warnings):
        if line[:1] == b"\t":
            if current is not None:
                current.add(line[1:], warnings)
            continue
        if not line.strip():
            continue
        where = f"{log.name}:{number}"
        heads = list(HEAD.finditer(line))
        if not heads:
            warnings.add("a line is not of PyTorch's trace", where)
            continue
        if heads[0].start() or len(heads) > 1:
            warnings.add("a line begins within another", where)
        for head, end in zip(heads, [*(one.start() for one in heads[1:]), len(line)], strict=True):
            if current is not None:
                yield current.record(warnings)
            metadata = _metadata(reader, line[head.end() : end], where, warnings)
            current = None if metadata is None else _Open(metadata, int(head["thread"]), where, _seconds(head["time"]))
    if current is not None:
        yield current.record(warnings)


def _seconds(time: bytes) -> float:
    """The seconds of ``07:11:26.995000``."""
    hours, minutes, seconds = time.split(b":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _metadata(reader: MetadataReader, line: bytes, where: str, warnings: Warnings) -> dict[str, Any] | None:
    try:
        return reader.read(line, lambda what: warnings.add(what, where))
    except NotMetadata as error:
        warnings.add(str(error), where)
        return None


def _bounded_payload(text: str, where: str, warnings: Warnings) -> str:
    """A payload with its numbers within bounds, where it is JSON."""
    bounded, is_odd = bounded_json(text)
    if is_odd:
        warnings.add("a payload has a number that is out of bounds", where)
    return bounded


def _of_jsonl(log: Log, warnings: Warnings) -> Iterator[RawRecord]:
    reader = MetadataReader()
    for number, line in _lines(log, warnings):
        where = f"{log.name}:{number}"
        if not line.strip() or (metadata := _metadata(reader, line, where, warnings)) is None:
            continue
        table = metadata.pop("string_table", None)
        if isinstance(table, list):
            for index, text in enumerate(table):
                if isinstance(text, str):
                    yield RawRecord({"str": [text, index]}, "", 0)
            continue
        thread = metadata.pop("thread", 0)
        name = metadata.pop("payload_filename", None)
        payload = metadata.pop("payload", "")
        if name is None and not payload and isinstance(told := metadata.get("has_payload"), str) and told.isalnum():
            name = os.path.join("payloads", f"{told}.txt")
        if isinstance(name, str):
            payload = _payload(log, name, where, warnings)
        payload = _bounded_payload(payload, where, warnings) if isinstance(payload, str) else ""
        yield RawRecord(metadata, payload, thread if isinstance(thread, int) else 0)


def _payload(log: Log, name: str, where: str, warnings: Warnings) -> str:
    """The text of a file below the folder of the log."""
    path = os.path.join(log.folder, name)
    inside = log.folder and real_path(path).startswith(real_path(log.folder) + os.sep)
    if not inside:
        warnings.add("a payload is not beside the log", where)
        return ""
    try:
        return read_bounded(path, _LONGEST_PAYLOAD).decode("utf-8", "replace")
    except (OSError, ValueError):
        warnings.add("a payload is missing", where)
        return ""
