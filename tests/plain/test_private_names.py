"""Everything private of PyTorch, and every look at Python's stack, is in `irscope.internals`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INTERNALS = ROOT / "compiler" / "irscope" / "internals"
MAY_IMPORT = ("internals", "protocol", "vocabulary", "usercode")
STACK = ("_getframe", "currentframe", "f_locals")
"""Names by which code looks at frames of functions that it was not called with."""


def files() -> Iterator[Path]:
    for folder in ("compiler", "server"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def looks_at_the_stack(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in STACK:
            yield node.lineno


def makes_hooks(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("Hook", "FrameLook"):
            yield node.lineno


def rooms_imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The rooms of irscope that a module imports, late imports too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "irscope":
            inside = (node.module or "").split(".")[1:2]
            yield from ((node.lineno, room) for room in (inside or [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            names = (alias.name.split(".") for alias in node.names)
            yield from ((node.lineno, name[1]) for name in names if name[0] == "irscope" and len(name) > 1)


def test_hooks_and_looks_at_frames_are_in_internals() -> None:
    found = []
    made = 0
    for path in files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        here = [*looks_at_the_stack(tree), *makes_hooks(tree)]
        if path.parent == INTERNALS:
            made += len(here)
        else:
            found += [f"{path.relative_to(ROOT)}:{line}" for line in here]
    assert found == []
    assert made > 40


def test_frames_are_walked_in_one_way() -> None:
    walks = [path.name for path in INTERNALS.glob("*.py") if "_getframe" in path.read_text(encoding="utf-8")]
    assert walks == ["frames.py"]


def test_internals_know_little_of_irscope() -> None:
    found = []
    for path in INTERNALS.glob("*.py"):
        for line, room in rooms_imported(ast.parse(path.read_text(encoding="utf-8"))):
            if room not in MAY_IMPORT:
                found.append(f"{path.relative_to(ROOT)}:{line} imports irscope.{room}")
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import sys\ndef f():\n    return sys._getframe(1)",
        "import inspect\nx = inspect.currentframe()",
        "def f(frame):\n    return frame.f_locals",
        "x = Hook('what', 'json', '2.13', f)",
        "x = hooks.Hook('what', 'json', '2.13', f)",
    ],
)
def test_the_walk_sees_them(source: str) -> None:
    tree = ast.parse(source)
    assert len([*looks_at_the_stack(tree), *makes_hooks(tree)]) == 1


def test_the_walk_sees_imports_in_functions() -> None:
    source = "def f():\n    from irscope.findings import book\nimport irscope.runner.main\nfrom irscope import store\n"
    assert {room for _, room in rooms_imported(ast.parse(source))} == {"findings", "runner", "store"}
