"""Which files here are those that a trace names: it was recorded in another folder, often on another machine.

A trace is not trusted.  So a path of it is read only if it is the absolute one of a Python file, and what is not so is
shown in angle brackets, which no file is looked up for.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence

from irscope.usercode.user_files import add_library_folder, set_torch_folder
from irscope.vocabulary.records import dataclass

_IN_TEXT = re.compile(
    r'(File:? \\?"?|Filename: |in user code at )((?:/|[A-Za-z]:[\\/])[^"\n]{1,2000}?\.py)(?=["\\:,\s]|$)'
)
_TORCH = re.compile(r"^(.*/torch)/_(?:dynamo|inductor|logging)/")
_STDLIB = re.compile(r"^(.*/lib(?:64)?/python3\.\d+)/")
_MOST_FILES, _LONGEST = 200_000, 4096
_PRUNED = frozenset(("node_modules", "__pycache__", "site-packages", "dist-packages", "build"))


@dataclass(frozen=True)
class Roots:
    """Where sources are.

    Args:
        folder: Below it a file is looked for by the end of its path.
        is_first: Whether that has priority over the path in the trace.
        replaced: Beginnings of paths and what stands for them, as ``--map A=B``.
    """

    folder: str
    is_first: bool = False
    replaced: tuple[tuple[str, str], ...] = ()


class Paths:
    """Maps the paths of one trace."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._known: dict[str, str] = {}
        self.ambiguous: dict[str, Sequence[str]] = {}

    def local(self, path: str) -> str:
        """The path to use in place of one of the trace."""
        if (known := self._known.get(path)) is None:
            known = self._known[path] = self._find(path[:_LONGEST])
        return known

    def in_text(self, text: str) -> str:
        """A text with the paths in it, as PyTorch prints stacks, replaced."""
        if ".py" not in text:
            return text
        return _IN_TEXT.sub(lambda match: match[1] + self._shown(match[2]), text)

    def _shown(self, path: str) -> str:
        return self.local(path)

    def _find(self, path: str) -> str:
        if path.startswith("<"):
            return path
        plain = path.replace("\\", "/")
        if ".." in plain.split("/") or "\0" in path or not path.endswith((".py", ".ipynb")):
            return f"<{path}>"
        if _is_of_library(plain):
            return path
        for before, after in self._roots.replaced:
            if plain.startswith(before):
                return os.path.abspath(after + plain[len(before) :])
        is_here = os.path.isabs(path) and os.path.isfile(path)
        if is_here and not self._roots.is_first:
            return path
        return self._by_end(plain) or (path if os.path.isabs(path) or path[1:2] == ":" else f"<{path}>")

    def _by_end(self, path: str) -> str:
        """The one file below the folder whose path has the longest end in common; empty if there is none, or several."""
        parts = path.split("/")
        best, most = [], 0
        for candidate in _files_below(self._roots.folder).get(parts[-1], ()):
            alike = _alike(parts, candidate.replace("\\", "/").split("/"))
            if alike > most:
                best, most = [candidate], alike
            elif alike == most:
                best.append(candidate)
        if len(best) > 1:
            self.ambiguous[path] = best
        return best[0] if len(best) == 1 else ""


def _is_of_library(path: str) -> bool:
    """Whether a file is PyTorch's, Python's or of an installed package; notes where the first two are."""
    if match := _TORCH.match(path):
        set_torch_folder(match[1])
    elif match := _STDLIB.match(path):
        add_library_folder(match[1])
    else:
        return "/site-packages/" in path or "/dist-packages/" in path
    return True


def _alike(one: list[str], other: list[str]) -> int:
    number = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        number += 1
    return number


@functools.lru_cache(maxsize=4)
def _files_below(folder: str) -> dict[str, list[str]]:
    """The Python files below a folder, by name; not those of hidden folders and installed packages."""
    found: dict[str, list[str]] = {}
    seen = 0
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders
            if not name.startswith(".") and name not in _PRUNED and not os.path.exists(os.path.join(at, name, "pyvenv.cfg"))
        )  # fmt: skip
        for name in files:
            if name.endswith(".py"):
                found.setdefault(name, []).append(os.path.join(at, name))
        seen += len(files) + len(folders)
        if seen > _MOST_FILES:
            break
    return found
