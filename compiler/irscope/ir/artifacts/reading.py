"""What the readers of all kinds of artifacts share: bounded bytes, inert pickles, members of archives, fields."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from irscope.ir.artifacts.contents import Artifact, ArtifactError, Part
from irscope.ir.artifacts.inert import PickleError, Record, read
from irscope.vocabulary.units import size

_MOST_BYTES = 4 << 30
MOST_FILES = 20_000
MOST_MEMBER = 256 << 20
_RATIO = 400
MOST_NAME = 300


def bytes_of(path: str, artifact: Artifact) -> bytes:
    """All of a file, whose digest and size are taken.  Raises ArtifactError if it is too long."""
    length = os.path.getsize(path)
    if length > _MOST_BYTES:
        raise ArtifactError(f"it has {size(length)}, more than {size(_MOST_BYTES)}")
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
    artifact.digest, artifact.size = hashlib.sha256(data).hexdigest(), len(data)
    return data


def has_bytes(path: str, wanted: bytes) -> bool:
    """Whether a file has these bytes anywhere."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(wanted) >= 0


def digest_of(path: str) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def unpickled(data: bytes) -> Any:
    """The pickle that an artifact is.  Raises ArtifactError."""
    try:
        return read(data)
    except PickleError as error:
        raise ArtifactError(f"a pickle in it is not readable: {error}") from error


def inner_pickle(data: bytes, what: str, artifact: Artifact) -> Any:
    """A pickle in an artifact; None, and a problem, if it cannot be read: the rest is shown."""
    try:
        return read(data)
    except PickleError as error:
        artifact.problems.append(f"{what}: {error}")
        return None


def json_of(data: bytes) -> Any:
    """Some JSON as data; None if it is not readable."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def names_in(path: str) -> list[str]:
    """The names in a ZIP archive; empty if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()[:MOST_FILES]
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return []


def members(path: str, artifact: Artifact, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """The members whose names match, with their bytes; all members become parts.  Raises ArtifactError."""
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MOST_FILES:
                raise ArtifactError(f"its archive has more than {MOST_FILES:,} files")
            for info in archive.infolist():
                artifact.parts.append(Part(info.filename, info.file_size))
                if wanted.search(info.filename) is not None:
                    yield info.filename, _member(archive, info)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, ValueError) as error:
        raise ArtifactError(f"its archive is damaged ({type(error).__name__})") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > min(MOST_MEMBER, (1 << 20) + info.compress_size * _RATIO):
        raise ArtifactError(f"{info.filename} is packed too tightly: it would have {size(info.file_size)}")
    with archive.open(info) as stream:
        data = stream.read(info.file_size + 1)
    if len(data) > info.file_size:
        raise ArtifactError(f"{info.filename} is longer than it says")
    return data


def field_of(value: Any, name: str) -> Any:
    """A field of a record; None if it has none."""
    return value.get(name) if isinstance(value, Record) else None


def text_of(value: Any) -> str:
    """A text; empty if it is something else."""
    return value if isinstance(value, str) else ""


def number_of(value: Any) -> int:
    """A number of 31 bits; 0 if it is something else."""
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0
