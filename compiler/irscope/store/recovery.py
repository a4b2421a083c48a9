"""What can still be read of a damaged run store, in a new one.

SQLite reads nothing of a file whose first page is overwritten, although all other pages are whole: the first page says
where the tables begin.  A store's tables are made in a fixed order, so that is known: the first page of a new store fits.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice

from irscope.vocabulary.patterns import pattern

PARTS = ("", "-wal", "-shm")
"""What the names of a database's files end with."""
_PAGE = 4096
_RUN = pattern(r"\d{8}-\d{6}-[0-9a-f]{6}")
_LOOKED_AT = 20
"""Runs by which a file is recognised as a store."""


def is_damage(error: Exception) -> bool:
    """Whether SQLite says that the file is not what it should be."""
    return isinstance(error, sqlite3.DatabaseError) and str(error).startswith(
        (
            "file is not a database",
            "database disk image is malformed",
            "malformed database schema",
            "unsupported file format",
        )
    )


def moved_aside(path: str, ending: str, new: str = "") -> str:
    """Gives a store a name that no earlier file has; returns that.

    Args:
        new: A file that takes its place, without a moment in which there is none.
    """
    names = (f"{path}{ending}{number or ''}" for number in itertools.count())
    kept = next(name for name in names if not os.path.exists(name))
    for part in reversed(PARTS[1:]):  # first, since SQLite would replay a log into a new file of the old name
        with contextlib.suppress(FileNotFoundError):
            os.replace(path + part, kept + part)
    if new:
        try:
            os.link(path, kept)
        except OSError:  # a file system without links
            os.replace(path, kept)
        os.replace(new, path)
    else:
        os.replace(path, kept)
    return kept


def recover(path: str, new: Callable[[str], sqlite3.Connection]) -> tuple[int, str] | None:
    """Moves a damaged store aside, and puts a new one with what can be read into its place.

    Args:
        new: Opens a new store at a path.

    Returns how many runs are kept, and where the damaged file is; None if nothing in it looks like a store.
    Raises OSError or sqlite3.Error where the new store cannot be made; the damaged one is then where it was.
    """
    before = os.stat(path)
    with tempfile.TemporaryDirectory(prefix=".recovering-", dir=os.path.dirname(path)) as folder:
        made, copy = os.path.join(folder, "new"), os.path.join(folder, "damaged")
        with contextlib.closing(new(made)) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            for part in PARTS[:2]:
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(path + part, copy + part)
            has_tables = _has_tables(copy)
            if not has_tables:
                _take_first_page(made, copy)
            is_store = _has_runs(copy)
            with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as damaged:
                if is_store:
                    _copy(damaged, db, tables)
            count = int(db.execute("SELECT count(*) FROM runs").fetchone()[0])
        if not is_store and not has_tables:
            return None
        os.chmod(made, 0o600)
        if os.stat(path).st_ino != before.st_ino:
            return count, f"{path}.damaged"  # another process was faster
        return count, moved_aside(path, ".damaged", made)


def _has_tables(path: str) -> bool:
    """Whether a file says that it has the tables of a store, whatever is in them."""
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return names >= {"runs", "texts", "stages", "findings"}


def _has_runs(path: str) -> bool:
    """Whether runs can be read from a file, and what can be read are runs."""
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            ids = [id for (id,) in islice(_rows(db, "SELECT id FROM runs NOT INDEXED"), _LOOKED_AT)]
    except sqlite3.Error:
        return False
    return bool(ids) and all(isinstance(id, str) and _RUN.fullmatch(id) for id in ids)


def _take_first_page(whole: str, damaged: str) -> None:
    """Gives a file the first page of another, with its own number of pages and no list of free ones."""
    pages = os.path.getsize(damaged) // _PAGE
    with open(whole, "rb") as file:
        page = bytearray(file.read(_PAGE))
    if pages < 2 or len(page) < _PAGE:
        return
    (changes,) = struct.unpack_from(">I", page, 24)
    struct.pack_into(">I", page, 28, pages)  # counts where the number of changes is the one at 92
    struct.pack_into(">II", page, 32, 0, 0)
    struct.pack_into(">I", page, 92, changes)
    with open(damaged, "r+b") as file:
        file.write(page)
        file.truncate(pages * _PAGE)


def _copy(damaged: sqlite3.Connection, db: sqlite3.Connection, tables: list[str]) -> None:
    """All rows that can be read, of the columns that both have; then not what belongs to no run."""
    db.execute("BEGIN IMMEDIATE")
    for table in tables:
        with contextlib.suppress(sqlite3.Error):
            theirs = {row[1] for row in damaged.execute(f"PRAGMA table_info({table})")}
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] in theirs]
            marks = ", ".join("?" * len(columns))
            insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"
            for row in _rows(damaged, f"SELECT {', '.join(columns)} FROM {table}"):
                with contextlib.suppress(sqlite3.Error):
                    db.execute(insert, row)
    for table in tables:
        if any(row[1] == "run" for row in db.execute(f"PRAGMA table_info({table})")):
            db.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT id FROM runs)")
    db.execute("COMMIT")


def _rows(db: sqlite3.Connection, select: str) -> Iterator[tuple[object, ...]]:
    """Up to a damaged page, then from the end back to it."""
    for order in ("", " DESC"):
        try:
            yield from db.execute(f"{select} ORDER BY rowid{order}")
            return
        except sqlite3.Error:
            continue
