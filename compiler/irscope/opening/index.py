"""An index of a big trace: where each record begins, and what each compile was.  Made once, and continued when the log grows.

Only the lines with metadata are read, not the payloads.  The index is a SQLite file beside the run store.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sqlite3
from collections.abc import Iterator
from typing import IO, Any

from irscope.events.trace import Record, parse_record
from irscope.opening.logs import HEAD, Log
from irscope.opening.metadata import MetadataReader, NotMetadata
from irscope.opening.warnings import TraceError
from irscope.vocabulary.records import dataclass

_CHUNK = 8 << 20
_LONGEST_LINE = 32 << 20
_BATCH = 20_000
_VERSION = 2
_METRICS, _BREAK = "compilation_metrics", "dynamo_graph_break_reason"
_OF_ALL = ("str", "torch_version")
"""Events that belong to every compile."""
_AGAIN = "again"
"""In the place of ``str`` of a text that has its number already: a log of many processes repeats most."""
_MOST_KEPT = 1 << 20
_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (version INTEGER, size INTEGER, head TEXT, next INTEGER, damaged INTEGER);
CREATE TABLE IF NOT EXISTS records (offset INTEGER PRIMARY KEY, compile TEXT, event TEXT);
CREATE INDEX IF NOT EXISTS by_compile ON records (compile);
CREATE TABLE IF NOT EXISTS events (event TEXT PRIMARY KEY, number INTEGER);
CREATE TABLE IF NOT EXISTS compiles (offset INTEGER PRIMARY KEY, id TEXT, function TEXT, file TEXT, line INTEGER,
  seconds REAL, ops INTEGER, error TEXT);
CREATE INDEX IF NOT EXISTS by_seconds ON compiles (seconds);
"""


@dataclass(frozen=True)
class IndexedCompile:
    """One compile, as its metrics tell it; ``error`` is empty if it did not fail."""

    id: str
    function: str
    file: str
    line: int
    seconds: float
    ops: int
    error: str


@dataclass(frozen=True)
class Overview:
    """What is in a trace.

    Args:
        size: Bytes of the log that were read.
        compiles: The longest ones.
        seconds: Seconds of all compiles.
        damaged: Lines that look like records and cannot be read.
    """

    path: str
    size: int
    records: int
    number: int
    seconds: float
    failed: int
    breaks: int
    damaged: int
    compiles: tuple[IndexedCompile, ...]


class TraceIndex:
    """The index of one log.  A context manager.

    Args:
        path: A structured log, not packed.
        folder: Where indexes are kept.

    Raises:
        TraceError: The file is not such a log.
        OSError: It cannot be read.
    """

    def __init__(self, path: str, folder: str) -> None:
        self.path = os.path.abspath(path)
        with open(self.path, "rb") as file:
            self._head = file.read(4096)
        if HEAD.search(self._head) is None:
            raise TraceError(f"{path} is not a structured log, or it is packed: unpack it to index it.")
        os.makedirs(folder, exist_ok=True)
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:24]
        self._said: dict[str, int] = {}
        self._db = sqlite3.connect(os.path.join(folder, f"{name}.db"))
        with self._db:
            self._db.executescript(_SCHEMA)

    def __enter__(self) -> TraceIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def update(self) -> list[IndexedCompile]:
        """Reads what was written since the last time; returns the compiles in it.  A log that was replaced is read
        from its beginning."""
        size = os.path.getsize(self.path)
        start, damaged = self._continue_at(size)
        reader = MetadataReader()
        found: list[IndexedCompile] = []
        with self._db, open(self.path, "rb") as file:
            rows: list[tuple[int, str | None, str]] = []
            for offset, line in _heads(file, start):
                start = offset + len(line)
                record = head_record(reader, line)
                if record is None:
                    damaged += HEAD.match(line) is not None
                    continue
                rows.append((offset, record.compile, self._event(record)))
                if record.event == _METRICS:
                    found.append(_compile(record))
                    self._db.execute(
                        "INSERT OR REPLACE INTO compiles VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (offset, *_row(found[-1]))
                    )
                if len(rows) >= _BATCH:
                    self._put(rows)
            self._put(rows)
            head = hashlib.sha256(self._head[: min(size, len(self._head))]).hexdigest()
            self._db.execute("DELETE FROM state")
            self._db.execute("INSERT INTO state VALUES (?, ?, ?, ?, ?)", (_VERSION, size, head, start, damaged))
        return found

    def _event(self, record: Record) -> str:
        if record.event != "str" or record.compile is not None:
            return record.event
        key, said = str(record.facts.get("index"))[:80], hash(str(record.facts.get("text")))
        if self._said.get(key) == said:
            return _AGAIN
        if len(self._said) < _MOST_KEPT or key in self._said:
            self._said[key] = said
        return record.event

    def _continue_at(self, size: int) -> tuple[int, int]:
        """Where new records begin, and how many were damaged so far."""
        row = self._db.execute("SELECT version, size, head, next, damaged FROM state").fetchone()
        if row is not None:
            version, old, head, following, damaged = row
            same = hashlib.sha256(self._head[: min(old, len(self._head))]).hexdigest() == head
            if version == _VERSION and same and size >= old:
                return int(following), int(damaged)
        with self._db:
            for table in ("state", "records", "events", "compiles"):
                self._db.execute(f"DELETE FROM {table}")
        return 0, 0

    def _put(self, rows: list[tuple[int, str | None, str]]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", rows)
        self._db.executemany(
            "INSERT INTO events VALUES (?, 1) ON CONFLICT DO UPDATE SET number = number + 1",
            [(row[2],) for row in rows],
        )
        rows.clear()

    def overview(self, most: int = 20) -> Overview:
        """What is in the part that was read, with so many of the longest compiles."""
        size, damaged = self._db.execute("SELECT size, damaged FROM state").fetchone() or (0, 0)
        events = dict(self._db.execute("SELECT event, number FROM events").fetchall())
        number, seconds, failed = self._db.execute(
            "SELECT count(*), coalesce(sum(seconds), 0), count(nullif(error, '')) FROM compiles"
        ).fetchone()
        longest = self._db.execute(
            "SELECT id, function, file, line, seconds, ops, error FROM compiles ORDER BY seconds DESC LIMIT ?", (most,)
        )
        return Overview(
            self.path, size, sum(events.values()), number, seconds, failed, events.get(_BREAK, 0), damaged,
            tuple(IndexedCompile(*row) for row in longest),
        )  # fmt: skip

    @contextlib.contextmanager
    def log_of(self, compile: str) -> Iterator[Log]:
        """The records of one compile, and those that belong to all, as a log.

        Raises TraceError if the log does not have the compile.
        """
        if self._db.execute("SELECT 1 FROM records WHERE compile = ?", (compile,)).fetchone() is None:
            raise TraceError(f"{self.path} has no compile {compile}.")
        marks = ",".join("?" * len(_OF_ALL))
        rows = self._db.execute(
            f"SELECT offset, (SELECT min(other.offset) FROM records other WHERE other.offset > records.offset)"
            f" FROM records WHERE compile = ? OR (compile IS NULL AND event IN ({marks})) ORDER BY offset",
            (compile, *_OF_ALL),
        ).fetchall()
        size = os.path.getsize(self.path)
        with (
            open(self.path, "rb") as file,
            io.BufferedReader(_Parts(file, [(a, b or size) for a, b in rows])) as stream,
        ):
            yield Log(os.path.basename(self.path), stream, "", False)


def _heads(file: IO[bytes], start: int) -> Iterator[tuple[int, bytes]]:
    """The lines that begin with V, with their places; a last line that is not whole is left for later."""
    file.seek(start)
    # A line begins after a newline: one is put before the first.
    text, base = (b"\n", -1) if start == 0 else (b"", start)
    while chunk := file.read(_CHUNK):
        text += chunk
        at = 0
        while (begin := text.find(b"\nV", at)) >= 0:
            end = text.find(b"\n", begin + 1)
            if end < 0 and len(text) - begin < _LONGEST_LINE:
                break
            if 0 <= end - begin < _LONGEST_LINE:
                yield base + begin + 1, text[begin + 1 : end]
            at = end if end >= 0 else len(text)
        kept = begin if begin >= 0 else max(at, len(text) - 1)
        base, text = base + kept, text[kept:]


def head_record(reader: MetadataReader, line: bytes) -> Record | None:
    """The record whose metadata are in a line, without its payload; None if it cannot be read."""
    head = HEAD.match(line)
    if head is None:
        return None
    with contextlib.suppress(NotMetadata):
        return parse_record(reader.read(line[head.end() :], lambda what: None), "")
    return None


def _compile(record: Record) -> IndexedCompile:
    facts = record.facts
    return IndexedCompile(
        record.compile or str(facts.get("compile_id", ""))[:80],
        str(facts.get("co_name", ""))[:200],
        str(facts.get("co_filename", ""))[:2000],
        facts.get("co_firstlineno") or 0,
        float(facts.get("entire_frame_compile_time_s") or 0.0),
        facts.get("graph_op_count") or 0,
        str(facts.get("fail_type") or "")[:200],
    )


def _row(one: IndexedCompile) -> tuple[Any, ...]:
    return one.id, one.function, one.file, one.line, one.seconds, one.ops, one.error


class _Parts(io.RawIOBase):
    """Parts of a file, one after the other."""

    def __init__(self, file: IO[bytes], parts: list[tuple[int, int]]) -> None:
        self._file, self._parts, self._next = file, iter(parts), (0, 0)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As of any raw stream."""
        begin, end = self._next
        while begin >= end:
            part = next(self._parts, None)
            if part is None:
                return 0
            begin, end = part
        self._file.seek(begin)
        data = self._file.read(min(len(buffer), end - begin))
        self._next = (begin + len(data), end) if data else (0, 0)
        buffer[: len(data)] = data
        return len(data)
