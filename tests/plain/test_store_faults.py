"""A store on a full disk, a damaged one, and one on a file system that other machines share."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from facts import a_compile, a_finding, an_outcome
from irscope.protocol import (
    CaptureGap,
    CompileSeen,
    FactsWritten,
    FindingSeen,
    GapSeen,
    Lane,
    Report,
    StageRef,
    StageWritten,
    Started,
)
from irscope.store import store as stores
from irscope.store.disk import is_shared, why_full
from irscope.store.run_writer import RunWriter
from irscope.store.store import Store, StoreError
from support import run_cli


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that is soon full."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user cannot mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> None:
    with open(place / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


def filled(path: Path, script: str = "/s.py", texts: int = 1) -> str:
    """A store with a run; returns its ID."""
    with Store(str(path)) as store:
        run = store.create_run(script, (), Lane.DEEP, "")
        store.put_compile(run, a_compile())
        for number in range(texts):
            ref = StageRef(f"0/0/graph-{number}", "dynamo-graph", "python", 0)
            store.put_stage(run, "0/0", ref, f"text {number} {os.urandom(3000).hex()}", number)
        store.put_finding(run, a_finding())
    return run


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


# --- a full disk ------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_named(disk: Path) -> None:
    assert why_full(str(disk)) == ""
    fill(disk)
    assert why_full(str(disk)) == "No space left on device"


def test_a_healthy_store_on_a_full_disk_can_be_read(disk: Path) -> None:
    run = filled(disk / "runs.db")
    fill(disk)
    with Store(str(disk / "runs.db")) as store:
        assert codes(store.report(run)) == ["GB0059"]
        assert store.unkept == f"{disk} cannot be written: No space left on device. Free some space there."
    done = run_cli("list", "--store", str(disk / "runs.db"))
    assert (done.returncode, run in done.stdout) == (0, True)


@pytest.mark.parametrize("exists", [True, False])
def test_a_run_on_a_full_disk_is_kept_in_memory(disk: Path, exists: bool) -> None:
    if exists:
        filled(disk / "runs.db")
    fill(disk)
    with Store(str(disk / "runs.db")) as store:
        run = store.create_run("/s.py", (), Lane.FAST, "")
        store.put_compile(run, a_compile())
        store.put_finding(run, a_finding())
        assert store.find_run() == run
        assert codes(store.report(run)) == ["GB0059"]
        assert "No space left" in store.unkept
    (disk / "filler").unlink()
    with Store(str(disk / "runs.db")) as store:
        assert len(store.runs()) == exists


def test_a_disk_that_becomes_full_during_a_run(disk: Path) -> None:
    gaps: list[CaptureGap] = []
    with Store(str(disk / "runs.db")) as store:
        run = store.create_run("/s.py", (), Lane.DEEP, "")
        writer = RunWriter(store, run, gaps.append)
        writer.put([Started("2.13.0"), CompileSeen(a_compile())])
        fill(disk)
        ref = StageRef("0/0/graph-1", "dynamo-graph", "python", 0)
        writer.put([StageWritten("0/0", ref, 0.0, os.urandom(400_000).hex()), FindingSeen(a_finding())])
        writer.put([FactsWritten({"device": "H100"})])
        writer.finish()
        report = store.report(run)
        assert (report.torch, len(report.compiles), codes(report)) == ("2.13.0", 1, ["GB0059"])
        assert len(store.stage_text(run, "0/0/graph-1")) == 800_000
        assert store.device_of(run) == "H100"
    assert {gap.what for gap in gaps} == {"the run store: a part of this run is not kept"}
    assert "No space left on device" in gaps[0].why


# --- a store that another process has locked --------------------------------------------------------------------------


def test_what_comes_while_another_process_has_locked_the_store_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irscope.store.run_writer._LOCKED_SECONDS", 0.01)
    gaps: list[CaptureGap] = []
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/s.py", (), Lane.DEEP, "")
        writer = RunWriter(store, run, gaps.append)
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        writer.put([CompileSeen(a_compile())])
        writer.put([FindingSeen(a_finding()), GapSeen(CaptureGap("a", "b"))])
        assert store.report(run).compiles == ()
        other.execute("COMMIT")
        other.close()
        writer.finish()
        report = store.report(run)
    assert (len(report.compiles), codes(report), report.capture_gaps) == (1, ["GB0059"], (CaptureGap("a", "b"),))
    assert gaps == []


def test_a_lock_that_never_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOCKED_SECONDS", "_LOCKED_SECONDS_AT_END"):
        monkeypatch.setattr(f"irscope.store.run_writer.{name}", 0.01)
    gaps: list[CaptureGap] = []
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/s.py", (), Lane.DEEP, "")
        writer = RunWriter(store, run, gaps.append)
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        writer.put([CompileSeen(a_compile())])
        writer.finish()
        other.close()
    [gap] = gaps
    assert gap.why == f"{store.path}: another process has locked it"


# --- a damaged store --------------------------------------------------------------------------------------------------


def damage(path: Path, start: int, count: int) -> None:
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(b"garbage!" * (count // 8))


@pytest.mark.parametrize(("start", "count"), [(0, 4096), (0, 96), (40, 3000)])
@pytest.mark.parametrize("logged", [False, True])
def test_runs_of_a_store_without_its_first_page_are_kept(
    start: int, count: int, logged: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "runs.db"
    runs = [filled(path, f"/{number}.py", texts=20) for number in range(3)]
    if logged:  # a process that was killed leaves the log
        child = os.fork()
        if child == 0:
            runs.append(filled(path, "/3.py"))
            store = Store(str(path))
            store.put_gap(runs[0], CaptureGap("late", "in the log"))
            os._exit(0)
        os.waitpid(child, 0)
    with caplog.at_level(logging.WARNING):
        damage(path, start, count)
        with Store(str(path)) as store:
            kept = store.runs()
            assert {summary.run for summary in kept} >= set(runs)
            for run in runs:
                report = store.report(run)
                assert codes(report) == ["GB0059"] and len(report.compiles[0].stages) == 20
                assert store.stage_text(run, "0/0/graph-7").startswith("text 7 ")
            new = store.create_run("/new.py", (), Lane.FAST, "")
            assert store.find_run() == new
    assert (tmp_path / "runs.db.damaged").exists() and not (tmp_path / "runs.db.damaged.damaged").exists()
    assert f"The run store {path} was damaged. Runs that are kept: " in caplog.text
    assert not logged or (tmp_path / "runs.db.damaged-wal").stat().st_size, "it would be replayed into the new file"
    assert {name.name.removesuffix("-wal").removesuffix("-shm") for name in tmp_path.iterdir()} == {
        "runs.db",
        "runs.db.damaged",
    }


def test_a_run_begins_in_a_store_whose_tables_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    runs = [filled(path, f"/{number}.py", texts=30) for number in range(4)]
    with sqlite3.connect(path) as db:
        [(root,)] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchall()
        [(index,)] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_runs_1'").fetchall()
    db.close()
    assert root != index
    damage(path, (index - 1) * 4096, 4096)
    with Store(str(path)) as store:
        new = store.create_run("/new.py", (), Lane.FAST, "")
        assert store.runs()[0].run == new
        assert {summary.run for summary in store.runs()} == {new, *runs}
        assert store.stage_text(runs[2], "0/0/graph-3").startswith("text 3 ")


def root_of(path: Path, table: str) -> int:
    db = sqlite3.connect(path)
    [(page,)] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    db.close()
    return int(page)


@pytest.mark.parametrize("table", ["findings", "compiles", "stages", "runs", "packs"])
def test_a_run_in_a_store_with_a_damaged_table_is_kept_whole(table: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    runs = [filled(path, f"/{number}.py", texts=10) for number in range(4)]
    damage(path, (root_of(path, table) - 1) * 4096, 4096)
    gaps: list[CaptureGap] = []
    with Store(str(path)) as store:
        run = store.create_run("/new.py", (), Lane.DEEP, "")
        writer = RunWriter(store, run, gaps.append)
        ref = StageRef("0/0/graph-1", "dynamo-graph", "python", 0)
        writer.put([Started("2.13.0"), CompileSeen(a_compile()), StageWritten("0/0", ref, 0.0, "new text")])
        writer.put([FindingSeen(a_finding())])
        writer.finish()
        store.set_outcome(run, an_outcome())
        report = store.report(run)
        assert (codes(report), len(report.compiles), report.torch) == (["GB0059"], 1, "2.13.0")
        assert store.stage_text(run, "0/0/graph-1") == "new text"
    with Store(str(path)) as store:
        assert store.find_run() == run and codes(store.report(run)) == ["GB0059"]
        assert table == "runs" or {summary.run for summary in store.runs()} == {run, *runs}
    assert table == "packs" or (tmp_path / "runs.db.damaged").exists()


def test_half_a_store_keeps_the_runs_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    runs = [filled(path, f"/{number}.py", texts=40) for number in range(40)]
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with Store(str(path)) as store:
        new = store.create_run("/new.py", (), Lane.DEEP, "")
        kept = [summary.run for summary in store.runs(limit=100)]
        assert kept[0] == new and 5 < len(kept) <= len(runs) + 1


def test_a_damaged_page_in_the_middle_costs_only_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    runs = [filled(path, f"/{number}.py", texts=60) for number in range(4)]
    pages = path.stat().st_size // 4096
    damage(path, (pages // 2) * 4096, 4096)
    damage(path, 0, 4096)
    with Store(str(path)) as store:
        assert {summary.run for summary in store.runs()} == set(runs)
        texts = [
            store.stage_text(runs[n], f"0/0/graph-{m}") for n in (0, 3) for m in (0, 59) if _is_there(store, runs[n], m)
        ]
        assert len(texts) >= 3


def _is_there(store: Store, run: str, number: int) -> bool:
    try:
        return bool(store.stage_text(run, f"0/0/graph-{number}"))
    except LookupError:
        return False


@pytest.mark.parametrize("content", [b"notes of the user's\n" * 1000, b"garbage!" * 5000])
def test_a_file_that_may_be_the_user_s_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a database"):
        Store(str(path))
    assert path.read_bytes() == content and [name.name for name in tmp_path.iterdir()] == ["notes.db"]


def test_irscope_s_own_store_is_replaced_even_if_nothing_is_left_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IRSCOPE_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = Path(stores.default_path())
    filled(path)
    path.write_bytes(b"garbage!" * 5000)
    with Store(str(path)) as store:
        assert store.runs() == [] and store.create_run("/s.py", (), Lane.FAST, "")
    assert path.with_name("runs.db.damaged").read_bytes() == b"garbage!" * 5000


def test_the_command_line_says_that_a_store_was_damaged(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    run = filled(path)
    damage(path, 0, 4096)
    done = run_cli("list", "--store", str(path))
    assert done.returncode == 0 and run in done.stdout
    assert done.stderr.startswith(f"The run store {path} was damaged. Runs that are kept: 1.")


# --- a file system that other machines share --------------------------------------------------------------------------

MOUNTS = r"""
22 28 0:20 / / rw,relatime shared:7 - ext4 /dev/sda1 rw
41 22 0:37 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
42 41 0:38 / /home/me/local\040disk rw - xfs /dev/sdb1 rw
43 22 0:39 / /remote rw - fuse.sshfs me@server:/ rw
44 22 0:40 / /win rw - cifs //server/share rw
45 22 0:41 / /plain rw - fuse.gocryptfs /x rw
46 22 0:42 / /homework rw - ext4 /dev/sdc1 rw
""".replace("\\\\", "\\")


@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("/home/me/.cache/irscope/runs.db", True), ("/home/me/local disk/runs.db", False), ("/remote/runs.db", True),
        ("/win/runs.db", True), ("/plain/runs.db", False), ("/homework/runs.db", False), ("/other/runs.db", False),
    ],
)  # fmt: skip
def test_network_file_systems_are_known(path: str, shared: bool) -> None:
    assert is_shared(path, MOUNTS) is shared


def test_a_store_that_machines_share_has_no_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write-ahead logging needs memory that all processes share, which two machines do not have."""
    path = tmp_path / "runs.db"
    run = filled(path)
    monkeypatch.setattr("irscope.store.file.is_shared", lambda path: True)
    with Store(str(path)) as store, Store(str(path)) as reader:
        store.put_gap(run, CaptureGap("a", "b"))
        assert [name.name for name in tmp_path.iterdir()] == ["runs.db"]
        assert reader.report(run).capture_gaps == (CaptureGap("a", "b"),)
        with store.transaction():
            store.put_gap(run, CaptureGap("c", "d"))
        assert len(reader.report(run).capture_gaps) == 2


# --- a process that is killed -----------------------------------------------------------------------------------------


def killed_at(number: int, work: Callable[[Callable[[object], None]], None]) -> bool:
    """Does work in a child that ends without a word at its n-th step; returns whether there are so many."""
    child = os.fork()
    if child == 0:
        left = [number]

        def step(_: object) -> None:
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)

        with contextlib.suppress(BaseException):
            work(step)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_a_writer_that_is_killed_at_any_statement_leaves_a_store_that_opens(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    first = filled(path)

    def write(step: Callable[[object], None]) -> None:
        with Store(str(path)) as store:
            store._db.set_trace_callback(step)
            run = store.create_run("/s.py", (), Lane.DEEP, "")
            writer = RunWriter(store, run, lambda gap: None)
            ref = StageRef("0/0/graph-1", "dynamo-graph", "python", 0)
            writer.put([Started("2.13.0"), CompileSeen(a_compile()), StageWritten("0/0", ref, 0.0, "new text")])
            writer.put([FindingSeen(a_finding()), FactsWritten({"device": "H100"})])
            writer.finish()
            store.set_outcome(run, an_outcome())
            store.tidy(run)

    number = 1
    while killed_at(number, write):
        number += 1
        with Store(str(path)) as store:
            assert store._db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert codes(store.report(first)) == ["GB0059"] and store.stage_text(first, "0/0/graph-0")
            for summary in store.runs():
                for compile in store.report(summary.run).compiles:
                    assert all(store.stage_text(summary.run, stage.id) for stage in compile.stages)
    assert number > 30


@pytest.mark.parametrize("number", range(1, 5))
def test_a_recovery_that_is_killed_at_any_rename_is_made_again(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.db"
    runs = [filled(path, f"/{which}.py") for which in range(3)]
    damage(path, 0, 4096)

    def recover(step: Callable[[object], None]) -> None:
        for name in ("replace", "link"):
            monkeypatch.setattr(os, name, stepping(getattr(os, name), step))
        Store(str(path)).close()

    assert killed_at(number, recover)
    with Store(str(path)) as store:
        assert {summary.run for summary in store.runs()} == set(runs)


def stepping(rename: Callable[[str, str], None], step: Callable[[object], None]) -> Callable[[str, str], None]:
    def renamed(old: str, new: str) -> None:
        step(old)
        rename(old, new)

    return renamed


def test_a_recovery_without_room_leaves_the_damaged_store_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.db"
    filled(path)
    damage(path, 0, 4096)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError):
        Store(str(path))
    assert path.read_bytes() == before
