"""The texts of a run store: packed when a run has ended, made from data where they tell no more than it."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_stage, an_outcome
from irscope.protocol import Lane
from irscope.store.store import Store, StoreError

GRAPH = "".join(f"    relu_{number}: f32[4] = torch.ops.aten.relu.default(add_{number})\n" for number in range(3000))
NOISE = os.urandom(40_000).hex()
WALK = {
    "version": 1, "attempt": 0, "last": True, "seconds": 0.1, "strings": ["a.py", "f", "RESUME", "0"],
    "codes": [[0, 1, 1]], "instructions": [[0, 0, 2, 3, 1, 1, 0, 0]], "frames": [[0]],
    "steps": {"frame": [0], "instruction": [0], "caller": [-1], "kept": [0], "pushes": [0], "pushed": []},
    "locals": [], "nodes": [], "gone": [], "guards": [], "guards_gone": [], "outcomes": [],
}  # fmt: skip
WALK_TEXT = "      ── f  a.py\n    0 1:0     RESUME 0\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def a_run(store: Store, *versions: str, ended: bool = True) -> str:
    """A run whose compile has the graph printed in several ways, with data."""
    run = store.create_run("/home/me/model.py", [], Lane.DEEP, "digest")
    store.put_compile(run, a_compile())
    for number, text in enumerate(versions):
        stage = dataclasses.replace(a_stage("pre-grad-graph"), id=f"0/0/pre-grad-graph/{number}")
        store.put_stage(run, "0/0", stage, text, number, {"names": text.split()[::4]})
    store.put_source(run, "/home/me/model.py", "import torch\n")
    if ended:
        store.set_outcome(run, an_outcome())
    return run


def contents(store: Store, run: str) -> dict[str, Any]:
    stages = [stage.id for compile in store.report(run).compiles for stage in compile.stages]
    texts: dict[str, Any] = {id: (store.stage_text(run, id), store.stage_data(run, id)) for id in stages}
    return {**texts, **store.sources(run)}


def versions() -> list[str]:
    return [GRAPH, GRAPH.replace("f32", "bf16"), GRAPH.replace("add_7:", "mul_7:"), "λ 🚀 \udc80 \0"]


def test_packed_texts_are_what_was_put_and_take_less_room(store: Store, path: str) -> None:
    run = a_run(store, *versions())
    before = contents(store, run)
    alone = store._texts.size()
    assert store.tidy(run) == 0
    assert contents(store, run) == before
    store.tidy(run)  # once more changes nothing
    assert store._texts.size() < 0.5 * alone
    store.close()
    with Store(path) as again:
        assert contents(again, run) == before


def test_versions_of_a_graph_cost_little_more_than_one(store: Store) -> None:
    one = a_run(store, GRAPH)
    store.tidy(one)
    size = store._texts.size()
    store.tidy(a_run(store, *(GRAPH.replace(f"relu_{number}:", "sink:") for number in range(10))))
    assert store._texts.size() < 3 * size  # the data of each are another list


def test_the_file_gives_back_what_packing_frees(store: Store, path: str) -> None:
    run = a_run(store, *(GRAPH.replace(f"relu_{number}:", "sink:") for number in range(20)))
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = os.path.getsize(path)
    store.tidy(run)
    store.close()
    assert os.path.getsize(path) < 0.5 * before


def test_a_later_run_writes_nothing_twice(store: Store) -> None:
    first = a_run(store, GRAPH, NOISE)
    store.tidy(first)
    size = store._texts.size()
    second = a_run(store, GRAPH, NOISE)
    store.tidy(second)
    assert store._texts.size() == size
    assert contents(store, second) == contents(store, first)


def test_a_pack_goes_with_its_last_text_and_shrinks_with_most_of_them(store: Store) -> None:
    runs = [a_run(store, GRAPH, NOISE), a_run(store, GRAPH), a_run(store, GRAPH.replace("relu", "tanh"))]
    for run in runs:
        store.tidy(run)
    before = store._texts.size()
    kept = contents(store, runs[1])
    assert store.prune(before - 1) == 1  # the first run, whose noise fills most of the pack that has the graph
    assert store._texts.size() < before - len(NOISE) // 2
    assert contents(store, runs[1]) == kept
    a_run(store, "another")
    a_run(store, "another one")
    assert store.prune(0) == 2
    assert store._texts.size() < 500  # what is left of the graphs' packs is the text of the script


def test_a_store_does_not_keep_runs_for_ever(store: Store) -> None:
    runs = [a_run(store, "the same each time") for _ in range(5)]
    assert store.tidy(runs[-1], keep_runs=3) == 2
    assert [run.run for run in store.runs()] == runs[:1:-1]


def test_what_a_stage_had_before_is_gone(store: Store) -> None:
    run = a_run(store, GRAPH)
    store.put_stage_data(run, "0/0/pre-grad-graph/0", ["new"])
    store.tidy(run)
    assert store._db.execute("SELECT count(*) FROM texts").fetchone() == (3,)  # the graph, its data, the script
    assert store.stage_data(run, "0/0/pre-grad-graph/0") == ["new"]


def test_a_text_that_is_made_from_data(store: Store) -> None:
    run = a_run(store)
    store.put_stage(run, "0/0", dataclasses.replace(a_stage("symbolic-trace"), bytes=0), None, 1, WALK)
    store.put_stage(run, "1/0", dataclasses.replace(a_stage("symbolic-trace"), id="1/0/symbolic-trace"), None, 1, {})
    for has_ended in (False, True):
        assert store.stage_text(run, "0/0/symbolic-trace") == WALK_TEXT
        with pytest.raises(LookupError, match=r"1/0/symbolic-trace .* cannot be read: not a symbolic trace"):
            store.stage_text(run, "1/0/symbolic-trace")
        if not has_ended:
            store.tidy(run)
    (stage,) = store.report(run).compiles[0].stages
    assert stage.bytes == len(WALK_TEXT.encode())


def test_the_next_run_packs_what_the_last_one_left(store: Store) -> None:
    runs = [a_run(store, *versions()), a_run(store, *versions()[:2])]
    going_on = a_run(store, GRAPH.replace("relu", "sigmoid"), ended=False)
    before = [contents(store, run) for run in (*runs, going_on)]
    for run in runs:
        assert store.tidy(run, packs=False) == 0
    assert store._db.execute("SELECT count(*) FROM packs").fetchone() == (0,)
    store.pack_newest()
    assert store._db.execute("SELECT count(*) FROM packs").fetchone() > (0,)
    alone = store._db.execute("SELECT stages.id FROM stages JOIN texts USING (digest) WHERE pack IS NULL").fetchall()
    assert len(alone) == 1  # of the run that goes on
    store.pack_newest()
    assert [contents(store, run) for run in (*runs, going_on)] == before


def test_sizes_of_made_texts_are_measured_for_who_asks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(store, ended=False)
    store.put_stage(run, "0/0", dataclasses.replace(a_stage("symbolic-trace"), bytes=0), None, 1, WALK)
    size = len(WALK_TEXT.encode())

    def told(**options: bool) -> int:
        return store.report(run, **options).compiles[0].stages[0].bytes

    assert told() == 0  # it goes on
    store.set_outcome(run, an_outcome())
    assert told(sizes=False) == 0
    store._db.execute("PRAGMA query_only = ON")  # as where the store cannot be written
    assert (told(), told(sizes=False)) == (size, 0)
    store._db.execute("PRAGMA query_only = OFF")
    assert told() == size
    monkeypatch.setattr(Store, "_made_text", lambda *_: pytest.fail("it was measured before"))
    assert (told(), told(sizes=False)) == (size, size)


def test_a_store_of_version_4_is_read_on(path: str) -> None:
    with Store(path) as store:
        run = a_run(store, *versions())
        before = contents(store, run)
    db = sqlite3.connect(path)
    db.executescript(
        "ALTER TABLE texts DROP COLUMN pack; ALTER TABLE texts DROP COLUMN start; ALTER TABLE stages DROP COLUMN nodes;"
        "ALTER TABLE runs DROP COLUMN pipeline; ALTER TABLE runs DROP COLUMN made; DROP TABLE packs; DROP TABLE trails; DROP TABLE comparisons; DROP TABLE profiles; DROP TABLE places;"
        "PRAGMA user_version = 4"
    )
    db.close()
    with Store(path) as store:
        assert contents(store, run) == before
        store.tidy(run)
        assert contents(store, run) == before
    assert not os.path.exists(path + ".old")


def test_a_run_of_version_6_went_through_inductor(path: str) -> None:
    with Store(path) as store:
        run = a_run(store, *versions())
        before = contents(store, run)
    db = sqlite3.connect(path)
    db.executescript(
        "ALTER TABLE runs DROP COLUMN pipeline; ALTER TABLE runs DROP COLUMN made;"
        "DROP TABLE comparisons; DROP TABLE profiles; DROP TABLE places; PRAGMA user_version = 6"
    )
    db.close()
    with Store(path) as store:
        assert contents(store, run) == before
        assert (store.report(run).pipeline, store.runs()[0].pipeline) == ("inductor", "inductor")
        other = store.create_run("/s.py", [], Lane.DEEP, "", pipeline="glow")
        assert (store.report(other).pipeline, store.runs()[0].pipeline) == ("glow", "glow")
    assert not os.path.exists(path + ".old")


def test_a_comparison_stays_as_long_as_one_of_its_runs(path: str) -> None:
    found = {"script": "/s.py", "pipelines": [{"pipeline": "inductor"}]}
    with Store(path) as store:
        first, second = a_run(store, *versions()), a_run(store, *versions())
        assert store.newest_compared("/s.py") is None and store.comparison(first) is None
        store._db.executescript(
            "ALTER TABLE runs DROP COLUMN made; DROP TABLE comparisons; DROP TABLE profiles; DROP TABLE places; PRAGMA user_version = 7"
        )
    with Store(path) as store:  # one of the version before
        script = store.report(first).script
        store.put_comparison([first, second], found)
        third = a_run(store, *versions())
        store.tidy(third)
        assert store.newest_compared(script) == second and store.newest_compared("/other.py") is None
        assert store.comparison(third) is None
        store.prune(0)
        assert [one.run for one in store.runs()] == [third, second]
        assert store.comparison(second) == found and store.comparison(first) is None


def test_without_lzma(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(path) as store:
        packed = a_run(store, *versions())
        store.tidy(packed)
    monkeypatch.setitem(sys.modules, "lzma", None)
    with Store(path) as store:
        with pytest.raises(StoreError, match="this Python was built without it"):
            store.stage_text(packed, "0/0/pre-grad-graph/0")
        run = a_run(store, GRAPH.replace("relu", "tanh"))
        store.tidy(run)
        assert store.stage_text(run, "0/0/pre-grad-graph/0") == GRAPH.replace("relu", "tanh")
        assert store._db.execute("SELECT codec, count(*) FROM packs GROUP BY codec").fetchall()[1][0] == "zlib"


def test_texts_of_a_run_that_was_killed_are_read_and_packed_later(store: Store) -> None:
    killed = a_run(store, *versions(), ended=False)
    before = contents(store, killed)
    assert zlib.decompress(store._db.execute("SELECT data FROM texts LIMIT 1").fetchone()[0])
    store.tidy(a_run(store, *versions()))
    assert contents(store, killed) == before
