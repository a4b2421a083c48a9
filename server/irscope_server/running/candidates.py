"""Which scripts and tests of a workspace use a module: what can be chosen to run it."""

from __future__ import annotations

import ast
import asyncio
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from irscope.protocol import EntryKind
from irscope.usercode.reading import read_bounded
from irscope.usercode.source import decode_source

from irscope_server.base.results import EntryCandidate
from irscope_server.base.texts import FileKey, file_key
from irscope_server.base.trees import tree_of
from irscope_server.running.entries import Entry
from irscope_server.running.launch import Launch
from irscope_server.running.top_level import does_work

_MOST_FILES = 4_000
_MOST_BYTES = 1_000_000
_MOST_FOLDERS = 4_000
"""A file that lies in the root of the file system has all of it for a folder."""
_MOST_BYTES_IN_ALL = 50_000_000
_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__", "build", "dist", "venv", "env"})
_TEST_FILE = re.compile(r"(?:test_.*|.*_test)\.py$")
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]", re.MULTILINE)


class Search:
    """Looks for candidates in a thread, one search at a time: requests for the same module share one."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._running: dict[tuple[str, str], asyncio.Task[tuple[EntryCandidate, ...]]] = {}

    async def candidates(
        self, path: str, folder: str, launches: Sequence[Launch], buffers: Mapping[FileKey, str]
    ) -> tuple[EntryCandidate, ...]:
        """Like `candidates_for`."""
        key = (path, folder)
        if key not in self._running:
            task = asyncio.ensure_future(self._search(path, folder, launches, buffers))
            task.add_done_callback(lambda _: self._running.pop(key, None))
            self._running[key] = task
        return await asyncio.shield(self._running[key])  # one client's cancel is not the others'

    async def _search(
        self, path: str, folder: str, launches: Sequence[Launch], buffers: Mapping[FileKey, str]
    ) -> tuple[EntryCandidate, ...]:
        async with self._one_at_a_time:
            return await asyncio.to_thread(candidates_for, path, folder, launches, buffers)


def candidates_for(
    path: str, folder: str, launches: Sequence[Launch], buffers: Mapping[FileKey, str] | None = None
) -> tuple[EntryCandidate, ...]:
    """What may run a module: scripts and tests that import it, directly or not, then launch configurations.

    Reads the Python files of the folder, some thousands at most: call it in a separate thread.

    Args:
        buffers: Texts of open files, if they differ from the disk.
    """
    texts = dict(_texts(folder, buffers or {}))
    target, root = file_key(path), file_key(folder)
    distances = _distances(target, texts, root)
    ranked: list[tuple[int, int, str, EntryCandidate]] = []
    for key, distance in distances.items():
        relative = os.path.relpath(key, root)
        how = "imports this module" if distance == 1 else "uses this module through another"
        if _TEST_FILE.match(os.path.basename(key)):
            entry = Entry(EntryKind.PYTEST, relative, (), folder)
            ranked.append((distance, 1, relative, EntryCandidate(entry.title, f"Tests; {how}")))
        elif os.path.basename(key) == "__main__.py":
            if module := _package(os.path.dirname(key), texts):
                entry = Entry(EntryKind.MODULE, module, (), folder)
                ranked.append((distance, 0, relative, EntryCandidate(entry.title, f"Package; {how}")))
        elif does_work(texts[key]):
            entry = Entry(EntryKind.SCRIPT, os.path.join(folder, relative), (), folder)
            ranked.append((distance, 0, relative, EntryCandidate(entry.title, f"Script; {how}")))
    if _TEST_FILE.match(os.path.basename(path)):
        own = Entry(EntryKind.PYTEST, os.path.relpath(target, root), (), folder)
        ranked.append((0, 0, "", EntryCandidate(own.title, "The tests of this file")))
    candidates = [candidate for *_, candidate in sorted(ranked, key=lambda row: row[:3])]
    titles = {candidate.entry for candidate in candidates}
    for launch in launches:
        if launch.entry is None or launch.any_file or launch.entry.title in titles:
            continue
        titles.add(launch.entry.title)
        candidates.append(EntryCandidate(launch.entry.title, f"Launch configuration {launch.name}"))
    return tuple(candidates)


def _texts(folder: str, buffers: Mapping[FileKey, str]) -> Iterator[tuple[FileKey, str]]:
    """The Python files of a folder."""
    files, total = 0, 0
    for root, folders, names in itertools.islice(os.walk(folder), _MOST_FOLDERS):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED
            and not name.startswith(".")
            and not os.path.exists(os.path.join(root, name, "pyvenv.cfg"))
        )
        for name in sorted(names):
            if not name.endswith(".py"):
                continue
            files += 1
            if files > _MOST_FILES or total > _MOST_BYTES_IN_ALL:
                return
            path = os.path.join(root, name)
            key = file_key(path)
            if key in buffers:
                yield key, buffers[key]
                continue
            try:
                data = read_bounded(path, _MOST_BYTES)
            except OSError:
                continue
            total += len(data)
            yield key, decode_source(data)


def _distances(target: FileKey, texts: Mapping[FileKey, str], root: FileKey) -> dict[FileKey, int]:
    """How many imports lead from each file to the target; files that do not lead there are left out."""
    names: dict[str, list[FileKey]] = {}
    for key in sorted({*texts, target}):
        for name in _module_names(key, root):
            names.setdefault(name, []).append(key)
    users: dict[FileKey, set[FileKey]] = {}
    for key, text in texts.items():
        for used in _imports(key, text, names):
            if used != key:
                users.setdefault(used, set()).add(key)
    distances: dict[FileKey, int] = {}
    edge, distance = {target}, 0
    while edge:
        distance += 1
        edge = {user for used in edge for user in users.get(used, ()) if user != target and user not in distances}
        distances.update(dict.fromkeys(edge, distance))
    return distances


def _package(folder: str, texts: Mapping[FileKey, str]) -> str:
    """The dotted name of a package, which begins below the innermost folder that is not a package."""
    parts: list[str] = []
    while os.path.join(folder, "__init__.py") in texts or not parts:
        folder, part = os.path.split(folder)
        parts.insert(0, part)
    return ".".join(parts)


def _module_names(key: FileKey, root: FileKey) -> Iterator[str]:
    """The dotted names that can mean a file: from the folder on, and from each folder below it (``src`` layouts)."""
    relative = os.path.relpath(key, root)
    if relative.startswith(".."):
        relative = os.path.basename(key)
    parts = relative.removesuffix(".py").split(os.sep)
    if parts[-1] == "__init__":
        parts = parts[:-1]
    for start in range(len(parts)):
        yield ".".join(parts[start:])


def _imports(key: FileKey, text: str, names: Mapping[str, Sequence[FileKey]]) -> Iterable[FileKey]:
    """The files that a text imports.  If several have one name, the one beside it, else the outermost."""
    if not _IMPORT.search(text):
        return ()
    tree = tree_of(text)
    if tree is None:
        return ()
    wanted, relative = _imported(tree, key)
    # `import a.b` and `from a.b import c` run the packages above it, too
    wanted |= {top for name in wanted for top in _above(name)}
    imported = {
        min(names[name], key=lambda file: (os.path.dirname(file) != os.path.dirname(key), file.count(os.sep)))
        for name in wanted
        if name in names
    }
    files = {file for keys in names.values() for file in keys} if relative else set()
    return imported | (files & relative)


def _imported(tree: ast.AST, key: str) -> tuple[set[str], set[str]]:
    """The modules that a file imports by their whole names; and the files that relative imports may mean."""
    wanted: set[str] = set()
    relative: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            wanted.add(node.module or "")
            wanted.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative |= _relative_files(node, key)
    return wanted, relative


def _relative_files(node: ast.ImportFrom, key: str) -> set[str]:
    """The files that ``from .a import b`` may mean in a file."""
    base = key
    for _ in range(node.level):
        base = os.path.dirname(base)
    base = os.path.join(base, *node.module.split(".")) if node.module else base
    modules = [base, *(os.path.join(base, alias.name) for alias in node.names)]
    return {file for module in modules for file in (f"{module}.py", os.path.join(module, "__init__.py"))}


def _above(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name
