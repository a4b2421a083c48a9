"""Compile time and memory as trees of measures, of one run and of two, in the terminal."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from facts import a_compile, an_outcome
from irscope.cli.main import main
from irscope.ir.phases import Phase
from irscope.measures.compile_time import compile_time_tree
from irscope.measures.memory import Buffer, by_module
from irscope.measures.tree import Measure, PathPart, PathTree, difference, text_columns, text_rows, tree_of
from irscope.protocol import Lane
from irscope.store.store import Store

PHASES = [
    Phase("dynamo", -1, 0.0, 3.0, 1.0, 0),
    Phase("compile_fx", 0, 1.0, 1.5, 1.5, 0),
    Phase("compile_file", 1, 1.0, 4.0, 4.0, 1),
    Phase("compile_fx", 0, 2.5, 0.5, 0.5, 0),
]


def rows_of(tree: PathTree, whole: float | None = None) -> list[str]:
    return [" ".join(cell.strip() for cell in row if cell.strip()) for row in text_rows(tree, 99, whole)]


def test_phases_are_added_up_below_what_was_compiled() -> None:
    compiles = [a_compile(id="0/0", seconds=3.0), a_compile(id="0/1", seconds=1.0)]
    tree = compile_time_tree(compiles, {"0/0": PHASES, "0/1": PHASES[:1]})
    assert [measure.name for measure in tree.measures] == ["compile time", "other threads"]
    assert text_columns(tree, "of all") == ["compile time", "of all", "own", "other threads"]
    title = a_compile().title
    assert rows_of(tree, tree.nodes[0].inclusive[0]) == [
        "this run 4.0 s 100 % 4.0 s",
        f"{title} ×2 4.0 s 100 % 4.0 s",
        "dynamo ×2 Dynamo, and all that it calls 4.0 s 100 % 2.0 s 4.0 s",
        "compile_fx ×2 2.0 s 50 % 2.0 s 4.0 s",
        "compile_file C++ compiler 0 % 4.0 s",
    ]
    alone = compile_time_tree([a_compile(id="0/0")], {"0/0": PHASES[:1]})
    assert [measure.name for measure in alone.measures] == ["compile time"]


def test_what_is_around_the_whole_compile_has_no_row() -> None:
    inner = Phase("entire_frame_compile", 0, 2.0, 1.0, 2.0, 0)
    alone = dataclasses.replace(inner, parent=-1)
    trees = [
        compile_time_tree([a_compile(id="0/0", seconds=2.0)], {"0/0": phases})
        for phases in ([dataclasses.replace(alone, name="dynamo", own=0.0), inner], [alone])
    ]
    assert rows_of(trees[0]) == rows_of(trees[1]), "else two runs of a script could not be compared"


@pytest.mark.parametrize(
    ("seconds", "own"), [(3.5, (1.0, 1.0, 1.5)), (2.4, (0.0, 0.9, 1.5)), (1.0, (0.0, 0.0, 1.0)), (0.0, (0.0, 1.0, 1.5))]
)
def test_the_whole_is_the_compile_time_that_is_told_elsewhere(seconds: float, own: tuple[float, ...]) -> None:
    tree = compile_time_tree([a_compile(id="0/0", seconds=seconds)], {"0/0": PHASES[:3]})
    assert tree.nodes[0].inclusive[0] == pytest.approx(seconds or 2.5)
    assert [node.exclusive[0] for node in tree.nodes[1:4]] == pytest.approx(own)


def a_buffer(name: str, size: int, first: int, last: int, how: str = "allocated", module: str = "") -> Buffer:
    return Buffer(name, size, "float32", "temporary", how, "", first, last, "k", module)


def test_buffers_count_where_they_are_made() -> None:
    buffers = [
        a_buffer("a", 100, 0, 2, module="model.layers.0.norm"),
        a_buffer("b", 10, 3, 4, module="model.layers.0.norm"),
        a_buffer("c", 100, 2, 5, how="reuse", module="model"),
    ]
    values = by_module(buffers, 2)
    norm = tuple(map(PathPart, ("model", "layers.0", "norm")))
    assert values == {norm: [100, 110, 2], (PathPart("model"),): [100, 0, 1]}


SECONDS = (Measure("compile time", "seconds"),)


def test_what_changed_is_told_by_path_wherever_a_line_has_moved() -> None:
    before, after = (
        tree_of("this run", SECONDS, {(PathPart("f", "", "/m.py", line), PathPart(name)): [seconds]})
        for line, name, seconds in ((3, "dynamo", 2.0), (5, "dynamo", 0.5))
    )
    gone = tree_of("this run", SECONDS, {(PathPart("g", "", "/m.py", 9),): [1.0]})
    assert rows_of(difference(before, after)) == [
        "two runs −1.5 s 2.0 s 500 ms",
        "f −1.5 s 2.0 s 500 ms",
        "dynamo −1.5 s 2.0 s 500 ms",
    ]
    changed = difference(gone, after)
    assert [node.line for node in changed.nodes if node.name == "f"] == [5]
    assert [measure.name for measure in changed.measures] == ["change of compile time", "before", "after"]
    assert rows_of(changed)[1] == "g −1.0 s 1.0 s"


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "runs.db")
    with Store(path) as store:
        for seconds in (1.0, 3.0):
            run = store.create_run("/m.py", [], Lane.FAST, "digest")
            store.put_compile(run, a_compile(seconds=seconds))
            store.set_outcome(run, an_outcome())
    return path


def test_show_prints_each_tree_and_what_changed(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(store) as opened:
        newest, older = (run.run for run in opened.runs())
    assert main(["show", newest, "--store", store, "--time"]) == 0
    assert "entire_frame_compile the whole compile" in capsys.readouterr().out
    assert main(["show", newest, "--store", store, "--time", "--than", older]) == 0
    assert "change of compile time" in capsys.readouterr().out
    assert main(["show", newest, "--store", store, "--modules", "--than", older, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [measure["unit"] for measure in shown["tree"]["measures"]] == ["count"] * 3
    assert main(["show", newest, "--store", store, "--memory"]) == 0
    assert "This run did not keep that." in capsys.readouterr().out
