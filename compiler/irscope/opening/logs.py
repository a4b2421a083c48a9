"""Where the logs of a trace are: in a file, a folder or an archive, packed or not.

Nothing is unpacked to the disk.  A member of an archive is read as a stream, so its name leads nowhere; what a few bytes
would become is bounded.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import importlib
import io
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

from irscope.opening.warnings import TraceError, Warnings
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.units import size

HEAD = re.compile(rb"V\d{4} (?P<time>\d\d:\d\d:\d\d\.\d{1,9})\s+(?P<thread>\d{1,20})\s[^\n:]{1,4096}:\d{1,9}\] (?=\{)")
"""What a line with the metadata of a record begins with."""
_JSONL = re.compile(rb'^\{"string_table"|^\{[^\n]{0,20000}"(?:frame_compile_id|dynamo_start|has_payload|pathname)"')
Peeking = io.BufferedReader
_PEEK = 1 << 17
_MOST_BYTES = 64 << 30
_RATIO, _FREE = 400, 64 << 20
"""Text may have so many times the bytes of what was packed, after the first few."""
_MOST_MEMBERS = 100_000
RANK = re.compile(r"rank_(\d+)")
_ZSTD = b"\x28\xb5\x2f\xfd"
_T = TypeVar("_T")


class UnpackError(TraceError):
    """Packed bytes are damaged."""


UNPACK_ERRORS = (UnpackError, EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError, OSError)
"""What reading a damaged file raises."""


@dataclass(frozen=True)
class Log:
    """The log of one process.

    Args:
        name: Its file's name.
        folder: Where the texts are that a ``raw.jsonl`` names; empty for none.
        is_jsonl: Whether each line is a JSON object, as tlparse writes them.
        others: Names of the logs beside it that are not read.
    """

    name: str
    stream: IO[bytes]
    folder: str
    is_jsonl: bool
    others: tuple[str, ...] = ()


def is_trace(path: str) -> bool:
    """Whether a path is for `open_log`: a folder, an archive, or a file that begins like a structured log.

    Raises OSError if it cannot be read.
    """
    if os.path.isdir(path):
        return True
    try:
        with open_file(path) as stream:
            block = stream.read(_PEEK)
            return is_tar(block) or HEAD.search(block) is not None or _JSONL.search(block) is not None
    except UnpackError:
        with open(path, "rb") as file:
            return file.read(len(_ZSTD)) == _ZSTD  # the profiler's traces are packed with gzip, or not at all
    except TraceError:
        return True  # it says why
    except UNPACK_ERRORS as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        return False


def log_in(path: str, chosen: str) -> str:
    """The file of the log that `open_log` reads, where the path is a folder; else the path.  Raises as that does."""
    return os.path.join(path, _choose(_sizes(path), chosen, path)) if os.path.isdir(path) else path


def _sizes(folder: str) -> dict[str, int]:
    """The logs of a folder, with their sizes."""
    sizes = {name: size_of(os.path.join(folder, name)) for name in os.listdir(folder)[:_MOST_MEMBERS]}
    return {name: size for name, size in sizes.items() if size > 0 and may_be_log(name)}


@contextlib.contextmanager
def open_log(path: str, chosen: str, warnings: Warnings) -> Iterator[Log]:
    """The log to read.

    Args:
        chosen: A part of its name, where a folder or an archive has several; empty: that of the lowest rank; of these
            the largest.

    Raises:
        TraceError: No log has this name.
        OSError: The file cannot be read.
    """
    if os.path.isdir(path):
        sizes = _sizes(path)
        name = _choose(sizes, chosen, path)
        with open_file(os.path.join(path, name)) as stream:
            yield _log(name, stream, path, _others(sizes, name))
        return
    with open_file(path) as stream:
        if not _begins_archive(stream):
            yield _log(os.path.basename(path), stream, os.path.dirname(path), ())
            return
    sizes = _members(path, warnings)
    name = _choose(sizes, chosen, path)
    with _open_tar(path) as archive:
        for member in _members_in(archive):
            if member.name == name and (found := _extracted(archive, member)) is not None:
                with _unpacked(found, 0) as stream:
                    yield _log(os.path.basename(name), stream, "", _others(sizes, name))
                return
    raise TraceError(f"{path} is damaged before {name}.")


def open_archive(path: str) -> Iterator[tuple[tarfile.TarInfo, Peeking]]:
    """The regular files of an archive that may be logs, each with its bytes, in one pass.  Raises `UNPACK_ERRORS`."""
    with _open_tar(path) as archive:
        for number, member in enumerate(_members_in(archive)):
            if number >= _MOST_MEMBERS:
                return
            if member.isfile() and may_be_log(member.name) and (found := _extracted(archive, member)) is not None:
                with _unpacked(found, 0) as stream:
                    yield member, stream


def cause_of(error: Exception) -> str:
    """The name of what is wrong with damaged bytes, by the library that unpacks them."""
    return type(error.__cause__ or error).__name__


@contextlib.contextmanager
def _open_tar(path: str) -> Iterator[tarfile.TarFile]:
    with (
        open_file(path) as packed,
        _unpack(functools.partial(tarfile.open, fileobj=packed, mode="r|")) as archive,
    ):
        yield archive


def _members_in(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := _unpack(archive.next)) is not None:
        yield member


def _extracted(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Any:
    return _unpack(functools.partial(archive.extractfile, member))


def _unpack(step: Callable[[], _T]) -> _T:
    """What a step of unpacking returns.  Raises UnpackError: what the libraries raise has no common class."""
    try:
        return step()
    except TraceError:
        raise
    except Exception as error:
        raise UnpackError(f"The trace is damaged, and cannot be unpacked ({type(error).__name__}).") from error


def _begins_archive(stream: Peeking) -> bool:
    try:
        return is_tar(stream.peek(_PEEK))
    except UNPACK_ERRORS:
        return False


def _members(path: str, warnings: Warnings) -> dict[str, int]:
    """The regular files of an archive, with their sizes."""
    sizes: dict[str, int] = {}
    try:
        with _open_tar(path) as archive:
            for member in _members_in(archive):
                if len(sizes) >= _MOST_MEMBERS:
                    warnings.add(f"the archive has more than {_MOST_MEMBERS} files", path)
                    break
                if member.isfile() and may_be_log(member.name):
                    sizes[member.name] = member.size
    except UNPACK_ERRORS as error:
        warnings.add(f"the archive is damaged or cut off ({cause_of(error)})", path)
    return sizes


def may_be_log(name: str) -> bool:
    """Whether a file of a folder or an archive is named like a log."""
    base = os.path.basename(name)
    return base == "raw.jsonl" or (base.endswith((".log", ".log.gz", ".log.zst")) and base != "raw.log")


def _others(sizes: dict[str, int], name: str) -> tuple[str, ...]:
    return tuple(other for other in sorted(sizes) if other != name and sizes[other] > 0 and may_be_log(other))


def _choose(sizes: dict[str, int], chosen: str, path: str) -> str:
    found = [name for name in sizes if chosen in name]
    if not found:
        there = f" with {chosen!r} in its name. It has {listed(sorted(sizes))}" if sizes and chosen else ""
        raise TraceError(f"{path} has no log of PyTorch's structured trace{there}.")
    return min(found, key=lambda name: (_rank(name), -sizes[name], name))


def _rank(name: str) -> int:
    match = RANK.search(os.path.basename(name))
    return int(match[1][:9]) if match else 0


def size_of(path: str) -> int:
    """The bytes of a regular file; 0 for anything else."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _log(name: str, stream: Peeking, folder: str, others: tuple[str, ...]) -> Log:
    try:
        block = stream.peek(_PEEK)
    except UNPACK_ERRORS as error:
        raise TraceError(f"{name} is damaged at its beginning ({cause_of(error)}).") from error
    is_jsonl = HEAD.search(block) is None and _JSONL.search(block) is not None
    if not is_jsonl and HEAD.search(block) is None:
        raise TraceError(f"{name} is not a structured log of PyTorch: record one with TORCH_TRACE=FOLDER.")
    return Log(name, stream, folder, is_jsonl, others)


# --- streams ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_file(path: str) -> Iterator[Peeking]:
    """The bytes of a regular file, unpacked if it is packed.  Raises OSError and TraceError."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise TraceError(f"{path} is not a file or a folder.")
    with open(path, "rb", buffering=_PEEK) as file, _unpacked(file, os.path.getsize(path)) as stream:
        yield stream


def is_tar(block: bytes) -> bool:
    """Whether a file that begins so is an archive."""
    return block[257:262] == b"ustar"


@contextlib.contextmanager
def _unpacked(file: Any, length: int) -> Iterator[Peeking]:
    begin = _unpack(functools.partial(file.peek, 4))[:4]
    if begin[:2] == b"\x1f\x8b":
        raw: Any = gzip.GzipFile(fileobj=file)
    elif begin == _ZSTD:
        raw = _zstandard(file)
    else:
        yield file
        return
    with contextlib.closing(raw), io.BufferedReader(_Bounded(raw, length), _PEEK) as stream:
        yield stream  # type: ignore[misc]


def _zstandard(file: IO[bytes]) -> Any:
    for name in ("compression.zstd", "zstandard"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            if name == "zstandard":
                return module.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            return module.ZstdFile(file)
    raise TraceError("The trace is packed with zstd. Install zstandard for it (pip install zstandard), or unpack it.")


class _Bounded(io.RawIOBase):
    """Unpacked bytes; raises `TraceError` where few became very many."""

    def __init__(self, raw: Any, packed: int) -> None:
        self._raw, self._seen = raw, 0
        self._most = min(_MOST_BYTES, _FREE + packed * _RATIO) if packed else _MOST_BYTES

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As of any raw stream."""
        data: bytes = _unpack(
            functools.partial(self._raw.read1, len(buffer))
        )  # what is there: where the rest is damaged, that is kept
        self._seen += len(data)
        if self._seen > self._most:
            raise TraceError(f"The trace is packed too tightly: it would have more than {size(self._most)}.")
        buffer[: len(data)] = data
        return len(data)
