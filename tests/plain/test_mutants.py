"""What `benchmarks/mutations.py` breaks."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest
from mutants import Mutant, candidates_of, differs, files_by_room, lines_of, make, share_out

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small rooms of Python and one of TypeScript, as they are."""
    root = tmp_path_factory.mktemp("tree")
    for room in ("compiler/irscope/testing", "compiler/irscope/reporting", "extension/src/linked"):
        shutil.copytree(ROOT / room, root / room)
    (root / "node_modules").symlink_to(ROOT / "node_modules")
    return root


def test_a_seed_draws_the_same_mutants_again(tree: Path) -> None:
    first = make(tree, 40, 1)
    assert first == make(tree, 40, 1) != make(tree, 40, 2)
    assert len({mutant.id for mutant in first}) == len({(mutant.file, mutant.line) for mutant in first}) == 40


def test_each_mutant_parses_and_is_another_program(tree: Path) -> None:
    mutants = make(tree, 40, 3)
    assert {Path(mutant.file).suffix for mutant in mutants} == {".py", ".ts"}
    for mutant in mutants:
        source = (tree / mutant.file).read_text(encoding="utf-8")
        changed = mutant.apply(source)
        assert changed is not None and changed != source
        if mutant.file.endswith(".py"):
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


def test_rooms_get_their_share() -> None:
    lines = {room: sum(map(lines_of, files)) for room, files in files_by_room(ROOT).items()}
    shares = share_out(400, lines)
    assert sum(shares.values()) == 400 and min(shares.values()) >= 1
    assert {"compiler/irscope/store", "server/irscope_server/dap", "extension/src/panels"} <= set(shares)
    for room, share in shares.items():
        assert abs(share - 400 * lines[room] / sum(lines.values())) < 400 * 0.02


SOURCE = '''\
"""A docstring, 1."""
from typing import TYPE_CHECKING
__all__ = ["f"]
if TYPE_CHECKING:
    N = 3
def f(xs: "list[int]", n: int = 3) -> "list[int]":
    """Another one."""
    if not xs and n < 4:
        g(xs, key=True)
    return xs[1:n]
'''


def test_the_changes() -> None:
    changes = {
        (mutant.line, mutant.kind, mutant.changed.strip()) for mutant in candidates_of("compiler/irscope/a.py", SOURCE)
    }
    assert changes == {
        (6, "constant changed", 'def f(xs: "list[int]", n: int = 4) -> "list[int]":'),
        (8, "not taken away", "if (xs) and n < 4:"),
        (8, "and/or", "if not xs or n < 4:"),
        (8, "comparison turned round", "if not xs and n >= 4:"),
        (8, "constant changed", "if not xs and n < 5:"),
        (8, "not added", "if (not (not xs and n < 4)):"),
        (9, "statement dropped", "pass"),
        (9, "argument dropped", "g(key=True)"),
        (9, "argument dropped", "g(xs)"),
        (9, "constant changed", "g(xs, key=False)"),
        (10, "None returned", "return None"),
        (10, "slice off by one", "return xs[(1) + 1:n]"),
        (10, "slice off by one", "return xs[1:(n) + 1]"),
        (10, "constant changed", "return xs[2:n]"),
    }


def test_a_mutant_is_found_after_its_line_has_moved() -> None:
    mutant = Mutant("room", "a.py", 2, "    x = 1", 8, "1", "2", "constant changed")
    assert mutant.apply("def f():\n    y = 1\n\n    x = 1\n") == "def f():\n    y = 1\n\n    x = 2\n"
    assert mutant.apply("def f():\n    y = 1\n") is None


def test_what_does_not_parse_is_not_drawn() -> None:
    mutant = Mutant("room", "a.py", 1, "x = f(1)", 5, "(1)", "(", "argument dropped")
    assert not differs(mutant, "x = f(1)\n")
