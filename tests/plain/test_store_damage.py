"""Rows that no irscope has written: reading them gives one error with a sentence, and other runs are still shown."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from facts import a_compile, a_gap, an_outcome
from irscope.protocol import Lane, StageRef
from irscope.store.file import DamagedStoreError
from irscope.store.store import Store

Ask = Callable[[Store, str], object]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


@pytest.fixture
def run(path: str) -> str:
    with Store(path) as store:
        run = store.create_run("/m.py", (), Lane.DEEP, "digest")
        store.put_source(run, "/m.py", "x\n")
        store.put_compile(run, a_compile())
        store.put_stage(run, "0/0", StageRef("0/0/g", "dynamo-graph", "python", 2), "x\n", 0.0, {"nodes": []})
        store.put_gap(run, a_gap())
        store.set_outcome(run, an_outcome())
        return run


@pytest.mark.parametrize(
    ("change", "ask"),
    [
        ("sources SET file = CAST(file AS BLOB)", Store.sources),
        ("compiles SET facts = '[]'", Store.report),
        ("compiles SET facts = 'x'", Store.report),
        ("compiles SET facts = '{}'", Store.report),
        ("compiles SET facts = json_replace(facts, '$.seconds', 1e999)", Store.report),
        ("gaps SET why = x'ff'", Store.report),
        ("runs SET torch = x'00'", Store.report),
        ('runs SET outcome = \'{"kind": "none"}\'', Store.report),
        ("runs SET lane = 'no lane'", Store.lane_of),
        ("stages SET id = x'00' WHERE 1", lambda store, run: store.stages_with_data(run, "dynamo-graph")),
        ("stages SET name = x'00'", lambda store, run: store.stage_text(run, "0/0/g")),
    ],
)
def test_it_is_one_error_with_a_sentence(path: str, run: str, change: str, ask: Ask) -> None:
    with Store(path) as store:
        ask(store, run)
    damage(path, change)
    with Store(path) as store, pytest.raises(DamagedStoreError, match=r"cannot be read: .* move it away"):
        ask(store, run)


@pytest.mark.parametrize(
    "change",
    ["lane = 'no lane'", "outcome = 'x'", "started = 1e300", "started = 1e18", "started = 'soon'", "script = x'ff'"],
)
def test_a_damaged_run_hides_no_other(path: str, run: str, change: str) -> None:
    with Store(path) as store:
        other = store.create_run("/n.py", (), Lane.FAST, "digest")
    damage(path, f"runs SET {change} WHERE id = '{run}'")
    with Store(path) as store:
        assert [each.run for each in store.runs()] == [other]


def test_what_is_not_there_is_no_damage(path: str, run: str) -> None:
    with Store(path) as store:
        with pytest.raises(LookupError, match="No run is named x"):
            store.report("x")
        with pytest.raises(LookupError, match="has no stage y"):
            store.stage_text(run, "y")


def damage(path: str, change: str) -> None:
    db = sqlite3.connect(path)
    db.execute(f"UPDATE {change}")
    db.commit()
    db.close()
