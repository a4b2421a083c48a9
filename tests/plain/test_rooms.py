"""The contracts of import-linter have no holes: an import or a module that they forbid breaks them, in each room."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter import Contract, api
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

ROOT = Path(__file__).parents[2]
OPTIONS: dict[str, Any] = api.read_configuration(str(ROOT / "pyproject.toml"))
PACKAGES = {"irscope": ROOT / "compiler", "irscope_server": ROOT / "server"}
TYPES: dict[str, type[Contract]] = {
    "forbidden": ForbiddenContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}


@dataclass(frozen=True)
class Layered:
    """A package with rooms, the name of its contract, and its layers from the top, each with the full names of its rooms."""

    name: str
    contract: str
    layers: tuple[tuple[str, ...], ...]

    @property
    def rooms(self) -> list[str]:
        return [room for layer in self.layers for room in layer]

    def forbidden_to(self, room: str) -> set[str]:
        """What a room may not import: rooms above it and beside it."""
        layer = next(number for number, rooms in enumerate(self.layers) if room in rooms)
        return {other for rooms in self.layers[: layer + 1] for other in rooms} - {room}


def packages_with_rooms() -> Iterator[Layered]:
    for contract in OPTIONS["contracts_options"]:
        if contract.get("exhaustive"):
            (package,) = contract["containers"]
            layers = (tuple(f"{package}.{name}" for name in layer.split(" | ")) for layer in contract["layers"])
            yield Layered(package, contract["name"], tuple(layers))


LAYERED = {package.name: package for package in packages_with_rooms()}
ROOMS = [(package, room) for package in LAYERED.values() for room in package.rooms]
SERVER = LAYERED["irscope_server"].rooms


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """All modules and what they import; a test that adds something takes it away again."""
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def contract(name: str) -> Contract:
    (options,) = [options for options in OPTIONS["contracts_options"] if options["name"] == name]
    return TYPES[options["type"]](name, OPTIONS["session_options"], options)


def deepest(imports: grimp.ImportGraph, room: str) -> str:
    """A module of a room, as far down in it as there is one."""
    return max([room, *imports.find_descendants(room)], key=lambda module: (module.count("."), module))


def breaks(imports: grimp.ImportGraph, name: str, importer: str, imported: str) -> bool:
    """Whether a contract that is kept is broken by one more import."""
    assert contract(name).check(imports, verbose=False).kept
    imports.add_import(importer=importer, imported=imported)
    try:
        return not contract(name).check(imports, verbose=False).kept
    finally:
        imports.remove_import(importer=importer, imported=imported)


def test_three_packages_have_rooms() -> None:
    assert [*LAYERED] == ["irscope", "irscope_server", "irscope_server.dap"]
    assert len(ROOMS) > 40


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_is_seen(imports: grimp.ImportGraph, package: str) -> None:
    """A folder without `__init__.py` would be in no room, and nobody would say so."""
    files = (path.relative_to(PACKAGES[package]).with_suffix("") for path in PACKAGES[package].rglob("*.py"))
    on_disk = {".".join(path.parts).removesuffix(".__init__") for path in files}
    assert on_disk == {package, *imports.find_descendants(package)}


@pytest.mark.parametrize(("package", "room"), ROOMS, ids=lambda value: value if isinstance(value, str) else value.name)
def test_a_room_cannot_import_rooms_above_and_beside_it(
    imports: grimp.ImportGraph, package: Layered, room: str
) -> None:
    layers, importer = contract(package.contract), deepest(imports, room)
    forbidden = {deepest(imports, other): other for other in package.forbidden_to(room)}
    for imported in forbidden:
        imports.add_import(importer=importer, imported=imported)
    try:
        illegal = layers.check(imports, verbose=False).metadata["invalid_dependencies"]
    finally:
        for imported in forbidden:
            imports.remove_import(importer=importer, imported=imported)
    assert {chains["imported"] for chains in illegal if chains["importer"] == room} == {*forbidden.values()}


@pytest.mark.parametrize("package", LAYERED.values(), ids=LAYERED)
def test_a_module_that_is_in_no_layer_breaks_the_contract(imports: grimp.ImportGraph, package: Layered) -> None:
    layers, module = contract(package.contract), f"{package.name}.in_no_layer"
    assert layers.check(imports, verbose=False).kept
    imports.add_module(module)
    try:
        check = layers.check(imports, verbose=False)
    finally:
        imports.remove_module(module)
    assert not check.kept and check.metadata["undeclared_modules"] == {module}


@pytest.mark.parametrize("package", LAYERED.values(), ids=LAYERED)
def test_a_package_with_rooms_cannot_import_one(imports: grimp.ImportGraph, package: Layered) -> None:
    name = "The packages that have rooms import nothing"
    assert breaks(imports, name, package.name, deepest(imports, package.rooms[-1]))


@pytest.mark.parametrize("room", LAYERED["irscope"].rooms)
def test_no_room_of_the_compiler_side_imports_the_server(imports: grimp.ImportGraph, room: str) -> None:
    name = "The compiler side knows nothing of the server and its protocols"
    assert breaks(imports, name, deepest(imports, room), "irscope_server.base.words")


@pytest.mark.parametrize("room", [*SERVER, *LAYERED["irscope_server.dap"].rooms])
def test_no_room_of_the_server_imports_torch(imports: grimp.ImportGraph, room: str) -> None:
    name = "The server imports neither torch nor what runs in the user's process"
    assert breaks(imports, name, deepest(imports, room), "torch")


@pytest.mark.parametrize("room", [room for room in SERVER if room != "irscope_server.dap"])
def test_no_room_of_the_server_imports_the_debug_adapter(imports: grimp.ImportGraph, room: str) -> None:
    name = "The language server does not know the debug adapter"
    assert breaks(imports, name, deepest(imports, room), "irscope_server.dap.base.dtypes")


@pytest.mark.parametrize("base", ["base", "dynamo_stages"])
def test_what_declarations_are_made_of_does_not_know_the_registry(imports: grimp.ImportGraph, base: str) -> None:
    name = "The registry of pipelines is above what declarations are made of"
    assert breaks(imports, name, f"irscope.pipelines.{base}", "irscope.pipelines.registry")


def test_the_command_says_what_is_wrong_with_a_copy(tmp_path: Path) -> None:
    """As above, and with the files: imports in functions and under TYPE_CHECKING count."""
    for package, folder in PACKAGES.items():
        shutil.copytree(folder / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert broken(tmp_path) == []
    for module, late in {
        "irscope/ir/nodes.py": "def late():\n    import irscope.cli.main\n",
        "irscope_server/base/words.py": "if TYPE_CHECKING:\n    from irscope_server.app import serve\n",
        "irscope_server/dap/in_no_layer.py": "",
    }.items():
        with (tmp_path / module).open("a", encoding="utf-8") as file:
            file.write(late)
    assert broken(tmp_path) == [package.contract for package in LAYERED.values()]


def broken(folder: Path) -> list[str]:
    """The contracts that `lint-imports` finds broken in a folder."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    names = re.findall(r"^(.+) BROKEN$", done.stdout, re.MULTILINE)
    assert done.returncode == bool(names) and "Contracts: " in done.stdout, done.stdout + done.stderr
    return names


@pytest.mark.parametrize("package", LAYERED.values(), ids=LAYERED)
def test_the_page_shows_the_layers(package: Layered) -> None:
    """The blocks of docs/ARCHITECTURE.md in which a layer is a line: names of rooms, and words on them."""
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    blocks = [
        [
            {name for name in re.split(r"\s{2,}", line.strip()) if re.fullmatch(r"\w+", name)}
            for line in block.splitlines()
        ]
        for block in re.findall(r"```\n(.*?)```", page[page.index("## Rooms of `compiler/irscope`") :], re.DOTALL)
    ]
    assert [{room.removeprefix(f"{package.name}.") for room in layer} for layer in package.layers] in blocks


def test_the_page_names_files_that_exist() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [f"/{file}" for file in listed.splitlines()]
    named = set(re.findall(r"[\w./-]+\.(?:py|ts|mjs|toml|json)\b", page))
    assert len(named) > 40
    assert [name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in files)] == []
