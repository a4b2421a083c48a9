"""The file of a run store: its tables, their versions, how it is opened."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from irscope.protocol import DEFAULT_PIPELINE
from irscope.store.disk import is_shared, why_full
from irscope.store.recovery import is_damage, moved_aside, recover
from irscope.store.texts import CHANGES_FROM_4, TABLES
from irscope.vocabulary.records import dataclass

STORE_LOG = "irscope.store"
_LOG = logging.getLogger(STORE_LOG)
VERSION = 11
_TRAILS = (
    "CREATE TABLE trails (run TEXT NOT NULL, compile TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (run, compile))"
)
_COMPARISONS = "CREATE TABLE comparisons (run TEXT PRIMARY KEY, digest BLOB NOT NULL)"
_PROFILES = "CREATE TABLE profiles (run TEXT PRIMARY KEY, digest BLOB NOT NULL)"
_PLACES = "CREATE TABLE places (run TEXT PRIMARY KEY, facts TEXT NOT NULL)"
"""What the facts of a run's kernels refer to (`irscope.store.places`)."""
_PIPELINE = f"pipeline TEXT NOT NULL DEFAULT '{DEFAULT_PIPELINE}'"
_ADD_PIPELINE = f"ALTER TABLE runs ADD COLUMN {_PIPELINE}"
_MADE = "made INTEGER NOT NULL DEFAULT 0"
_ADD_MADE = f"""ALTER TABLE runs ADD COLUMN {_MADE};
UPDATE runs SET made = 2 * rowid;
UPDATE runs SET made = coalesce((SELECT max(made) + 1 FROM runs AS rank WHERE instr(runs.args, rank.id)), made)
  WHERE instr(args, '"ranks": ')"""
"""Before, the time at which a run began was its place among the others; that of a job's first rank was changed, so that it is
the newest of its ranks."""
_TABLES = f"""
CREATE TABLE runs (
  id TEXT PRIMARY KEY, script TEXT NOT NULL, args TEXT NOT NULL, lane TEXT NOT NULL, started REAL NOT NULL,
  source TEXT NOT NULL, torch TEXT, outcome TEXT, {_PIPELINE}, {_MADE});
CREATE TABLE compiles (run TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, facts TEXT NOT NULL,
  PRIMARY KEY (run, id));
CREATE TABLE stages (run TEXT NOT NULL, id TEXT NOT NULL, compile TEXT NOT NULL, position REAL NOT NULL,
  name TEXT NOT NULL, language TEXT NOT NULL, bytes INTEGER NOT NULL, digest BLOB NOT NULL, data BLOB,
  passed TEXT NOT NULL, seconds REAL NOT NULL, nodes INTEGER, PRIMARY KEY (run, id));
CREATE TABLE sources (run TEXT NOT NULL, file TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (run, file));
CREATE TABLE kernels (run TEXT NOT NULL, stage TEXT NOT NULL, name TEXT NOT NULL, position INTEGER NOT NULL,
  facts TEXT NOT NULL, PRIMARY KEY (run, stage, name));
CREATE TABLE findings (run TEXT NOT NULL, cause TEXT NOT NULL, position INTEGER NOT NULL, facts TEXT NOT NULL,
  PRIMARY KEY (run, cause));
CREATE TABLE gaps (run TEXT NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (run, what, why));
{_TRAILS};
{_COMPARISONS};
{_PROFILES};
{_PLACES};
{TABLES.strip()};
"""
TABLES_OF_RUN = (
    "compiles", "stages", "sources", "kernels", "findings", "gaps", "trails", "comparisons", "profiles", "places",
)  # fmt: skip
"""What a run has beside its row in ``runs``."""
NEWEST_FIRST = "ORDER BY runs.made DESC, runs.rowid DESC"
"""The order in which runs were made.  Their times are only shown: a clock may jump."""
USED_TEXTS = (
    "SELECT digest FROM stages UNION SELECT data FROM stages WHERE data IS NOT NULL UNION SELECT digest FROM sources"
    " UNION SELECT digest FROM trails UNION SELECT digest FROM comparisons UNION SELECT digest FROM profiles"
)
"""The digests of all texts that are needed."""
_CHANGES = {
    0: _TABLES,
    4: f"{CHANGES_FROM_4};\nALTER TABLE stages ADD COLUMN nodes INTEGER;\n{_TRAILS};\n{_ADD_PIPELINE};\n{_COMPARISONS};\n{_PROFILES};\n{_ADD_MADE};\n{_PLACES}",
    5: f"{_TRAILS};\n{_ADD_PIPELINE};\n{_COMPARISONS};\n{_PROFILES};\n{_ADD_MADE};\n{_PLACES}",
    6: f"{_ADD_PIPELINE};\n{_COMPARISONS};\n{_PROFILES};\n{_ADD_MADE};\n{_PLACES}",
    7: f"{_COMPARISONS};\n{_PROFILES};\n{_ADD_MADE};\n{_PLACES}",
    8: f"{_PROFILES};\n{_ADD_MADE};\n{_PLACES}",
    9: f"{_ADD_MADE};\n{_PLACES}",
    10: _PLACES,
}
"""What makes a file of these versions one of the newest."""


class StoreError(Exception):
    """The store cannot be used; the message says what to do."""


class DamagedStoreError(StoreError, sqlite3.DatabaseError):
    """What is in the store cannot be understood."""


class _HasPath(Protocol):
    path: str


_S = TypeVar("_S", bound=_HasPath)
_P = ParamSpec("_P")
_T = TypeVar("_T")


def reading(method: Callable[Concatenate[_S, _P], _T]) -> Callable[Concatenate[_S, _P], _T]:
    """Has a method of a store raise DamagedStoreError where it meets what no irscope has written.

    A LookupError of the method itself, because something is not in the store, stays.
    """

    @functools.wraps(method)
    def read(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return method(self, *args, **kwargs)
        except StoreError:
            raise
        except (
            sqlite3.Error,
            ValueError,
            KeyError,
            IndexError,
            TypeError,
            AttributeError,
            RecursionError,
            OverflowError,
        ) as error:
            raise DamagedStoreError(
                f"The run store {self.path} cannot be read: {type(error).__name__}: {str(error)[:200]}."
                f" If it is damaged, move it away and run the script again."
            ) from error

    return read


def default_path() -> str:
    """The command line's store: ``IRSCOPE_STORE``, else a file in the user's cache folder."""
    if named := os.environ.get("IRSCOPE_STORE"):
        return named
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "irscope", "runs.db")


@dataclass(frozen=True)
class Opened:
    """A connection that any thread may use.

    Args:
        unkept: Why nothing that is written into it is kept, for the user; empty if it is.
    """

    db: sqlite3.Connection
    unkept: str = ""


def open_store(path: str) -> Opened:
    """Opens a store; makes the file, or brings it up to date.

    A damaged store is moved aside, and what can be read of it is in a new one.  On a full disk, on which SQLite opens
    nothing, the store can be read as it is; a store that does not exist yet is in memory.

    Raises StoreError.
    """
    try:
        make_private_folder(os.path.dirname(path))
        _make_private(path)
        try:
            return Opened(_opened(path))
        except sqlite3.DatabaseError as error:
            if not is_damage(error) or not recovered(path):
                raise
            return Opened(_opened(path))
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        if why := why_full(os.path.dirname(path)):
            return Opened(_only_read(path), f"{os.path.dirname(path)} cannot be written: {why}. Free some space there.")
        raise StoreError(
            f"The run store {path} cannot be used: {error}. Name another file (--store FILE or the setting irscope.storePath), or delete this one."
        ) from error


def recovered(path: str) -> bool:
    """Moves a damaged store aside and keeps the runs of it that can be read; false if it does not look like a store.

    Says so in the log, whose messages the command line and the server show.
    """
    done = recover(path, _opened)
    if done is None:
        if not is_own_store(path):
            return False
        done = 0, moved_aside(path, ".damaged")
    kept, aside = done
    _LOG.warning("The run store %s was damaged. Runs that are kept: %d. The damaged file is now %s.", path, kept, aside)
    return True


def is_own_store(path: str) -> bool:
    """Whether a file is the one in the user's cache folder, which irscope has made, and not one that the user named."""
    return path == default_path() and not os.environ.get("IRSCOPE_STORE")


def _only_read(path: str) -> sqlite3.Connection:
    """A connection to a store on a full disk, else to an empty store in memory.  Raises StoreError."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return in_memory()
    try:
        db = sqlite3.connect(
            f"{Path(path).as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
        _refuse_odd(db)
        if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
            return db
        why = "it was made by another version of irscope, which cannot be changed on a full disk"
    except sqlite3.Error as error:
        why = str(error)
    raise StoreError(
        f"The disk of the run store {path} is full, and it cannot be read: {why}. Free some space there, or name another file (--store FILE or the setting irscope.storePath)."
    )


def in_memory() -> sqlite3.Connection:
    """A connection to an empty store that is nowhere on the disk."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for statement in _TABLES.split(";\n"):
        db.execute(statement)
    return db


def go_on_in_memory(db: sqlite3.Connection, run: str) -> sqlite3.Connection:
    """A store in memory with what a store has of a run so far."""
    memory = in_memory()
    for table, mark in [("runs", "id"), *((table, "run") for table in TABLES_OF_RUN)]:
        with contextlib.suppress(sqlite3.Error):
            for row in db.execute(f"SELECT * FROM {table} WHERE {mark} = ?", (run,)):
                memory.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    with contextlib.suppress(sqlite3.Error):
        for (digest,) in memory.execute(USED_TEXTS).fetchall():
            for row in db.execute("SELECT * FROM texts WHERE digest = ?", (digest,)):
                memory.execute("INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?, ?)", row)
    return memory


def make_private_folder(folder: str) -> None:
    """Creates a folder that only its owner can open.  An existing folder keeps its mode: it may hold other things."""
    os.makedirs(folder, mode=0o700, exist_ok=True)


def open_private(path: str, flags: int) -> int:
    """A descriptor of a file; one that is made can only be read by its owner.  An ``opener`` of `open`."""
    return os.open(path, flags, 0o600)


def _make_private(path: str) -> None:
    """SQLite gives the files beside a database the mode of the database.

    Older versions made files that everybody could read: the one of the command line, which nobody shares on purpose,
    is closed to others.

    An existing file must not be opened here.  When a process closes any descriptor of a file, POSIX releases all locks
    that the process has on it; the other connections would go on without locks, and damage the file.
    """
    with contextlib.suppress(FileExistsError):
        os.close(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    if os.name == "posix" and path == default_path():
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.chmod(path + suffix, 0o600)


def _opened(path: str) -> sqlite3.Connection:
    db = _connect(path)
    with transaction(db, "BEGIN IMMEDIATE"):
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if (changes := _CHANGES.get(version)) is not None:
            for statement in changes.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
    if version == VERSION or changes is not None:
        return db
    db.close()
    if version > VERSION:
        raise StoreError(
            f"The run store {path} was made by a newer irscope (version {version}; this one reads up to {VERSION})."
            " Update irscope, or name another file (--store FILE or the setting irscope.storePath)."
        )
    moved_aside(path, ".old")
    return _opened(path)


def _connect(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA trusted_schema = OFF")
    tables = _refuse_odd(db)
    if not tables:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # room that packed texts leave goes back to the disk
    if is_shared(path):
        _use_journal(db, "DELETE")  # the shared memory of WAL is that of one machine
        db.execute("PRAGMA synchronous = FULL")
    else:
        _use_journal(db, "WAL")
        db.execute("PRAGMA synchronous = NORMAL")
    return db


def _refuse_odd(db: sqlite3.Connection) -> set[str]:
    """The names of a store's tables.  Closes the connection and raises sqlite3.DatabaseError if it is not a store."""
    objects = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    odd = [
        name for kind, name, sql in objects if kind not in ("table", "index") or " VIRTUAL " in str(sql)[:40].upper()
    ]
    if odd:  # a view may be endless, a trigger may change what is only read
        db.close()
        raise sqlite3.DatabaseError(f"it contains {odd[0]!r}, and a run store has only tables and indices")
    tables = {name for kind, name, _ in objects if kind == "table"}
    if tables and not tables >= {"runs", "texts"}:
        db.close()
        raise sqlite3.DatabaseError("it is a database of another program, not a run store")
    return tables


def _use_journal(db: sqlite3.Connection, mode: str) -> None:
    """SQLite does not wait here as it does elsewhere: if another connection sets the mode too, it says "locked" at once."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute(f"PRAGMA journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(0.01)


BUSY_SECONDS = 30.0
"""How long a connection waits for others."""


@contextlib.contextmanager
def transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    """All or nothing; inside another transaction a part of that."""
    if db.in_transaction:
        yield
        return
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")  # may fail, too: a full disk
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
