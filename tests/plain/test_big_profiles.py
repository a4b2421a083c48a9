"""A trace from elsewhere that is read in batches: the sums are those of the whole trace."""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import irscope.driver.opened_profile as opening
import pytest
from irscope.cli.main import main
from irscope.driver.opened_profile import opened
from irscope.ir import kineto, kineto_packed, kineto_parts, kineto_quick
from irscope.ir.kineto import Event, Taker, TraceError, read_events
from irscope.ir.kineto_packed import PackedParts, is_large_packed
from irscope.ir.kineto_parts import parts_of, read_part
from irscope.profiling.batches import Columns
from irscope.profiling.columns import EventColumns
from irscope.profiling.profile import Profile
from irscope.protocol import to_json
from irscope.store.store import Store

RECORDINGS = Path(__file__).parent / "profiles"


def recorded(name: str, folder: Path, copies: int, steps: bool = True) -> str:
    """A recording again and again, each time later and with its own ids."""
    with gzip.open(RECORDINGS / f"{name}.json.gz", "rt") as file:
        events = [one for one in json.load(file)["traceEvents"] if one.get("ph") == "X"]
    length = max(one["ts"] + one.get("dur", 0) for one in events) - min(one["ts"] for one in events) + 50
    found: list[dict[str, Any]] = []
    for number in range(copies):
        for one in events:
            args = {
                key: value + number * 10**6 if isinstance(value, int) else value
                for key, value in one.get("args", {}).items()
            }
            name = one["name"].replace("irscope::step:0", f"ProfilerStep#{number}") if steps else one["name"]
            if steps or not name.startswith(("irscope::step", "ProfilerStep")):
                found.append({**one, "name": name, "ts": one["ts"] + number * length, "args": args})
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": found}))
    return str(path)


def figures(found: Profile) -> dict[str, Any]:
    data = to_json(found)
    assert isinstance(data, dict)
    del data["pieces"]  # of a step that is as long as others
    for key in ("lines", "kernels", "gaps"):
        data[key] = sorted(
            data[key], key=lambda one: json.dumps({k: v for k, v in one.items() if type(v) is not float})
        )
    return data


def different(a: Any, b: Any) -> list[str]:
    return [f"{key}: {a[key]} {b[key]}" for key in a if not near(a[key], b[key])]


def near(a: Any, b: Any) -> bool:
    """Equal but for the order in which numbers were added up."""
    if isinstance(a, float) and isinstance(b, (int, float)):
        return a == pytest.approx(b, rel=1e-6, abs=1e-12)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(near, a, b))
    return bool(a == b)


@pytest.mark.parametrize(("name", "steps"), [("training", True), ("break", True), ("graphs", True), ("break", False)])
def test_batches_sum_up_to_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, steps: bool) -> None:
    path, database = recorded(name, tmp_path, 6, steps), tmp_path / "runs.db"
    database.write_bytes(gzip.decompress((RECORDINGS / f"{name}.db.gz").read_bytes()))
    with Store(str(database)) as store:
        run = store.find_run("")
        whole = opened(path, store, run)
        monkeypatch.setattr(opening, "_BATCH", 40)
        assert Columns(EventColumns(read_events(path)), 40).batches > 3
        assert different(figures(opened(path, store, run)), figures(whole)) == []
        monkeypatch.setattr(opening, "_processes", lambda: 1)
        assert different(figures(opened(path, store, run)), figures(whole)) == []
    assert whole.kernels and whole.steps > 0


def an_event(name: str, start: float, seconds: float, category: str = "cpu_op", **args: Any) -> Event:
    return Event(name, category, start, seconds, ("1", "1"), args)


def test_a_kernel_is_in_the_batch_of_its_launch() -> None:
    events = [
        an_event("ProfilerStep#1", 0, 10, "user_annotation"),
        an_event("cudaLaunchKernel", 1, 1, "cuda_runtime", correlation=7),
        an_event("ProfilerStep#2", 10, 10, "user_annotation"),
        an_event("aten::mm", 11, 1, **{"External id": "text"}),
        an_event("late", 12, 3, "kernel", correlation=7, kernel_file="/k.py"),
    ]
    columns = Columns(EventColumns(events), 1)
    assert (columns.batches, columns.steps) == (2, 2)
    first, second = columns.batch(0), columns.batch(1)
    assert [one.name for one in first.events] == ["ProfilerStep#1", "cudaLaunchKernel", "late"]
    assert first.events[2].args == {"correlation": 7, "kernel_file": "/k.py"}
    assert second.busy == [(12, 15)] and first.busy == [], "it worked while the second step went on"
    assert (first.has_picture, second.has_picture, second.begin) == (False, True, None)


def test_a_batch_does_not_end_within_an_operator() -> None:
    events = [an_event("a", 0, 10), an_event("b", 2, 1), an_event("c", 5, 1), an_event("d", 12, 1)]
    columns = Columns(EventColumns(events), 1)
    assert [[one.name for one in columns.batch(n).events] for n in range(columns.batches)] == [["a", "b", "c"], ["d"]]
    assert columns.batch(1).begin == 10 and columns.steps == 1, "one thread"


def test_what_is_left_out_is_counted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded("mlp", tmp_path, 1)
    data = json.loads(Path(path).read_text())
    data["traceEvents"] += [5, "text", {"ph": "X", "name": "late", "cat": "cpu_op", "ts": "?", "dur": 1}, {"ph": "M"}]
    Path(path).write_text(json.dumps(data))
    assert opened(path, None, None).warnings == (
        "2 events of the trace could not be read (not an object).",
        "1 event of the trace could not be read (no time, or an invalid one).",
    )
    assert main(["open", path]) == 0
    assert "2 events of the trace could not be read" in capsys.readouterr().out


@pytest.mark.parametrize("block", [64, 1000, 1 << 22])
def test_events_that_are_read_at_once_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    path = recorded("gpt_train", tmp_path, 2)
    text = Path(path).read_text().rstrip("}") + ', "other": [{"ph": "X"}, {"ph": "X"}]}'
    tricky = '{"ph": "X", "name": "}, {", "cat": "cpu_op", "ts": 1, "dur": 1, "args": {"a": [{"b": 1}, {"c": 2}]}}, '
    Path(path).write_text(text.replace('"traceEvents": [', '"traceEvents": [' + tricky, 1))
    expected = [one["name"] for one in json.loads(Path(path).read_text())["traceEvents"]]
    monkeypatch.setattr(kineto, "_BLOCK", block)
    assert [one.name for one in read_events(path)] == expected


def test_a_block_that_cannot_be_cut_is_not_tried_again_for_each_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = '{"ph": "X", "name": "a", "cat": "cpu_op", "ts": 1, "dur": 1, "args": {"deep": [{}, {}, {}, {}, {}, {}]}}'
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [' + ", ".join([one] * 2000) + "]}")
    tries: list[int] = []
    loads = kineto._whole_events

    def counted(block: str, at: int, taker: Taker | None) -> Any:
        tries.append(at)
        return loads(block, at, taker)

    monkeypatch.setattr(kineto, "_whole_events", counted)
    monkeypatch.setattr(kineto, "_BLOCK", 50_000)
    assert len(list(read_events(str(path)))) == 2000
    assert len(tries) < 10


def killed(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process sums up")
def test_a_process_that_is_killed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_BATCH", 20)
    monkeypatch.setattr(opening, "_processes", lambda: 2)
    monkeypatch.setattr(opening, "_part", killed)
    with pytest.raises(TraceError, match="was killed"):
        opened(recorded("inference", tmp_path, 3), None, None)


# --- msgspec ----------------------------------------------------------------------------------------------------------


def everything(columns: EventColumns) -> list[Event]:
    return columns.events(range(len(columns)))


def read_by_msgspec(path: str, monkeypatch: pytest.MonkeyPatch) -> tuple[EventColumns, EventColumns, int]:
    """The columns with msgspec and without it, and how many blocks it took."""
    offered = EventColumns._taker
    taken: list[bool] = []

    def counting(self: EventColumns) -> Taker:
        take = offered(self)
        assert take is not None

        def noted(text: str) -> bool:
            taken.append(take(text))
            return taken[-1]

        return noted

    reader = functools.partial(read_events, path)
    monkeypatch.setattr(EventColumns, "_taker", counting)
    quick = EventColumns.read(reader, Counter())
    monkeypatch.setattr(EventColumns, "_taker", lambda self: None)
    return quick, EventColumns.read(reader, Counter()), sum(taken)


@pytest.mark.parametrize("name", ["training", "graphs", "break", "gpt_train"])
@pytest.mark.parametrize("block", [3000, 1 << 22])
def test_msgspec_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    monkeypatch.setattr(kineto, "_BLOCK", block)
    quick, plain, taken = read_by_msgspec(recorded(name, tmp_path, 3), monkeypatch)
    assert everything(quick) == everything(plain) and len(plain) > 100 and taken > 0
    assert [one.values for one in (quick.names, quick.categories)] != [[], []]


ODD = [
    {"args": {"correlation": 1 << 61}}, {"args": {"External id": "text"}}, {"args": {"correlation": 1.5}}, {"args": []},
    {"args": None}, {"args": {"kernel_file": 5}}, {"ts": "now"}, {"ts": None}, {"dur": -1.0}, {"dur": None},
    {"name": 7}, {"name": "x" * 5000}, {"cat": None}, {"pid": [1]}, {"tid": 1.5}, {"pid": "x" * 200},
    {"args": {"deep": {"ph": "X", "ts": 1, "dur": 1}}}, {"ts": 1e300}, {"name": "\ud800"},
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda one: str(one)[:30])
def test_an_odd_event_is_read_the_same_by_msgspec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: dict[str, Any]
) -> None:
    path = Path(recorded("inference", tmp_path, 2))
    data = json.loads(path.read_text())
    data["traceEvents"][5] |= odd
    path.write_text(json.dumps(data))
    quick, plain, _ = read_by_msgspec(str(path), monkeypatch)
    assert everything(quick) == everything(plain)


def test_without_msgspec_a_trace_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recorded("inference", tmp_path, 2)
    expected = figures(opened(path, None, None))
    monkeypatch.setitem(sys.modules, "msgspec", None)
    kineto_quick._decoder.cache_clear()
    assert EventColumns()._taker() is None
    assert figures(opened(path, None, None)) == expected


# --- packed with gzip -------------------------------------------------------------------------------------------------


def test_a_packed_trace_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, packed = Path(recorded("break", tmp_path, 2)), tmp_path / "trace.json.gz"
    data = path.read_bytes().replace(b"aten::empty", "aten::\u00e9mpty".encode())
    path.write_bytes(data)
    monkeypatch.setattr(kineto, "_BLOCK", 1001)
    expected = list(read_events(str(path)))
    packed.write_bytes(gzip.compress(data))
    assert list(read_events(str(packed))) == expected
    packed.write_bytes(gzip.compress(data[:777]) + gzip.compress(data[777:]) + b"\0" * 100)
    assert list(read_events(str(packed))) == expected


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (lambda packed: packed[:500], "ended before"),
        (lambda packed: packed[:300] + bytes(100) + packed[400:], "rror"),
        (lambda packed: packed[:-8] + b"1234" + packed[-4:], "CRC check failed"),
        (lambda packed: gzip.compress(b'{"traceEvents": [') + b"what is this", "Not a gzipped file"),
    ],
)
def test_a_damaged_packed_trace_is_an_error(tmp_path: Path, spoilt: Callable[[bytes], bytes], why: str) -> None:
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(spoilt(gzip.compress(Path(recorded("break", tmp_path, 2)).read_bytes())))
    with pytest.raises(TraceError, match=why):
        list(read_events(str(packed)))


@pytest.mark.parametrize("value", [5, None, True, 1 << 70, -7, 0.5, "x" * 9000, [1], {"a": [1]}])
def test_arguments_of_any_kind(tmp_path: Path, value: object) -> None:
    path = Path(recorded("inference", tmp_path, 1))
    data = json.loads(path.read_text())
    for one in data["traceEvents"]:
        one["args"] = dict.fromkeys(("kernel_file", "correlation", "External id", "Sequence number"), value)
    path.write_text(json.dumps(data))
    assert opened(str(path), None, None).steps == 3


# --- parts that are read side by side ---------------------------------------------------------------------------------


def in_parts(path: str, count: int) -> list[Event]:
    return [event for part in parts_of(path, count) for event in read_part(path, *part, Counter())]


@pytest.mark.parametrize("indent", [None, 2])
def test_parts_have_the_events_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None
) -> None:
    path = recorded("break", tmp_path, 6)
    text = json.dumps(json.loads(Path(path).read_text()) | {"after": [{"ph": "X"}]}, indent=indent, ensure_ascii=False)
    Path(path).write_text(text.replace("aten::empty", 'aten::\u00e9mpty, {\\"ph\\": 1}'))
    monkeypatch.setattr(kineto_parts, "_LEAST_PART", 1000)
    whole = list(read_events(path))
    for count in (2, 3, 7):
        assert len(parts_of(path, count)) == count
        assert in_parts(path, count) == whole
    columns, one = EventColumns(), EventColumns(whole)
    for part in parts_of(path, 5):
        columns.extend(EventColumns(read_part(path, *part, Counter())))
    assert everything(columns) == everything(one)


def test_a_part_that_does_not_end_with_an_event_is_an_error(tmp_path: Path) -> None:
    path, event = tmp_path / "trace.json", {"ph": "X", "name": "a", "cat": "cpu_op", "ts": 1, "dur": 1}
    inner = json.dumps({"traceEvents": [event, {**event, "args": {"x": [1, event]}}], "after": [1, event]})
    path.write_text(inner)
    within, after = inner.index('{"ph"', inner.index('"args"')), inner.rindex('{"ph"')
    assert len(list(read_events(str(path)))) == 2
    for cut in (within, after):
        with pytest.raises(TraceError):
            list(read_part(str(path), 0, cut, Counter()))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process reads")
def test_a_large_trace_is_read_by_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recorded("mlp", tmp_path, 6)
    data = json.loads(Path(path).read_text())
    data["traceEvents"].append(5)
    # A cut within an argument: the part before it does not end well, so one process reads all.
    fooling = {**data["traceEvents"][0], "args": {"x": [{"ph": "X"}] * 3000}}
    whole = opened(path, None, None)
    monkeypatch.setattr(kineto_parts, "_LEAST_PART", 1000)
    monkeypatch.setattr(opening, "_processes", lambda: 2)
    Path(path).write_text(json.dumps(data))
    found = opened(path, None, None)
    assert different(figures(found), figures(whole)) == [f"warnings: {list(found.warnings)} []"]
    assert found.warnings == ("1 event of the trace could not be read (not an object).",)
    Path(path).write_text(json.dumps({"traceEvents": [*data["traceEvents"][:2], fooling, *data["traceEvents"][2:]]}))
    with pytest.raises(TraceError):
        in_parts(path, 2)
    assert opened(path, None, None).warnings == found.warnings
    Path(path).write_text(json.dumps(data)[:-20])
    with pytest.raises(TraceError, match="damaged or cut off"):
        opened(path, None, None)


# --- packed parts that are read side by side --------------------------------------------------------------------------


def in_packed_parts(path: str) -> tuple[list[Event], int]:
    """The events, and in how many parts they were."""
    with PackedParts(path, 3) as packed:
        parts = [list(packed.read(place, Counter())) for place in packed.places()]
    return [event for part in parts for event in part], len(parts)


def packed_in_many(data: bytes, members: int = 1, after: bytes = b"") -> bytes:
    length = len(data) // members + 1
    return b"".join(gzip.compress(data[at : at + length]) for at in range(0, len(data), length)) + after


def a_text(folder: Path, name: str = "break", indent: int | None = None, **more: Any) -> bytes:
    data = json.loads(Path(recorded(name, folder, 6)).read_text()) | more
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    return text.replace("aten::empty", 'aten::\u00e9mpty, {\\"ph\\": 1}').encode()


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto_packed, "_LEAST_PACKED", 100)
    monkeypatch.setattr(kineto_packed, "_ROOM", 30_000)
    monkeypatch.setattr(kineto_packed, "_READ", 1001)
    monkeypatch.setattr(opening, "_processes", lambda: 2)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("members", "after"),
    [(1, b""), (50, bytes(2000)), (3, gzip.compress(b"", mtime=0) * 200)],
    ids=["one", "many and zeros", "empty ones"],
)
def test_packed_parts_have_the_events_of_the_whole(
    tmp_path: Path, small_parts: None, indent: int | None, members: int, after: bytes
) -> None:
    path, data = tmp_path / "trace.json.gz", a_text(tmp_path, indent=indent, other=[{"ph": "X"}])
    path.write_bytes(packed_in_many(data, members, after))
    (tmp_path / "trace.json").write_bytes(data)
    found, parts = in_packed_parts(str(path))
    assert found == list(read_events(str(tmp_path / "trace.json"))) and len(found) > 300
    assert parts > len(data) / 30_000


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process reads")
def test_a_large_packed_trace_is_read_by_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_parts: None
) -> None:
    plain, path = tmp_path / "trace.json", tmp_path / "trace.json.gz"
    plain.write_bytes(a_text(tmp_path))
    path.write_bytes(gzip.compress(plain.read_bytes()))
    read, readers = PackedParts.read, tmp_path / "readers"

    def noted(self: PackedParts, *args: Any) -> Iterator[Event]:
        with readers.open("a") as out:
            out.write(f"{os.getpid()}\n")
        return read(self, *args)

    left_out, expected = Counter[str](), EventColumns(read_events(str(plain)))
    monkeypatch.setattr(PackedParts, "read", noted)
    monkeypatch.setattr(opening, "read_events", lambda *_: pytest.fail("one process reads"))
    columns = opening._read(str(path), left_out)
    by = readers.read_text().split()
    assert everything(columns) == everything(expected) and not left_out
    assert str(os.getpid()) not in by and len(by) > 2
    assert opening._PACKED == []


def test_which_packed_traces_are_large(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    for begin, size, is_large in ((b"\x1f\x8b", 5 << 20, True), (b"\x1f\x8b", 3 << 20, False), (b"{}", 5 << 20, False)):
        with path.open("wb") as file:
            file.write(begin)
            file.truncate(size)
        assert is_large_packed(str(path)) == is_large


def test_a_packed_trace_that_is_short_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_parts: None
) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(
        gzip.compress(b'{"traceEvents": [' + b'{"ph": "X", "name": "a", "cat": "cpu_op", "ts": 1}]}') * 1
        + gzip.compress(b"") * 99
    )
    monkeypatch.setattr(opening, "_side_by_side", lambda *_: pytest.fail("processes for nothing"))
    monkeypatch.setattr(opening, "read_events", lambda *_: pytest.fail("it is read twice"))
    assert len(opening._read(str(path), Counter())) == 1


SPOILT: dict[str, Callable[[bytes, bytes], bytes]] = {
    "cut off": lambda data, packed: packed[: len(packed) * 3 // 4],
    "damaged": lambda data, packed: packed[: len(packed) // 2] + bytes(100) + packed[len(packed) // 2 + 100 :],
    "checksum": lambda data, packed: packed[:-8] + b"1234" + packed[-4:],
    "garbage": lambda data, packed: packed + b"what is this",
    "list cut off": lambda data, packed: gzip.compress(data[:-100]),
    "not UTF-8": lambda data, packed: gzip.compress(data[:90_000] + b"\xff" + data[90_000:]),
    "a long list after it": lambda data, packed: gzip.compress(data[:-1] + b', "x": ' + data + b"}"),
    "events in an argument": lambda data, packed: gzip.compress(data.replace(b'"args": {', b'"args": {"x": [1' + b', {"ph": 1}' * 9000 + b"], ", 1)),
    "spaces": lambda data, packed: gzip.compress(data[:50_000] + b" " * 100_000 + data[50_000:]),
    "a long event": lambda data, packed: gzip.compress(data.replace(b'"args": {', b'"args": {"x": "' + b"y" * 70_000 + b'", ', 1)),
    "odd events": lambda data, packed: gzip.compress(data.replace(b"}, {", b'}, 5, [], {"ph": "X"}, {', 50)),
    "a list": lambda data, packed: gzip.compress(data[data.index(b"[") : -1]),
    "no trace": lambda data, packed: gzip.compress(data.replace(b"traceEvents", b"other")),
    "nothing": lambda data, packed: gzip.compress(b"") * 50,
    "deep": lambda data, packed: gzip.compress(data.replace(b'"args": {', b'"args": {"x": ' + b"[" * 5000 + b"]" * 5000 + b", ", 1)),
}  # fmt: skip


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT.keys())
def test_an_odd_packed_trace_is_the_same_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_parts: None, spoilt: Callable[[bytes, bytes], bytes]
) -> None:
    path, data = tmp_path / "trace.json.gz", a_text(tmp_path)
    path.write_bytes(spoilt(data, gzip.compress(data)))

    def read() -> tuple[list[Event] | str, Counter[str]]:
        left_out: Counter[str] = Counter()
        try:
            return everything(opening._read(str(path), left_out)), left_out
        except TraceError as error:
            return str(error), left_out

    parts = read()
    monkeypatch.setattr(opening, "_processes", lambda: 1)
    assert parts == read()


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_list_that_is_cut_off_is_told_without_reading_it_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_parts: None, is_packed: bool
) -> None:
    data, path = a_text(tmp_path)[:-20], tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(data) if is_packed else data)
    monkeypatch.setattr(kineto_parts, "_LEAST_PART", 1000)
    monkeypatch.setattr(opening, "read_events", lambda *_: pytest.fail("it is read twice"))
    with pytest.raises(TraceError, match="damaged or cut off"):
        opening._read(str(path), Counter())


ENDED = """
import os, sys, time
import irscope.driver.opened_profile as opening

def work(number):
    os.write(1, f"{os.getpid()}\\n".encode())  # at once: another process writes into the same pipe
    time.sleep(60)

opening._processes = lambda: 2
list(opening._side_by_side(work, range(2)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one process reads")
def test_the_processes_that_read_end_with_the_one_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        try:  # they hold the other end of the pipe as long as they run
            assert process.communicate(timeout=20)[0] == ""
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert pids[0] != pids[1]
