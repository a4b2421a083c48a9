"""The run store: what is written is read again, whoever writes, reads or is killed meanwhile."""

from __future__ import annotations

import contextlib
import dataclasses
import lzma
import multiprocessing
import os
import random
import signal
import sqlite3
import threading
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_finding, a_gap, a_kernel, a_range, a_stage, an_outcome
from irscope.cli.main import main
from irscope.protocol import (
    FULL_RUN,
    CaptureGap,
    Cost,
    FileLines,
    Kernel,
    Lane,
    Origin,
    OutcomeKind,
    RankReport,
)
from irscope.store.store import Store, StoreError, default_path
from irscope.store.upkeep import KEEP_BYTES
from irscope.store.value_file import ValueWriter


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "new folder" / "runs.db")


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def new_run(store: Store, script: str = "/home/me/model.py") -> str:
    return store.create_run(script, ["--steps", "3"], Lane.DEEP, "digest")


def test_a_report_is_what_was_put(store: Store, path: str) -> None:
    run = new_run(store)
    store.set_torch(run, "2.13.0+cpu")
    store.put_compile(run, a_compile())
    store.put_stage(run, "0/0", a_stage("output-code"), "code", 9)
    store.put_stage(run, "0/0", a_stage("dynamo-graph"), "naïve λ 🚀", 1)
    store.put_kernel(run, a_kernel())
    store.put_finding(run, a_finding())
    store.put_gap(run, a_gap())
    store.put_gap(run, a_gap())
    store.set_outcome(run, an_outcome())
    with Store(path) as again:
        report = again.report(run)
        assert again.stage_text(run, "0/0/dynamo-graph") == "naïve λ 🚀"
        assert again.source_of(run) == "digest"
        assert again.lane_of(run) is Lane.DEEP
    assert (report.run, report.script, report.torch) == (run, "/home/me/model.py", "2.13.0+cpu")
    assert report.outcome == an_outcome()
    assert report.findings == (a_finding(cost=Cost(0.0, 0)),)  # the cost is worked out from the compiles
    assert report.kernels == (a_kernel(),)
    assert report.capture_gaps == (a_gap(),)
    (compile,) = report.compiles
    assert compile == a_compile(stages=compile.stages)
    # along the pipeline, whatever the order of writing; bytes are bytes of UTF-8
    assert [(stage.name, stage.bytes) for stage in compile.stages] == [("dynamo-graph", 14), ("output-code", 4)]


def test_a_run_is_in_the_list_with_its_counts(store: Store) -> None:
    first, second = new_run(store), new_run(store, "/home/me/other.py")
    store.put_compile(second, a_compile())
    store.put_finding(second, a_finding())
    store.put_kernel(second, a_kernel())
    store.set_outcome(second, an_outcome())
    newest, oldest = store.runs()
    assert (newest.run, newest.compiles, newest.findings, newest.kernels) == (second, 1, 1, 1)
    store.put_kernel(second, a_kernel(name="extern_kernels.mm", language="extern", stage="0/0/output-code"))
    store.put_kernel(second, a_kernel(name='"language": "extern"', stage="0/0/kernel/odd"))
    assert store.runs()[0].kernels == 2, "library calls are not kernels, whatever a kernel is called"
    assert newest.outcome == an_outcome()
    assert (oldest.run, oldest.outcome, oldest.compiles) == (first, None, 0)
    assert [run.run for run in store.runs(limit=1)] == [second]
    assert [run.run for run in store.runs(script="/home/me/model.py")] == [first]


def test_a_run_that_has_not_ended_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(store)
    outcome = store.report(run).outcome
    assert (outcome.kind, outcome.message) == (OutcomeKind.CANCELLED, "The run is going on."), "who records it is here"
    monkeypatch.setattr("irscope.store.reports.is_running", {}.get)
    assert "has not ended, or it was killed" in store.report(run).outcome.message


def test_a_finding_replaces_the_one_with_its_cause(store: Store) -> None:
    run = new_run(store)
    store.put_finding(run, a_finding(count=1))
    store.put_finding(run, a_finding(range=a_range(7)))
    store.put_finding(run, a_finding(count=5, message="seen again"))
    assert [(f.count, f.range.start.line, f.message) for f in store.report(run).findings] == [
        (5, 6, "seen again"),
        (2, 7, a_finding().message),
    ]


def test_a_compile_and_a_stage_are_replaced(store: Store) -> None:
    run = new_run(store)
    for restarts in (0, 1):
        store.put_compile(run, a_compile(restarts=restarts))
        store.put_stage(run, "0/0", a_stage(), f"attempt {restarts}", 1)
    (compile,) = store.report(run).compiles
    assert (compile.restarts, len(compile.stages)) == (1, 1)
    assert store.stage_text(run, "0/0/dynamo-graph") == "attempt 1"


def test_equal_texts_are_stored_once(store: Store, path: str) -> None:
    text = "the same text\n" * 100
    for run in (new_run(store), new_run(store)):
        for name in ("dynamo-graph", "pre-grad-graph"):
            store.put_stage(run, "0/0", a_stage(name), text, 1)
    ((count, stored, length),) = sqlite3.connect(path).execute("SELECT count(*), length(data), bytes FROM texts")
    assert (count, length) == (1, len(text))
    assert stored < len(text) / 5  # and compressed


@pytest.mark.parametrize("text", ["", "\0", "\ud800 lone surrogate", "\r\n\r", "x" * 1_000_000])
def test_any_text_comes_back(store: Store, text: str) -> None:
    run = new_run(store)
    store.put_stage(run, "0/0", a_stage(), text, 1)
    assert store.stage_text(run, "0/0/dynamo-graph") == text


def test_runs_are_found_by_how_they_begin(store: Store, path: str) -> None:
    with pytest.raises(LookupError, match=r"No run in .* yet\. Start one: irscope run"):
        store.find_run()
    runs = [new_run(store) for _ in range(3)]
    assert store.find_run() == runs[-1]
    assert store.find_run(runs[0]) == runs[0]
    assert store.find_run(runs[1][:-1]) == runs[1]  # three random bytes: distinct before the last digit, nearly always
    with pytest.raises(LookupError, match="More than one run starts with 2"):
        store.find_run("2")
    for name in ("nothing", "%", "_", runs[0] + "0"):
        with pytest.raises(LookupError, match=f"No run is named {name}"):
            store.find_run(name)


def test_what_is_not_there(store: Store) -> None:
    run = new_run(store)
    for ask in (store.report, store.source_of, store.lane_of):
        with pytest.raises(LookupError, match="No run is named x"):
            ask("x")
    with pytest.raises(LookupError, match="has no stage 0/0/kernel"):
        store.stage_text(run, "0/0/kernel")


def test_prune_deletes_the_oldest_first(store: Store, path: str) -> None:
    runs = []
    for number in range(4):
        run = new_run(store)
        runs.append(run)
        store.put_compile(run, a_compile())
        store.put_stage(run, "0/0", a_stage(), os.urandom(4000).hex(), 1)
        store.put_stage(run, "0/0", a_stage("guards"), "shared by all", 1)
        store.put_finding(run, a_finding())
        store.put_kernel(run, a_kernel())
        store.put_gap(run, a_gap())
        if number != 1:
            store.set_outcome(run, an_outcome())
    assert store.prune(1_000_000) == 0
    assert store.prune(16_000) == 1
    assert [each.run for each in store.runs()] == runs[:0:-1]
    assert store.prune(0) == 1  # runs[2]: runs[1] is still going on, and the last two are always kept
    assert [each.run for each in store.runs()] == [runs[3], runs[1]]
    assert store.stage_text(runs[3], "0/0/guards") == "shared by all"
    db = sqlite3.connect(path)
    for table in ("runs", "compiles", "kernels", "findings", "gaps"):
        assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (2,), table
    assert db.execute("SELECT count(*) FROM texts").fetchone() == (3,)


def test_the_newest_run_is_the_one_that_was_made_last_whatever_the_clock_says(store: Store) -> None:
    ahead, usual, last = new_run(store), new_run(store), new_run(store)
    for number, run in enumerate((ahead, usual, last)):
        store._db.execute("UPDATE runs SET started = ? WHERE id = ?", (1e9 - number, run))
        store.put_compile(run, a_compile())
        store.put_profile(run, {})
        store.set_outcome(run, an_outcome())
    assert [one.run for one in store.runs()] == [last, usual, ahead]
    assert (store.find_run(), store.best_run(), store.newest_profiled("/home/me/model.py")) == (last, last, last)
    assert [one.run for one in store.newest_of_each_pipeline("/home/me/model.py")] == [last]
    assert [run for run, _ in store.runs_touching(a_compile().file)] == [last, usual, ahead]
    assert store.prune(KEEP_BYTES, 2) == 1
    assert [one.run for one in store.runs()] == [last, usual]
    store.put_ranks(usual, 2, ())
    assert store.find_run() == usual, "the first rank of a job stands for all of them"
    store.delete(usual)
    assert new_run(store) == store.find_run(), "the number of one that was deleted is given again"


def test_runs_of_the_version_before_keep_the_order_in_which_they_were_made(store: Store, path: str) -> None:
    first, second, ahead, after = (new_run(store) for _ in range(4))
    ranks = (RankReport(0, first, an_outcome(), 1, 0), RankReport(1, second, an_outcome(), 1, 0))
    store.put_ranks(first, 2, ranks)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE runs SET started = 9e9 WHERE id = ?", (ahead,))
        db.executescript("ALTER TABLE runs DROP COLUMN made; DROP TABLE places; PRAGMA user_version = 9")
    db.close()
    with Store(path) as again:
        assert [one.run for one in again.runs()] == [after, ahead, first, second]


def kernels_in_a_library() -> list[Kernel]:
    call = Origin("/home/me/model.py", 8)
    lines = (FileLines("/home/me/model.py", (8,)), FileLines("/lib/llama.py", (30, 31)))
    return [
        dataclasses.replace(
            a_kernel(), name=f"cpp_fused_{n}", stage=f"0/0/kernel/{n}", origins=(call,), lines=lines,
            innermost=Origin("/lib/llama.py", 31), module=f"layers.{n}", module_class="Layer",
        )
        for n in range(8)
    ]  # fmt: skip


def test_what_kernels_have_in_common_is_stored_once(store: Store, path: str) -> None:
    run, kernels = new_run(store), kernels_in_a_library()
    for kernel in kernels:
        store.put_kernel(run, dataclasses.replace(kernel, lines=(), innermost=None))
    store.put_kernels(run, kernels)
    assert store.report(run).kernels == tuple(kernels)
    with sqlite3.connect(path) as db:
        facts = "".join(text for (text,) in db.execute("SELECT facts FROM kernels UNION ALL SELECT facts FROM places"))
    db.close()
    assert facts.count("/lib/llama.py") == 2, "once in the innermost line, once in all lines"
    assert store.runs_touching("/lib/llama.py") == [(run, "/home/me/model.py")]
    changed = dataclasses.replace(kernels[0], lines=())
    store.put_kernel(run, changed)  # with its lines themselves, beside others with numbers
    assert store.report(run).kernels == (changed, *kernels[1:])
    store.put_kernels(run, [changed, *kernels[1:]])
    assert store.report(run).kernels == (changed, *kernels[1:])
    store.delete(run)
    with sqlite3.connect(path) as db:
        assert not db.execute("SELECT * FROM places").fetchall()
    db.close()


def test_a_store_of_version_10_is_read_on(store: Store, path: str) -> None:
    run, kernels = new_run(store), kernels_in_a_library()
    for kernel in kernels:
        store.put_kernel(run, kernel)
    store.close()
    with sqlite3.connect(path) as db:
        db.executescript("DROP TABLE places; PRAGMA user_version = 10")
    db.close()
    with Store(path) as again:
        assert again.report(run).kernels == tuple(kernels)
        again.put_kernels(run, kernels)
        assert again.report(run).kernels == tuple(kernels)


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ("[]", "a kernel refers to line 0 of the run, which has 0"),
        (None, "a kernel refers to line 0 of the run, which has 0"),
        ('{"0": 1}', "dict where list or tuple is expected"),
        ('["/lib/llama.py", 1, 2, 3]', "str where dict is expected"),
        ("[0, 0, 0, 0]", "int where dict is expected"),
        ('[{"file": "/lib/llama.py"}]', "Origin.line"),
        ("[" * 100_000, "RecursionError"),
    ],
)
def test_numbers_that_refer_to_nothing_are_refused(store: Store, path: str, places: str | None, why: str) -> None:
    run, kernels = new_run(store), kernels_in_a_library()
    for kernel in kernels:
        store.put_kernel(run, kernel)
    store.put_kernels(run, kernels)
    with sqlite3.connect(path) as db:
        db.execute(
            "DELETE FROM places" if places is None else "UPDATE places SET facts = ?", (places,) * (places is not None)
        )
    db.close()
    with pytest.raises(StoreError) as refused:
        store.report(run)
    assert why in str(refused.value)


@pytest.mark.parametrize("number", ["-1", "99", "true", "1.5", '"0"', "[0]"])
def test_a_number_that_no_line_has_is_refused(store: Store, path: str, number: str) -> None:
    run, kernels = new_run(store), kernels_in_a_library()
    for kernel in kernels:
        store.put_kernel(run, kernel)
    store.put_kernels(run, kernels)
    with sqlite3.connect(path) as db:
        changed = db.execute(
            """UPDATE kernels SET facts = replace(facts, '"innermost": ', '"innermost": ' || ? || ', "x": ')""",
            (number,),
        )
        assert changed.rowcount == len(kernels)
    db.close()
    with pytest.raises(StoreError, match=r"refers to line|where dict is expected"):
        store.report(run)


def test_a_run_is_found_by_each_path_that_leads_to_its_file(tmp_path: Path) -> None:
    real, link = tmp_path / "real" / "a.py", tmp_path / "link" / "a.py"
    real.parent.mkdir()
    real.touch()
    link.parent.symlink_to(real.parent)
    with Store(str(tmp_path / "runs.db")) as store:
        made: list[str] = []
        for name in (real, link):
            run = new_run(store, str(name))
            made.insert(0, run)
            store.put_compile(run, dataclasses.replace(a_compile(), file=str(name)))
            store.put_source(run, str(name), "text")
        for name in (real, link):
            assert [one.run for one in store.runs(script=str(name))] == made
            assert [one.run for one in store.runs_of_file(str(name))] == made
            assert [run for run, _ in store.runs_touching(str(name))] == made
            assert store.best_run(str(name)) == made[0]
        assert store.runs_of_file(str(tmp_path / "a.py")) == []


def test_a_transaction_is_all_or_nothing(store: Store, path: str) -> None:
    run = new_run(store)
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.put_compile(run, a_compile())
        raise ZeroDivisionError
    assert store.report(run).compiles == ()
    with Store(path) as reader, store.transaction():
        store.put_compile(run, a_compile())
        assert reader.report(run).compiles == ()  # nobody waits, nobody sees half of it
        assert store.report(run).compiles == (a_compile(),)
    assert store.report(run).compiles == (a_compile(),)


def test_two_writers_at_once(path: str) -> None:
    def write(count: int) -> None:
        with Store(path) as store:
            run = new_run(store)
            for number in range(count):
                store.put_compile(run, a_compile(id=f"{number}/0"))

    threads = [threading.Thread(target=write, args=(60,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(path) as store:
        assert [run.compiles for run in store.runs()] == [60, 60, 60]


def test_many_open_a_new_store_at_once(tmp_path: Path) -> None:
    problems: list[StoreError] = []

    def open_it(path: str, all_are_here: threading.Barrier) -> None:
        all_are_here.wait()
        try:
            with Store(path) as store:
                new_run(store)
        except StoreError as error:
            problems.append(error)

    for number in range(40):
        given = str(tmp_path / f"{number}.db"), threading.Barrier(8)
        threads = [threading.Thread(target=open_it, args=given) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []


def _write_until_killed(path: str, ready: Any) -> None:
    with Store(path) as store:
        run = new_run(store)
        store.put_compile(run, a_compile())
        store.put_stage(run, "0/0", a_stage(), "committed", 1)
        with store.transaction():
            for number in range(1, 500):
                store.put_compile(run, a_compile(id=f"{number}/0"))
            ready.set()
            signal.pause()


def test_killed_in_a_transaction(path: str) -> None:
    """What was committed is there, and nothing of the transaction; the next writer need not wait."""
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_write_until_killed, args=(path, ready))
    process.start()
    assert ready.wait(60)
    process.kill()
    process.join()
    with Store(path) as store:
        report = store.report(store.find_run())
        assert [compile.id for compile in report.compiles] == ["0/0"]
        assert store.stage_text(report.run, "0/0/dynamo-graph") == "committed"
        store.set_outcome(report.run, an_outcome())
        assert store.runs()[0].outcome == an_outcome()


def _run_and_prune(path: str, text: str, problems: Any) -> None:
    for number in range(12):
        try:
            with Store(path) as store:
                run = new_run(store)
                store.put_compile(run, a_compile())
                store.put_stage(run, "0/0", a_stage(), text * 20_000, number)
                store.set_outcome(run, an_outcome())
                store.pack_newest()
                store.prune(1 << 20, keep_runs=6)
                for other in store.runs():
                    with contextlib.suppress(LookupError):  # pruned by the other process meanwhile
                        assert store.stage_text(other.run, "0/0/dynamo-graph")[:1] in "ab"
        except Exception as error:  # noqa: BLE001
            problems.put(f"{type(error).__name__}: {error}")


def test_two_processes_write_read_and_prune(path: str) -> None:
    """As two editors and the command line do on one machine."""
    context = multiprocessing.get_context("spawn")
    problems = context.Queue()
    processes = [context.Process(target=_run_and_prune, args=(path, text, problems)) for text in ("a\n", "b\n")]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert problems.empty(), problems.get()
    assert [process.exitcode for process in processes] == [0, 0]
    with Store(path) as store:
        assert 4 <= len(store.runs()) <= 7
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


@pytest.mark.parametrize("content", [b"import torch\n" * 100, b"\0" * 4096, b"SQLite format 3\0" + b"x" * 4096])
def test_a_file_that_is_no_store(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.py"
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"model.py cannot be used: .*Name another file \(--store FILE"):
        Store(str(file))
    assert file.read_bytes() == content


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used"):
        Store(str(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        Store(str(tmp_path / "file" / "runs.db"))


def test_an_older_version_s_file_is_moved_aside(path: str) -> None:
    with Store(path) as store:
        new_run(store)
        store._db.execute("PRAGMA user_version = 1")
    with Store(path) as store:
        assert store.runs() == []
        new_run(store)
    old = sqlite3.connect(path + ".old")
    assert old.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_somebody_else_s_database_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "bookmarks.sqlite"
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE bookmarks (url TEXT)")
    db.commit()
    db.close()
    with pytest.raises(StoreError, match="not a run store"):
        Store(str(file))
    db = sqlite3.connect(file)
    assert [name for (name,) in db.execute("SELECT name FROM sqlite_master")] == ["bookmarks"]


def test_a_full_disk_is_an_error_and_keeps_what_was_written(store: Store) -> None:
    run = new_run(store)
    store.put_compile(run, a_compile())
    ((pages,),) = store._db.execute("PRAGMA page_count")
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        store.put_stage(run, "0/0", a_stage(), os.urandom(100_000).hex(), 1)
    assert store.report(run).compiles == (a_compile(),)


def test_the_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IRSCOPE_STORE", "/somewhere/else.db")
    assert default_path() == "/somewhere/else.db"
    monkeypatch.delenv("IRSCOPE_STORE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert default_path() == str(tmp_path / "irscope" / "runs.db")


def test_graphs_and_schedules_are_counted(store: Store) -> None:
    run = new_run(store)
    store.put_compile(run, a_compile())
    graph = {"nodes": {"name": ["x", "relu", "output"]}}
    stages: list[tuple[str, str, Any]] = [
        ("dynamo-graph", "a graph of the fast lane", None),
        ("joint-graph", "a graph", graph),
        ("ir-pre-fusion", "op0", {"nodes": [{}, {}]}),
        ("ir-post-fusion", "op0", None),
        ("symbolic-trace", "steps", {"nodes": [[0]]}),
    ]
    for position, (name, text, data) in enumerate(stages):
        store.put_stage(run, "0/0", a_stage(name), text, position, data)
    store.put_stage_data(run, "0/0/ir-post-fusion", {"nodes": [{}]})
    version = dataclasses.replace(a_stage("joint-graph"), id="0/0/joint-graph/01", passed="fold", nodes=2)
    store.put_stage(run, "0/0", version, "a graph", 9, {"pass": "fold", "new": graph})
    (compile,) = store.report(run).compiles
    assert [stage.nodes for stage in compile.stages] == [None, 3, 2, 1, None, 2]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_only_its_owner_can_read_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source lines and generated code are in it, and numbers of tensors beside it."""

    def modes(folder: Path) -> dict[str, int]:
        return {each.name: each.stat().st_mode & 0o777 for each in [folder, *folder.rglob("*")]}

    before = os.umask(0o022)
    try:
        path = tmp_path / "made" / "runs.db"
        with Store(str(path)) as store:
            store.create_run("s.py", (), Lane.FAST, "")
            assert set(modes(path.parent)) == {"made", "runs.db", "runs.db-wal", "runs.db-shm"}
            assert modes(path.parent) == {"made": 0o700, "runs.db": 0o600, "runs.db-wal": 0o600, "runs.db-shm": 0o600}
        values = ValueWriter(str(tmp_path / "values" / "run.bin"), 1 << 20)
        values.write(b"12345678", 8)
        assert modes(tmp_path / "values") == {"values": 0o700, "run.bin": 0o600}
        old = tmp_path / "old.db"
        old.touch(0o644)
        with Store(str(old)):
            assert old.stat().st_mode & 0o777 == 0o644, "it may be shared on purpose"
        monkeypatch.setenv("IRSCOPE_STORE", str(old))
        with Store(str(old)):
            assert old.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="the system does not tell its locks")
def test_a_second_connection_leaves_the_locks_of_the_first(path: str) -> None:
    """The system drops all locks that a process has on a file when it closes any descriptor of that file."""

    def locks() -> int:
        return Path("/proc/locks").read_text().count(f":{os.stat(path).st_ino} ")

    with Store(path) as store:
        new_run(store)
        before = locks()
        with Store(path) as other:
            other.runs()
        assert locks() == before > 0


# --- stores from elsewhere --------------------------------------------------------------------------------------------


def store_with_text(folder: Path) -> tuple[Path, str]:
    path = folder / "runs.db"
    with Store(str(path)) as store:
        run = store.create_run("s.py", (), Lane.FAST, "")
        store.put_compile(run, a_compile())
        store.put_stage(run, a_compile().id, a_stage(), "text " * 1000, 1.0)
        store.put_finding(run, a_finding())
    return path, run


@pytest.mark.parametrize("codec", ["zlib", "xz"])
@pytest.mark.parametrize("claimed", [10, 5_000, 1 << 30, -1])
def test_a_pack_that_unpacks_to_more_than_it_says(codec: str, claimed: int, tmp_path: Path) -> None:
    path, run = store_with_text(tmp_path)
    bomb = bytes(64 << 20)
    data = zlib.compress(bomb, 9) if codec == "zlib" else lzma.compress(bomb, preset=1)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO packs VALUES (1, ?, ?, ?)", (codec, claimed, data))
        db.execute("UPDATE texts SET pack = 1, start = 0, data = ''")
    tracemalloc.start()
    try:
        with Store(str(path)) as store, pytest.raises(LookupError, match="is damaged"):
            store.stage_text(run, a_stage().id)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "damage", ["UPDATE packs SET data = x'00'", "UPDATE texts SET data = x'00' WHERE pack IS NULL"]
)
def test_one_damaged_text_does_not_stop_the_upkeep(damage: str, tmp_path: Path) -> None:
    """A later run ends as ever: what cannot be read cannot be packed again, and goes with its run."""
    path, run = store_with_text(tmp_path)
    with Store(str(path)) as store:
        store.put_stage(run, a_compile().id, dataclasses.replace(a_stage(), id="0/0/other"), "other " * 4000, 2.0)
        store.tidy(run)
        store.put_stage(run, a_compile().id, dataclasses.replace(a_stage(), id="0/0/other"), "short", 2.0)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        assert db.execute(damage).rowcount == 1
    with Store(str(path)) as store:
        store.tidy(run)
        with pytest.raises(LookupError, match="is damaged"):
            store.stage_text(run, "0/0/other" if "texts" in damage else a_stage().id)
        store.put_stage(run, a_compile().id, dataclasses.replace(a_stage(), id="0/0/last"), "last", 3.0)
        store.tidy(run)
        assert store.stage_text(run, "0/0/last") == "last"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE findings; CREATE VIEW findings AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS run, i AS cause, i AS position, i AS facts FROM n",
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM findings; END",
    ],
)
def test_a_store_has_tables_and_nothing_else(statement: str, tmp_path: Path) -> None:
    path, _ = store_with_text(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(statement)
    with pytest.raises(StoreError, match="only tables and indices"):
        Store(str(path))


def test_a_store_of_a_newer_version_stays_as_it_is(tmp_path: Path) -> None:
    path, _ = store_with_text(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1000")
        db.execute("PRAGMA journal_mode = DELETE")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="made by a newer irscope"):
        Store(str(path))
    assert not path.with_name("runs.db.old").exists()
    assert path.read_bytes()[100:] == before[100:]


def test_stores_that_are_put_aside_are_all_kept(tmp_path: Path) -> None:
    for _ in range(3):
        path, _ = store_with_text(tmp_path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 1")
        Store(str(path)).close()
    assert {each.name for each in tmp_path.glob("*.old*") if not each.name.endswith(("-wal", "-shm"))} == {
        "runs.db.old", "runs.db.old1", "runs.db.old2",
    }  # fmt: skip


def test_damaged_stores_are_told_and_give_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, run = store_with_text(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")
    good, chance = path.read_bytes(), random.Random(0)
    codes: Counter[int] = Counter()
    for number in range(60):
        data = bytearray(good)
        for _ in range(8):
            data[chance.randrange(100, len(data))] ^= 1 << chance.randrange(8)
        damaged = tmp_path / f"damaged-{number}.db"
        damaged.write_bytes(data)
        for command in (["list"], ["show"], ["show", "--stage", a_stage().id, run], ["diff", run, run]):
            codes[main([*command, "--store", str(damaged)])] += 1
        damaged.unlink()
        assert "Traceback" not in capsys.readouterr().err
    assert set(codes) <= {0, 2, 3, 70} and codes[0] and codes[3], codes


def test_names_of_a_store_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, run = store_with_text(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE runs SET script = ?", ("/x\x1b]0;stolen\x07\x1b[2Jy.py",))
        db.execute("UPDATE findings SET facts = replace(facts, 'graph-break', ?)", ("\\u001b[2Jkind",))
    for command in (["list"], ["show"], ["diff"], ["diff", run, run], ["show", "--stage", "none"]):
        main([*command, "--store", str(path)])
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err and "\x07" not in said.out + said.err, command


def test_a_run_that_did_not_begin_is_not_kept(tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        before = store.create_run("/s.py", [], Lane.FAST, "d")
        store.set_outcome(before, an_outcome(kind=OutcomeKind.COMPLETED))
        refused = store.create_run("/s.py", [], Lane.FAST, "d")
        store.set_outcome(refused, an_outcome(kind=OutcomeKind.ENVIRONMENT_ERROR))
        began = store.create_run("/s.py", [], Lane.FAST, "d")
        store.set_torch(began, "2.13.0")
        store.set_outcome(began, an_outcome(kind=OutcomeKind.ENVIRONMENT_ERROR))
        for each in (before, refused, began):
            store.tidy(each)
        assert [each.run for each in store.runs()] == [began, before]


def test_the_newest_run_that_compiled_something(tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        empty = store.create_run("/s.py", [], Lane.FAST, "d")
        assert store.best_run() == empty, "no run has compiled anything"
        compiled = store.create_run("/s.py", [], Lane.FAST, "d")
        store.put_compile(compiled, a_compile())
        newest = store.create_run("/s.py", [], Lane.FAST, "d")
        assert (store.find_run(), store.best_run()) == (newest, compiled)
        assert store.find_run(newest) == newest


@pytest.mark.parametrize("lane", Lane)
def test_a_full_run_does_not_differ_from_itself(lane: Lane, tmp_path: Path) -> None:
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/m.py", [], lane, "digest")
        store.put_gap(run, CaptureGap(FULL_RUN, "sizes vary"))
        report = store.report(run)
    assert report.may_differ == (("sizes vary",) if lane is Lane.FAST else ())
    assert report.capture_gaps == ()
