"""No module imports itself, over however many others; imports in functions and under TYPE_CHECKING count."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imports_of(folders: list[Path]) -> dict[str, set[str]]:
    """The modules below folders, with those of them that each imports."""
    paths: dict[str, Path] = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                wanted.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} has a relative import"
                # Of a package either a module of it is taken or a name of the package itself.
                wanted.update(
                    whole if (whole := f"{node.module}.{alias.name}") in paths else str(node.module)
                    for alias in node.names
                )
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
    imports = imports_of([ROOT / "compiler", ROOT / "server"])
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
    assert set(cycle_in(imports_of([tmp_path]))) == {"package.first", "package.second", "package.third"}
    (package / "third.py").write_text("y = 1\n")
    assert cycle_in(imports_of([tmp_path])) == []
