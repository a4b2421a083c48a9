"""No module imports itself, over however many others; imports in functions and under TYPE_CHECKING count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from sources import COMPILER, SERVER, Nodes, found_by, rule

Imported = tuple[str, str | None]
"""A module, and what is taken from it."""


@rule
def imported(nodes: Nodes) -> Iterator[Imported]:
    for node in nodes.of(ast.Import):
        yield from ((alias.name, None) for alias in node.names)
    for origin in nodes.of(ast.ImportFrom):
        assert origin.level == 0, "a relative import"
        yield from ((str(origin.module), alias.name) for alias in origin.names)


def imports_of(folders: list[Path], taken: dict[Path, list[Imported]]) -> dict[str, set[str]]:
    """The modules below folders, with those of them that each imports."""
    paths: dict[str, Path] = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        # Of a package either a module of it is taken or a name of the package itself.
        wanted = {whole if (whole := f"{module}.{part}") in paths else module for module, part in taken[path]}
        found[name] = {one for one in wanted if one in paths and one != name}
    return found


def cycle_in(imports: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first one again at the end; none where there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_in_a_circle() -> None:
    imports = imports_of([COMPILER, SERVER], found_by(imported))
    assert len(imports) > 300 and sum(map(len, imports.values())) > 1000
    assert cycle_in(imports) == []


@pytest.mark.parametrize(
    "late",
    [
        "from package import first\n",
        "def f():\n    from package.first import x\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package.first import X\n",
        "import package.first\n",
    ],
)
def test_a_circle_is_seen(tmp_path: Path, late: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "first.py").write_text("from package import second\nx = 1\n")
    (package / "second.py").write_text("from package.third import y\n")
    (package / "third.py").write_text(f"y = 1\n{late}")
    assert set(cycle_in(below(tmp_path))) == {"package.first", "package.second", "package.third"}
    (package / "third.py").write_text("y = 1\n")
    assert cycle_in(below(tmp_path)) == []


def below(folder: Path) -> dict[str, set[str]]:
    taken = {path: list(imported(Nodes(path.read_text(encoding="utf-8")))) for path in folder.rglob("*.py")}
    return imports_of([folder], taken)
