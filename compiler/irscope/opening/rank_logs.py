"""The logs of the ranks of a job, without opening them: one digest says what a rank compiled, so alike ranks are told apart
from others by reading each log once, as a stream.

Numbers of devices and names of process groups differ between the ranks of any job, and are left out of a digest.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from irscope.events.trace import GRAPH_BREAK, Record
from irscope.opening.index import head_record
from irscope.opening.logs import RANK, UNPACK_ERRORS, cause_of, may_be_log, open_archive, open_file, size_of
from irscope.opening.metadata import MetadataReader
from irscope.opening.warnings import TraceError, Warnings
from irscope.pipeline_captures.inductor.trace import EVENTS
from irscope.vocabulary.records import dataclass

_CHUNK = 1 << 20
_LONGEST = 64 << 20
_MOST_LOGS = 100_000
_MANY_BYTES = 64 << 20
"""From so many on, several processes read."""
_MOST_PROCESSES = 4
_MOST_KEPT = 4096
_GRAPHS = frozenset(event for event, kind in EVENTS.items() if kind.is_graph and kind.is_compared)
_CACHES = frozenset(
    f"{cache}_cache_{end}" for cache in ("fx_graph", "aotautograd") for end in ("hit", "miss", "bypass")
)
_METRICS, _START, _ERROR = "compilation_metrics", "dynamo_start", "dynamo_error"
_READ = re.compile(b'"(?:%s)"' % "|".join(sorted({*_GRAPHS, *_CACHES, _METRICS, _START, _ERROR, GRAPH_BREAK})).encode())
_BREAK_AT = re.compile(rb"Graph break in user code at ([^\n]{1,2000})")
_COMMENT = re.compile(rb"#[^\n]*")
_DEVICE = re.compile(rb"\b(cuda|xpu|hip):\d+")
_GROUP = re.compile(rb"'(\d{1,9})'")
_NUMBER = re.compile(rb'"[^"\n]*"|(?<![\w.$])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)')


@dataclass(frozen=True)
class RankLog:
    """The log of one rank.

    Args:
        name: Its name in the folder or the archive.
        size: Its bytes, packed if it is packed.
        exact: A digest of its compiles, graphs, breaks and cache hits, in their order.
        shape: The same without the numbers in graphs; those of shapes count.
        damaged: How many of its records cannot be read.
    """

    rank: int
    name: str
    size: int
    exact: bytes = b""
    shape: bytes = b""
    compiles: int = 0
    damaged: int = 0


def rank_logs(path: str, warnings: Warnings) -> list[RankLog]:
    """The logs of a folder or an archive that are of ranks, by rank; of several of one rank the largest.

    A log that cannot be read is a warning.  Raises OSError and, if the warnings are strict, TraceError.
    """
    read = _in_folder if os.path.isdir(path) else _in_archive
    found = sorted(read(path, warnings), key=lambda log: log.rank)
    for log in found:
        if log.damaged:
            warnings.add("a rank's log has records that cannot be read, or ends within one", log.name)
    return [log for log in found if log.exact]


def has_ranks(path: str) -> bool:
    """Whether a folder has logs of several ranks, or a file may be an archive of them."""
    if os.path.isdir(path):
        ranks = {rank_of(name) for name in os.listdir(path)[:_MOST_LOGS]} - {None}
        return len(ranks) > 1
    return ".tar" in os.path.basename(path) or path.endswith(".tgz")


def rank_of(name: str) -> int | None:
    """The rank that a log's name tells; None for any other file."""
    match = RANK.search(os.path.basename(name)) if may_be_log(name) else None
    return int(match[1][:9]) if match else None


def _in_folder(path: str, warnings: Warnings) -> Iterator[RankLog]:
    largest: dict[int, RankLog] = {}
    for name in sorted(os.listdir(path))[:_MOST_LOGS]:
        rank, size = rank_of(name), size_of(os.path.join(path, name))
        if rank is not None and size > 0 and (rank not in largest or size > largest[rank].size):
            largest[rank] = RankLog(rank, name, size)
    for log, why in _side_by_side(
        functools.partial(_in_file, path), sorted(largest.values(), key=lambda log: log.rank)
    ):
        if why:
            warnings.add(f"a rank's log cannot be read ({why})", log.name)
        yield log


def _in_file(folder: str, log: RankLog) -> tuple[RankLog, str]:
    """With its digests, or why it cannot be read."""
    try:
        with open_file(os.path.join(folder, log.name)) as stream:
            return digested(log, stream), ""
    except (TraceError, *UNPACK_ERRORS) as error:
        return log, str(error) or type(error).__name__


def _side_by_side(
    work: Callable[[RankLog], tuple[RankLog, str]], logs: Sequence[RankLog]
) -> Iterator[tuple[RankLog, str]]:
    processes = min(len(os.sched_getaffinity(0)), _MOST_PROCESSES) if sys.platform == "linux" else 1
    if processes < 2 or sum(log.size for log in logs) < _MANY_BYTES:
        yield from map(work, logs)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    from irscope.system.warden import end_with_parent

    try:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), end_with_parent) as pool:
            yield from pool.map(work, logs, chunksize=8)
    except BrokenProcessPool as error:
        raise TraceError("A process that reads the logs was killed, maybe since memory is short.") from error


def _in_archive(path: str, warnings: Warnings) -> Iterator[RankLog]:
    largest: dict[int, RankLog] = {}
    try:
        for member, stream in open_archive(path):
            rank = rank_of(member.name)
            if rank is None or (rank in largest and member.size <= largest[rank].size):
                continue
            try:
                largest[rank] = digested(RankLog(rank, member.name, member.size), stream)
            except (TraceError, *UNPACK_ERRORS) as error:
                warnings.add(f"a rank's log cannot be read ({error or type(error).__name__})", member.name)
    except UNPACK_ERRORS as error:
        warnings.add(f"the archive is damaged or cut off ({cause_of(error)})", path)
    yield from largest.values()


def digested(log: RankLog, stream: IO[bytes]) -> RankLog:
    """The same log with its digests.  Raises TraceError for one without records."""
    digest = _Digest()
    for blob in _blobs(stream, digest):
        digest.take(blob)
    if not digest.records:
        raise TraceError("it has no record of PyTorch's structured trace")
    exact, shape = digest.exact.digest(), digest.shape.digest()
    return RankLog(log.rank, log.name, log.size, exact, shape, digest.compiles, digest.damaged)


def _blobs(stream: IO[bytes], digest: _Digest) -> Iterator[bytes]:
    """The records with their payloads; lines of payloads begin with a tab, so no other line begins with V."""
    text = b"\n"
    for chunk in _chunks(stream, digest):
        *whole, last = (text + chunk).split(b"\nV")
        yield from whole[1:] if text == b"\n" else whole
        text = last if len(last) < _LONGEST else b""
        digest.damaged += len(last) >= _LONGEST
    yield text


def _chunks(stream: Any, digest: _Digest) -> Iterator[bytes]:
    """Until the end, or until nothing can be unpacked any more."""
    parts, length = [b""], 0
    while parts:
        try:
            more = stream.read1(_CHUNK)  # what is there: where the rest is damaged, that is kept
        except UNPACK_ERRORS:
            digest.damaged += 1
            more = b""
        parts.append(more)
        length += len(more)
        if length >= _CHUNK or not more:
            yield b"".join(parts)
            parts, length = ([b""] if more else []), 0


class _Digest:
    """The digest of one log."""

    def __init__(self) -> None:
        self.exact, self.shape = hashlib.sha256(), hashlib.sha256()
        self.records = self.compiles = self.damaged = 0
        self._reader = MetadataReader()

    def take(self, blob: bytes) -> None:
        """One more record."""
        head, _, payload = blob.partition(b"\n")
        if not head[:4].isdigit():
            return
        self.records += 1
        if _READ.search(head) is None:
            return
        record = head_record(self._reader, b"V" + head)
        if record is None:
            self.damaged += 1
            return
        self._feed(repr((record.event, record.compile)).encode("utf-8", "replace"))
        if record.event in _GRAPHS:
            exact, shape = _of_graph(payload)
            self.exact.update(exact)
            self.shape.update(shape)
        elif record.event == GRAPH_BREAK:
            at = _BREAK_AT.search(payload)
            self._feed(at[1] if at else b"")
        elif record.event == _METRICS:
            self.compiles += 1
            self._feed(_of_metrics(record))
        elif record.event == _START:
            self._feed(_of_start(record))

    def _feed(self, data: bytes) -> None:
        self.exact.update(data)
        self.shape.update(data)


def _of_metrics(record: Record) -> bytes:
    return repr([record.facts.get(key) for key in ("co_name", "co_firstlineno", "fail_type")]).encode(
        "utf-8", "replace"
    )


def _of_start(record: Record) -> bytes:
    """The function that is compiled."""
    stack = record.facts.get("stack")
    last = stack[-1] if isinstance(stack, list) and stack and isinstance(stack[-1], dict) else {}
    return repr([last.get(key) for key in ("name", "line")]).encode("utf-8", "replace")


_KEPT: dict[bytes, tuple[bytes, bytes]] = {}


def _of_graph(payload: bytes) -> tuple[bytes, bytes]:
    """The exact digest and that without numbers; most ranks have the same texts."""
    key = hashlib.sha256(payload).digest()
    found = _KEPT.get(key)
    if found is None:
        groups: dict[bytes, bytes] = {}
        text = _DEVICE.sub(rb"\1", _COMMENT.sub(b"", payload))
        text = _GROUP.sub(lambda match: groups.setdefault(match[1], b"group %d" % len(groups)), text)
        shape = _NUMBER.sub(_without_number, text)
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        found = _KEPT[key] = hashlib.sha256(text).digest(), hashlib.sha256(shape).digest()
    return found


def _without_number(match: Any) -> bytes:
    """Tensors are printed in quotes: their sizes count."""
    return match[0] if match[0][:1] == b'"' else b"#"
