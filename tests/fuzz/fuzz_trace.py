"""Damaged and hostile traces: cut off, interleaved, scratched, packed too tightly, with very long lines, deep nesting, markup
in names and paths that lead elsewhere; opened by the command line, alone and as the ranks of a job."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzz_store import Reader
from garble import Garbler
from judge import FuzzError, nothing_left, until

LOG = gzip.decompress((Path(__file__).parents[1] / "plain" / "traces" / "trace.log.gz").read_bytes())
_RECORDS = [b"V" + part for part in LOG.split(b"\nV")]
_RECORDS[0] = _RECORDS[0][1:]
_HEAD = b"V1125 07:11:18.729000 24026 torch/_dynamo/x.py:1] "
_IDS = b', "frame_id": 0, "frame_compile_id": 0, "attempt": 0'
_NAMES = (
    "<img src=x onerror=alert(1)>", "\x1b]0;owned\x07\x1b[2J", "\u202etxt.exe", "../../../../etc/passwd", "/etc/passwd", "", "a\0b",
    "x" * 100_000, "$(reboot)", "file:///etc/passwd", "\ud800", "'; DROP TABLE runs; --", "%s%n", "{0.__class__}", "..", "con",
)  # fmt: skip
_ODD_NUMBERS = (
    b"18446744073709551616", b"9223372036854775808", b"-9223372036854775809", b"1e308", b"-1e308", b"1e400", b"NaN", b"-Infinity",
    b"1" * 5000, b"true", b"null", b'"many"', b"-1", b"0", b"0.5", b"[]", b"{}", b"4294967296", b'"\\ud800"', b'"a\\u0000b"',
)  # fmt: skip
_NUMBER = re.compile(rb'(": ?|[\[,] ?)(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?=[,}\]])')
_OPTIONS: tuple[list[str], ...] = (
    [], [], ["--json"], ["--strict"], ["--overview"], ["--overview", "--json"], ["--compile", "0/0"], ["--log", "rank_1"],
    ["--map", "/home/=/tmp/"], ["--source-root", "."],
)  # fmt: skip
_STORES = 20
"""Traces that go into one store."""
_LONG_LINE = 300 << 20
_BOMB = gzip.compress(bytes(200 << 20), 9)


def fuzz(seconds: float, random: Random, folder: Path) -> int:
    """Opens such traces for so long; returns how many.  Raises FuzzError."""
    temporary, work, store = folder / "temporary", folder / "opened", folder / "runs.db"
    temporary.mkdir(parents=True)
    garbler = Garbler(random, {})
    env = {**os.environ, "IRSCOPE_FUZZ": str(folder), "TMPDIR": str(temporary), "IRSCOPE_STORE": str(store)}
    reader = Reader(folder, env)
    codes: Counter[int] = Counter()
    over, count = until(seconds), 0
    try:
        while not over():
            if count % _STORES == 0:
                for left in folder.glob("runs.db*"):
                    left.unlink()
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            path = _trace(work, garbler)
            for options in random.sample(_OPTIONS, 2):
                codes[reader.ask(["open", str(path), *options, "--store", str(store)])] += 1
            _all_ended(store)
            count += 1
    finally:
        reader.close()
    print("exit codes of commands:", dict(sorted(codes.items())))
    nothing_left(f"IRSCOPE_FUZZ={folder}", temporary)
    return count


def _all_ended(store: Path) -> None:
    """Raises FuzzError if a run is left that has no end."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        has_runs = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'").fetchone()[0]
        if has_runs and (left := db.execute("SELECT id FROM runs WHERE outcome IS NULL").fetchall()):
            raise FuzzError(f"runs without an end are left in {store}: {left}")


def _trace(work: Path, garbler: Garbler) -> Path:
    """Writes one; returns its path."""
    random = garbler.random
    choice = random.randrange(20)
    if choice == 0:
        return _long_line(work)
    if choice == 1:
        return _put(work / "bomb.log.gz", _BOMB if random.random() < 0.5 else gzip.compress(_log(garbler)) + _BOMB)
    if choice <= 4:
        return _archive(work, garbler)
    if choice <= 7:
        return _ranks(work, garbler)
    if choice <= 9:
        return _jsonl(work, garbler)
    data = _log(garbler)
    if random.random() < 0.3:
        data = gzip.compress(data, 1)
        data = garbler.scratched(data) if random.random() < 0.5 else data
    return _put(work / "trace.log", data)


def _put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _long_line(work: Path) -> Path:
    """A sparse file: one line of zeros after some records, which takes no room."""
    path = _put(work / "long.log", b"\n".join(_RECORDS[:20]) + b"\n")
    os.truncate(path, _LONG_LINE)
    return path


def _archive(work: Path, garbler: Garbler) -> Path:
    """Members whose names lead out of the archive, links, and damage."""
    random = garbler.random
    names = [
        "../../evil.log",
        "/tmp/evil.log",
        "a/dedicated_log_torch_trace_rank_0_x.log",
        "b/dedicated_log_torch_trace_rank_1_x.log",
    ]
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in random.sample(names, random.randrange(1, 5)):
            member = tarfile.TarInfo(name)
            if random.random() < 0.15:
                member.type, member.linkname = random.choice(
                    ((tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "../x"))
                )
                archive.addfile(member)
                continue
            data = _log(garbler)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    data = made.getvalue()
    data = gzip.compress(data, 1) if random.random() < 0.5 else data
    return _put(work / "traces.tar.gz", garbler.scratched(data) if random.random() < 0.4 else data)


def _ranks(work: Path, garbler: Garbler) -> Path:
    """A folder of logs, of several ranks."""
    random = garbler.random
    for rank in random.sample((0, 1, 2, 3, 7, 999_999_999, 10**30), random.randrange(2, 5)):
        data = LOG if random.random() < 0.5 else _log(garbler)
        _put(
            work / f"dedicated_log_torch_trace_rank_{rank}_x.log",
            random.choice((data, data, data[: len(data) // 2], b"")),
        )
    if random.random() < 0.3:
        (work / "dedicated_log_torch_trace_rank_4_x.log").symlink_to(random.choice(("/dev/zero", "/etc/passwd", ".")))
    return work


def _jsonl(work: Path, garbler: Garbler) -> Path:
    """As tlparse writes it, with payloads that are elsewhere."""
    random = garbler.random
    lines = [b'{"string_table": ["/home/user/a.py", "' + b"x" * 50 + b'"]}']
    for record in random.sample(_RECORDS, 20):
        try:
            metadata = json.loads(record.split(b"\n")[0].partition(b"] ")[2])
        except ValueError:
            continue
        metadata["payload_filename"] = random.choice(_NAMES)
        lines.append(json.dumps(garbler.spoiled(metadata, 0.05)).encode("utf-8", "surrogatepass"))
    return _put(work / "raw.jsonl", b"\n".join(lines))


# --- logs -------------------------------------------------------------------------------------------------------------


def _log(garbler: Garbler) -> bytes:
    """A log with one sort of damage, or several."""
    random, data = garbler.random, LOG
    for _ in range(random.choice((1, 1, 2))):
        data = random.choice(_DAMAGES)(data, garbler)
    return data


def _cut(data: bytes, garbler: Garbler) -> bytes:
    return data[: garbler.random.randrange(len(data) + 1)]


def _scratched(data: bytes, garbler: Garbler) -> bytes:
    return garbler.scratched(data)


def _interleaved(data: bytes, garbler: Garbler) -> bytes:
    """Two processes that wrote into one file, line by line."""
    lines = data.split(b"\n")
    middle = garbler.random.randrange(len(lines) + 1)
    sides = [lines[:middle], lines[middle:]]
    made = []
    while sides[0] or sides[1]:
        side = garbler.random.choice([one for one in sides if one])
        made += side[: (taken := garbler.random.choice((1, 1, 5, 200)))]
        del side[:taken]
    return b"\n".join(made)


def _shuffled(data: bytes, garbler: Garbler) -> bytes:
    """Records in another order, gone, or there twice."""
    return b"\n".join(garbler.random.choices(_RECORDS, k=garbler.random.choice((1, 20, len(_RECORDS)))))


def _spoiled(data: bytes, garbler: Garbler) -> bytes:
    """Records with other metadata that is valid JSON."""
    records = list(_RECORDS)
    for at in garbler.random.sample(range(len(records)), 10):
        line, newline, payload = records[at].partition(b"\n")
        head, bracket, text = line.partition(b"] ")
        try:
            made = json.dumps(garbler.spoiled(json.loads(text), 0.1)).encode("utf-8", "surrogatepass")
        except ValueError:
            continue
        records[at] = head + bracket + made + newline + payload
    return b"\n".join(records)


def _named(data: bytes, garbler: Garbler) -> bytes:
    """Names and paths with markup, escapes and dots."""
    name = json.dumps(garbler.random.choice(_NAMES)).encode("utf-8", "surrogatepass")[1:-1]
    old = garbler.random.choice((b"/home/user/project/steps.py", b"step", b"sin", b"f32", b"24026", b"/home/user"))
    return data.replace(old, name)


def _nested(data: bytes, garbler: Garbler) -> bytes:
    """Deep nesting, in metadata and in a payload."""
    deep = garbler.random.choice(
        (b"[" * 100_000, b'{"a":' * 50_000, b"[" * 900 + b"]" * 900, b"(" * 100_000, b"\t" * 100_000)
    )
    event = garbler.random.choice(
        (b"compilation_metrics", b"dynamo_start", b"str", b"artifact", b"dynamo_output_graph", b"chromium_event")
    )
    more = (
        _HEAD + b'{"%s": %s' % (event, deep),
        _HEAD + b'{"%s": {}%s, "has_payload": "x"}\n\t%s' % (event, _IDS, deep),
    )
    at = data.find(b"\nV", garbler.random.randrange(len(data) + 1)) + 1
    return data[:at] + garbler.random.choice(more) + b"\n" + data[at:]


def _numbers(data: bytes, garbler: Garbler) -> bytes:
    """Other values in the place of numbers: in metadata, in stacks, in payloads that are JSON."""
    random, share = garbler.random, garbler.random.choice((0.02, 0.2, 1))

    def other(found: re.Match[bytes]) -> bytes:
        return found[1] + (random.choice(_ODD_NUMBERS) if random.random() < share else found[2])

    lines = data.split(b"\n")
    return b"\n".join(_NUMBER.sub(other, line) if b"{" in line[:200] else line for line in lines)


_DAMAGES: tuple[Callable[[bytes, Garbler], bytes], ...] = (
    _cut, _scratched, _interleaved, _shuffled, _spoiled, _spoiled, _named, _nested, _numbers, _numbers,
)  # fmt: skip
