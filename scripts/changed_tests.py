"""Which tests a change concerns: ``python scripts/changed_tests.py [BASE]`` prints JSON, for `npm test -- --changed`.

A test file is chosen if what it imports, over any number of modules, has changed; what a file names in a string counts
as imported.  Without BASE the change is what is not in ``main``, on ``main`` what is not committed.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"irscope": "compiler", "irscope_server": "server"}
TIERS = ("plain", "worker", "protocol")
ROOMS_OF_TESTS = {*TIERS, "server", "findings", "process", "ranks", "stages", "values", "dap", "lsp", "view"}
NEEDED_BY_ALL = re.compile(
    r"(pyproject\.toml|setup\.py|package(-lock)?\.json|scripts/(test|setup)\.mjs|scripts/changed_tests\.py|"
    r"scripts/lib/.*|(.*/)?conftest\.py|tests/versions\.py)"
)
OF_THE_EDITOR = re.compile(
    r"(extension|l10n|tests/editor)/.*|tsconfig.*\.json|scripts/(build|package)\.mjs|\.vscodeignore"
)
BOOT = "irscope.driver.boot"
"""What a process of the driver or of a worker begins with; its file is named to the interpreter."""
CAPTURING = "irscope.runner.main"
STARTED = {BOOT: (CAPTURING,)}
DECLARATIONS = "irscope.pipelines."
"""Modules that name captures, which only the process of a run imports."""
DOTTED = re.compile(r"\birscope(?:_server)?(?:\.\w+)+")
NAMES_A_MODULE = re.compile(r"""["'](irscope(_server)?\.|boot\.py["'])""")
"""In a text without it no string names one."""
NAMED = re.compile(r"[\w-]+\.(?:py|mjs|md|json|txt|js)\b")


@dataclass(frozen=True)
class Selection:
    """What a change concerns.

    everything: why all tests run; None if the lists below say what runs
    pytest: test files
    editor: whether the editor tier runs
    of: how many test files there are
    """

    everything: str | None
    pytest: list[str]
    editor: bool
    of: int


def select(changed: Iterable[str], imports: Imports) -> Selection:
    """Chooses for paths that are relative to the repository."""
    paths = sorted(set(changed))
    tests = imports.tests
    for path in paths:
        if NEEDED_BY_ALL.fullmatch(path):
            return Selection(f"{path} has changed", tests, True, len(tests))
    folders = {folder for path in paths for folder in folders_of_data(path)}
    chosen = [test for test in tests if not imports.reached_from(test).isdisjoint(paths)]
    if folders:
        chosen = sorted({*chosen, *(test for test in tests if imports.names(test, folders))})
    return Selection(None, chosen, any(imports.is_of_the_editor(path) for path in paths), len(tests))


def folders_of_data(path: str) -> list[str]:
    """The folder that a file lies in if it is what tests read: a test that names it may read all of it."""
    parts = path.split("/")
    if parts[0] not in ("tests", "docs", "examples", "benchmarks") or parts[-1].startswith("test_"):
        return []
    return [folder for folder in parts[1:-1] if folder not in ROOMS_OF_TESTS][:1]


class Imports:
    """Which files a test file leads to."""

    def __init__(self, root: Path = ROOT) -> None:
        for folder in PACKAGES.values():
            sys.path.insert(0, str(root / folder))
        self._root = root
        self._graph = grimp.build_graph(*PACKAGES, cache_dir=None)
        self._files: dict[str, str] = {module: self._file_of(module) for module in self._graph.modules}
        self._helpers: dict[str, list[str]] = defaultdict(list)
        scripts = [path for folder in ("tests", "scripts", "benchmarks") for path in (root / folder).rglob("*.py")]
        for path in scripts:
            self._helpers[path.stem].append(path.relative_to(root).as_posix())
        self._by_name: dict[str, list[str]] = defaultdict(list)
        named = [
            path
            for folder in ("docs", "examples", "tests", "scripts", "benchmarks")
            for path in (root / folder).rglob("*.*")
        ]
        for path in [*root.glob("*.*"), *named]:
            self._by_name[path.name].append(path.relative_to(root).as_posix())
        self._next: dict[str, set[str]] = {}
        self.tests = sorted(
            path.relative_to(root).as_posix() for tier in TIERS for path in (root / "tests" / tier).rglob("test_*.py")
        )

        self._fixtures = {
            path.parent.relative_to(root).as_posix(): set(fixtures_in(ast.parse(path.read_text(encoding="utf-8"))))
            for path in (root / "tests").rglob("conftest.py")
        }
        self._reached: dict[str, frozenset[str]] = {}

    def names(self, path: str, words: set[str]) -> bool:
        """Whether one of the words is a string in a file."""
        text = (self._root / path).read_text(encoding="utf-8")
        return any(word in text for word in words) and not words.isdisjoint(strings_in([*ast.walk(ast.parse(text))]))

    def is_of_the_editor(self, path: str) -> bool:
        """Whether the editor tier is concerned."""
        name = path.rsplit("/", 1)[-1]
        return OF_THE_EDITOR.fullmatch(path) is not None or (
            path.startswith("scripts/")
            and any(name in test.read_text(encoding="utf-8") for test in (self._root / "tests/editor").rglob("*.mjs"))
        )

    def reached_from(self, test: str) -> frozenset[str]:
        """A file and all that it leads to."""
        if test not in self._reached:
            reached, left = {test}, [test]
            while left:
                for following in self._following(left.pop()) - reached:
                    reached.add(following)
                    left.append(following)
            self._reached[test] = frozenset(reached)
        return self._reached[test]

    def _following(self, path: str) -> set[str]:
        if path not in self._next:
            module = self._module_of(path)
            if not path.endswith(".py"):
                self._next[path] = set()
            elif module is None:
                self._next[path] = set(self._of_test(path))
            else:
                self._next[path] = set(self._of_module(module, path))
        return self._next[path]

    def _of_module(self, module: str, path: str) -> Iterator[str]:
        imported = {*self._graph.find_modules_directly_imported_by(module), *STARTED.get(module, ())}
        for name in filter(None, [*imported, module.rpartition(".")[0]]):
            yield self._files[name]
        text = (self._root / path).read_text(encoding="utf-8")
        if not module.startswith(DECLARATIONS) and NAMES_A_MODULE.search(text):
            for string in strings_in([*ast.walk(ast.parse(text))]):
                if DOTTED.fullmatch(string):
                    yield from self._files_of(string)
                elif string == "boot.py":
                    yield self._files[BOOT]
        if "iter_modules" in text:  # a registry
            for package in [module.rpartition(".")[0], *imported]:
                yield from (self._files[child] for child in self._graph.find_children(package))
        if module == CAPTURING:
            yield from (self._files[capture] for capture in self._graph.find_descendants("irscope.pipeline_captures"))

    def _of_test(self, path: str) -> Iterator[str]:
        text = (self._root / path).read_text(encoding="utf-8")
        try:
            nodes = [*ast.walk(ast.parse(text))]
        except SyntaxError:
            return
        for node in nodes:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            for name in names:
                yield from self._files_of(name)
                if name.split(".")[0] not in PACKAGES:
                    yield from self._helpers.get(name.split(".")[0], [])
        is_test = path.rsplit("/", 1)[-1].startswith("test_")
        arguments = {node.arg for node in nodes if isinstance(node, ast.arg) and is_test}
        for folder, fixtures in self._fixtures.items():
            if path.startswith(f"{folder}/") and not fixtures.isdisjoint(arguments):
                yield f"{folder}/conftest.py"
        for string in strings_in(nodes):
            for name in DOTTED.findall(string):
                yield from self._files_of(name)
            # Scripts, docs and data that it names; helpers that it starts, too.
            for name in NAMED.findall(string):
                if len(self._by_name[name]) == 1:
                    yield from self._by_name[name]

    def _files_of(self, name: str) -> Iterator[str]:
        """The module that a dotted name begins with: the rest may be names in it."""
        while name:
            if name in self._files:
                yield self._files[name]
                return
            name = name.rpartition(".")[0]

    def _file_of(self, module: str) -> str:
        stem = f"{PACKAGES[module.split('.')[0]]}/{module.replace('.', '/')}"
        return f"{stem}.py" if (self._root / f"{stem}.py").exists() else f"{stem}/__init__.py"

    def _module_of(self, path: str) -> str | None:
        folder, _, rest = path.partition("/")
        if folder not in PACKAGES.values():
            return None
        module = rest.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return module if module in self._files else None


def fixtures_in(conftest: ast.Module) -> Iterator[str]:
    """The fixtures that a conftest.py defines; one that defines nothing imports them."""
    functions = [node for node in conftest.body if isinstance(node, ast.FunctionDef)]
    yield from (function.name for function in functions if "fixture" in "".join(map(ast.dump, function.decorator_list)))
    for node in conftest.body if not functions else []:
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def strings_in(nodes: list[ast.AST]) -> Iterator[str]:
    """The strings that a program uses: not its docstrings, which name modules to explain something."""
    said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def git(root: Path, *args: str) -> list[str]:
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed_since(base: str | None, root: Path = ROOT) -> list[str]:
    """The files that differ from a commit, and those that git does not know yet."""
    if base is None:
        branch = git(root, "rev-parse", "--abbrev-ref", "HEAD")[0]
        base = "HEAD" if branch == "main" else git(root, "merge-base", "main", "HEAD")[0]
    return [*git(root, "diff", "--name-only", base), *git(root, "ls-files", "--others", "--exclude-standard")]


if __name__ == "__main__":
    print(json.dumps(asdict(select(changed_since(sys.argv[1] if len(sys.argv) > 1 else None), Imports()))))
