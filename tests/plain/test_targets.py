"""The catalogue of targets, and files of the user's own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from irscope.cli.main import main
from irscope.driver.targets import checked
from irscope.ir.roofline import TARGETS
from irscope.pipelines.registry import pipeline_named
from irscope.targets.catalogue import FIGURES, VARIABLE, catalogue, read_catalogue
from irscope.targets.properties import missing_figures

DOCS = Path(__file__).parents[2] / "docs"
SOURCES = {"sheet": {"title": "Data sheet", "link": "https://example.com/sheet"}}
BOARD: dict[str, Any] = {
    "title": "My board",
    "kind": "cuda",
    "architecture": "8.7",
    "reported": ["Orin"],
    "figures": {"processors": [16, "sheet"], "bandwidth": [204.8e9, "sheet"]},
    "rates": {"float32": [5.3e12, "sheet"]},
}


def written(folder: Path, targets: object, sources: object = SOURCES) -> str:
    path = folder / "targets.json"
    path.write_text(json.dumps({"sources": sources, "targets": targets}))
    return str(path)


def test_our_own_has_no_problem_and_what_the_bounds_need() -> None:
    own = read_catalogue()
    assert own.problems == ()
    gpus = {name for name, target in own.targets.items() if target.kind != "cpu"}
    assert gpus == set(TARGETS) and len(gpus) == 10
    needed = {"processors", "memory", "bandwidth", "l2", "registers", "threads", "shared_memory", "warp", "clock"}
    for name in gpus:
        target = own.targets[name]
        assert needed <= set(target.figures), name
        assert {"float64", "float32", "float16", "bfloat16", "int8"} <= set(target.rates), name
        assert target.figures["warp"].value == (64 if target.kind == "hip" else 32)


def test_no_two_targets_are_reported_under_one_name() -> None:
    names = [name for target in read_catalogue().targets.values() for name in target.reported]
    assert len(names) == len(set(names))


def test_a_file_of_the_user(tmp_path: Path) -> None:
    known = read_catalogue(written(tmp_path, {"board": BOARD, "h100": {**BOARD, "title": "Mine"}}))
    assert known.problems == ()
    board = known.named("board")
    assert (board.value("processors"), board.value("l2"), board.file) == (16, None, str(tmp_path / "targets.json"))
    assert board.figures["bandwidth"].link == "https://example.com/sheet"
    assert known.named("h100").title == "Mine" and known.named("a100").file == ""
    with pytest.raises(LookupError, match="Did you mean board"):
        known.named("bord")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "tpu"}, "kind must be one of"),
        ({"architecture": "gfx942"}, "architecture 'gfx942' is not one of kind cuda"),
        ({"architecture": None}, "architecture None"),
        ({"title": ""}, "title must be a text"),
        ({"title": "a\u202eb"}, "title must be a text"),
        ({"title": "x" * 301}, "title must be a text"),
        ({"reported": "Orin"}, "reported must be a list"),
        ({"reported": ["x"] * 21}, "reported must be a list"),
        ({"figures": []}, "figures must be an object"),
        ({"figures": {"cores": [1, "sheet"]}}, "unknown figure 'cores'"),
        ({"figures": {"warp": 32}}, "warp must be a number and the name of its source"),
        ({"figures": {"warp": [0, "sheet"]}}, "warp is 0, not a whole number from 1 to 1024"),
        ({"figures": {"warp": [1.5, "sheet"]}}, "warp is 1.5, not a whole number"),
        ({"figures": {"warp": [10**400, "sheet"]}}, "not a whole number"),
        ({"figures": {"warp": [True, "sheet"]}}, "warp is not a number"),
        ({"figures": {"warp": [float("nan"), "sheet"]}}, "warp is not a number"),
        ({"figures": {"bandwidth": [float("inf"), "sheet"]}}, "bandwidth is inf"),
        ({"figures": {"warp": [32, "nowhere"]}}, "has the source 'nowhere', which is not among the sources"),
        ({"figures": {"warp": [32, ["sheet"]]}}, "has the source"),
        ({"rates": {"float16": [1e12, "sheet"]}}, "rates must have one of float32"),
        ({"rates": {"Float 32": [1e12, "sheet"]}}, "'Float 32' is not a dtype"),
        ({"power": 700}, "unknown key 'power'"),
    ],
)
def test_a_target_with_a_mistake_is_left_out(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    known = read_catalogue(written(tmp_path, {"bad": {**BOARD, **change}, "board": BOARD}))
    assert "bad" not in known.targets and known.named("board").title == "My board"
    (problem,) = known.problems
    assert why in problem and "target 'bad'" in problem


@pytest.mark.parametrize(
    "content", ["", "[]", "{", "[" * 100_000, '{"targets": []}', '{"targets": {}, "sources": 1}', "\xff"]
)
def test_what_is_no_file_of_targets(tmp_path: Path, content: str) -> None:
    path = tmp_path / "targets.json"
    path.write_bytes(content.encode("latin-1"))
    known = read_catalogue(str(path))
    assert "h100" in known.targets and len(known.problems) == 1 and "is not a file of targets" in known.problems[0]


@pytest.mark.parametrize("source", [1, {}, {"title": "t", "link": "javascript:x"}])
def test_a_source_with_a_mistake(tmp_path: Path, source: object) -> None:
    known = read_catalogue(written(tmp_path, {"board": BOARD}, {"sheet": source}))
    assert "board" not in known.targets and "sheet" in known.problems[0]


def test_a_file_that_is_missing_too_long_or_has_too_many(tmp_path: Path) -> None:
    assert "cannot be read" in read_catalogue(str(tmp_path / "none.json")).problems[0]
    assert "cannot be read" in read_catalogue(str(tmp_path)).problems[0]
    long = tmp_path / "long.json"
    long.write_text(" " * 1_000_001)
    assert "cannot be read" in read_catalogue(str(long)).problems[0]
    many = written(tmp_path, {f"board{n}": BOARD for n in range(201)})
    assert "more than 200" in read_catalogue(many).problems[0]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv(VARIABLE, written(tmp_path, {"board": BOARD, "bad": {}}))
    assert main(["targets"]) == 0
    told = capsys.readouterr()
    assert "target 'bad'" in told.err
    rows = {row.split()[0]: row for row in told.out.splitlines()[1:]}
    assert list(rows) == list(catalogue().targets) and "3.35 TB/s" in rows["h100"] and "My board" in rows["board"]
    assert main(["targets", "board"]) == 0
    assert "Data sheet" in capsys.readouterr().out
    assert main(["targets", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in data] == list(rows)
    h100 = next(each for each in data if each["name"] == "h100")
    assert h100["figures"]["processors"]["value"] == 132 and h100["rates"]["bfloat16"]["link"].startswith("https://")
    assert main(["targets", "h101"]) == 2 and "Did you mean h100?" in capsys.readouterr().err


def test_the_documentation_has_every_figure_and_key() -> None:
    page = (DOCS / "targets.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(FIGURES)
    example = json.loads(page.split("```json")[1].split("```")[0])
    assert set(example) == {"sources", "targets"}


def test_the_example_in_the_documentation_is_valid(tmp_path: Path) -> None:
    example = tmp_path / "example.json"
    example.write_text((DOCS / "targets.md").read_text("utf-8").split("```json")[1].split("```")[0])
    known = read_catalogue(str(example))
    assert known.problems == () and missing_figures(known.named("board")) == []


def test_kernels_need_more_figures_than_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, written(tmp_path, {"board": BOARD}))
    with pytest.raises(
        LookupError,
        match="board: its figures memory, l2, registers, threads, warp, shared_memory, shared_memory_per_block are missing",
    ):
        checked(["board"], pipeline_named("inductor"))
    for name in catalogue().targets:
        assert name == "board" or checked([name], pipeline_named("inductor")) == (name,)
