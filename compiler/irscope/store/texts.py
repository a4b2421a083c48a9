"""The texts of a run store: each stored once per content, named by its SHA-256.

While a run goes on, each text is compressed by itself, lightly, so that it is safe at once and costs the run little.
When the run has ended its texts are *packed*: the same graph is in many stages, printed a little differently, and
a compressor that sees them one after the other in one window keeps little more than the differences.  A pack is small
enough that one text is read from it in hundredths of a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from irscope.vocabulary.records import dataclass

_PACKS = "CREATE TABLE packs (id INTEGER PRIMARY KEY, codec TEXT NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL)"
TABLES = f"""
CREATE TABLE texts (
  digest BLOB PRIMARY KEY, data BLOB NOT NULL, bytes INTEGER NOT NULL, pack INTEGER, start INTEGER);
{_PACKS}"""
CHANGES_FROM_4 = f"""
ALTER TABLE texts ADD COLUMN pack INTEGER;
ALTER TABLE texts ADD COLUMN start INTEGER;
{_PACKS}"""
"""The schema of a store of version 4, which had no packs."""

NO_TEXT = b""
"""In place of a digest: there is no text, it is made when it is asked for."""

_PACK_BYTES = 4_000_000  # before compression; a longer text is its own pack
_WINDOW = 1 << 22
_KEPT_BYTES = 16_000_000  # of packs that were read
_LEAST_USED = 0.5  # of a pack; else what is still used of it is packed again


_LONGEST = 1 << 28
"""The most bytes of a text or a pack.  A row that claims more is taken for an attack."""


class MissingCodecError(Exception):
    """This Python lacks the compression module that a pack was written with."""


class DamagedTextError(Exception):
    """What is stored is not what its row says."""


@dataclass(frozen=True)
class _Row:
    digest: bytes
    data: bytes
    """Empty if it is in a pack."""
    size: int
    pack: int | None
    start: int | None


class Texts:
    """The texts in a database; the tables are `TABLES`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._packs: OrderedDict[int, bytes] = OrderedDict()

    def put(self, text: str) -> tuple[bytes, int]:
        """Keeps a text; returns its digest and its size in bytes of UTF-8."""
        data = text.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(data).digest()
        if not self._db.execute("SELECT 1 FROM texts WHERE digest = ?", (digest,)).fetchone():
            self._db.execute(
                "INSERT OR IGNORE INTO texts VALUES (?, ?, ?, NULL, NULL)", (digest, zlib.compress(data, 1), len(data))
            )
        return digest, len(data)

    def get(self, digest: bytes) -> str | None:
        """A text; None if there is none of this digest.

        Raises MissingCodecError, and DamagedTextError where the file is damaged.
        """
        row = self._row(digest)
        try:
            return None if row is None else self._bytes_of(row).decode("utf-8", "surrogatepass")
        except UnicodeError as error:
            raise DamagedTextError("a text is not UTF-8") from error

    def forget(self) -> None:
        """Keeps no pack that was read."""
        self._packs.clear()

    def pack(self, digests: Iterable[bytes]) -> None:
        """Packs those of these texts that are not packed yet, in this order; damaged ones stay as they are."""
        rows = (self._row(digest) for digest in dict.fromkeys(digests))
        for group in _groups(row for row in rows if row is not None and row.pack is None):
            with contextlib.suppress(DamagedTextError):
                self._write_pack(group)

    def size(self) -> int:
        """Bytes of all texts as they are stored."""
        alone, packed = (
            self._db.execute(f"SELECT coalesce(sum(length(data)), 0) FROM {table}").fetchone()[0]
            for table in ("texts", "packs")
        )
        return int(alone) + int(packed)

    def sweep(self, used: str) -> None:
        """Deletes the texts that are not ``used`` (a query of digests), and what that leaves of packs.

        To be called inside a transaction: another process may be about to use what it has found here.
        """
        self._db.execute(f"DELETE FROM texts WHERE digest NOT IN ({used})")
        left = dict(self._db.execute("SELECT pack, sum(bytes) FROM texts WHERE pack IS NOT NULL GROUP BY pack"))
        for pack, size in self._db.execute("SELECT id, bytes FROM packs").fetchall():
            if pack in left and left[pack] < _LEAST_USED * size:
                rows = self._db.execute("SELECT * FROM texts WHERE pack = ? ORDER BY start", (pack,)).fetchall()
                try:
                    self._write_pack([_Row(*row) for row in rows])
                except DamagedTextError:
                    continue  # it goes with the last of its texts
            if left.get(pack, 0) < _LEAST_USED * size:
                self._db.execute("DELETE FROM packs WHERE id = ?", (pack,))
                self._packs.pop(pack, None)

    def _row(self, digest: bytes) -> _Row | None:
        row = self._db.execute("SELECT * FROM texts WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else _Row(*row)

    def _bytes_of(self, row: _Row) -> bytes:
        if row.pack is None or row.start is None:
            return _unpacked("zlib", row.data, row.size)
        return self._pack(row.pack)[row.start : row.start + row.size]

    def _pack(self, id: int) -> bytes:
        if id in self._packs:
            self._packs.move_to_end(id)
            return self._packs[id]
        row = self._db.execute("SELECT codec, data, bytes FROM packs WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise DamagedTextError(f"pack {id} is missing")
        data = self._packs[id] = _unpacked(*row)
        while len(self._packs) > 1 and sum(map(len, self._packs.values())) > _KEPT_BYTES:
            self._packs.popitem(last=False)
        return data

    def _write_pack(self, rows: Sequence[_Row]) -> None:
        """Compresses before it writes: others can write meanwhile."""
        parts = [self._bytes_of(row) for row in rows]
        codec, data = _packed(b"".join(parts))
        self._db.execute("SAVEPOINT pack")
        try:
            # First, so that the pack takes the room that becomes free; a row that only gets shorter frees none.
            self._db.executemany("DELETE FROM texts WHERE digest = ?", [(row.digest,) for row in rows])
            size = sum(map(len, parts))
            id = self._db.execute("INSERT INTO packs VALUES (NULL, ?, ?, ?)", (codec, size, data)).lastrowid
            starts = accumulate(map(len, parts), initial=0)
            self._db.executemany(
                "INSERT INTO texts VALUES (?, x'', ?, ?, ?)",
                [(row.digest, row.size, id, start) for row, start in zip(rows, starts, strict=False)],
            )
        except BaseException:
            self._db.execute("ROLLBACK TO pack")
            self._db.execute("RELEASE pack")
            raise
        self._db.execute("RELEASE pack")


def _groups(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    group: list[_Row] = []
    for row in rows:
        if group and sum(one.size for one in group) + row.size > _PACK_BYTES:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _packed(data: bytes) -> tuple[str, bytes]:
    try:
        import lzma
    except ImportError:  # a Python that was built without liblzma
        return "zlib", zlib.compress(data, 6)
    window = min(_WINDOW, max(len(data), 1 << 12))  # the compressor takes some eight times as much memory
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": window}]
    return "xz", lzma.compress(data, lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=filters)


def _unpacked(codec: str, data: bytes, size: int) -> bytes:
    """As many bytes as the row says, within bounds: a few bytes of a store from elsewhere may stand for gigabytes."""
    if not isinstance(size, int) or not isinstance(data, bytes) or not 0 <= size <= _LONGEST:
        raise DamagedTextError(f"invalid size of a text: {size}")
    try:
        unpacked, complete = _inflated(data, size) if codec == "zlib" else _decompressed(data, size)
    except (zlib.error, ValueError, EOFError) as error:
        raise DamagedTextError(str(error)) from error
    if len(unpacked) != size or not complete:
        raise DamagedTextError(f"a text does not have the expected {size} bytes")
    return unpacked


def _inflated(data: bytes, size: int) -> tuple[bytes, bool]:
    stream = zlib.decompressobj()
    unpacked = stream.decompress(data, size + 1)  # a limit of 0 would be none
    return unpacked, stream.eof


def _decompressed(data: bytes, size: int) -> tuple[bytes, bool]:
    try:
        import lzma
    except ImportError:
        raise MissingCodecError("its texts are compressed with lzma, and this Python was built without it") from None
    try:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_LONGEST)
        unpacked = b""
        while len(unpacked) <= size and not stream.eof:
            piece = stream.decompress(data, size + 1 - len(unpacked))
            data = b""
            if not piece and stream.needs_input:
                break
            unpacked += piece
        return unpacked, stream.eof
    except lzma.LZMAError as error:
        raise DamagedTextError(str(error)) from error
