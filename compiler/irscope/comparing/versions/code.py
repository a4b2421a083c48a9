"""Which functions of PyTorch's compiler differ between two environments.  Their source is read; nothing is imported."""

from __future__ import annotations

import ast
import os
import re
import textwrap
from collections.abc import Iterable, Iterator

from irscope.comparing.versions.environments import FUNCTION, EnvironmentChange
from irscope.vocabulary.records import dataclass

_NAME = re.compile(r"torch(?:\.\w+)+:\w+(?:\.\w+)*")
_MOST_BYTES = 8 << 20


@dataclass(frozen=True)
class Refusal:
    """A place at which Dynamo gave up while it traced.

    Args:
        gb_type: The type of the break in PyTorch's registry; empty if it has none.
        functions: Dynamo's functions that were running, the innermost first:
            ``torch._dynamo.variables.lists:ListVariable.call_method``.
        places: Lines that were being traced, as ``file:line``, the innermost first.
    """

    gb_type: str
    functions: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True)
class FunctionChange:
    """A function whose text differs in the newer environment; ``text`` is the older one, empty if it is new."""

    change: EnvironmentChange
    name: str
    text: str


class Installation:
    """The texts of one installation of PyTorch.

    Args:
        folder: Where the package torch is.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._modules: dict[str, tuple[str, ast.Module] | None] = {}

    def text(self, name: str) -> str:
        """The text of ``module:function`` or ``module:Class.method`` with its decorators; empty if there is none."""
        found = self._find(name)
        if found is None:
            return ""
        source, node = found
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        return textwrap.dedent("\n".join(source.split("\n")[first - 1 : node.end_lineno]))

    def methods(self, name: str) -> set[str]:
        """Names of the functions of the class that ``module:Class.method`` is in; empty for a function of a module."""
        owner, dot, _ = name.rpartition(".")
        found = self._find(owner) if dot and ":" in owner else None
        if found is None or not isinstance(found[1], ast.ClassDef):
            return set()
        return {f"{owner}.{one.name}" for one in found[1].body if isinstance(one, ast.FunctionDef)}

    def functions_with(self, words: set[str], package: str) -> list[str]:
        """Functions of the modules of a package, and methods of their classes, in whose texts one of the words is."""
        folder = os.path.join(self._folder, *package.split(".")[1:])
        pattern = re.compile(rf"(?<![A-Za-z_])(?:{'|'.join(map(re.escape, sorted(words)))})(?![A-Za-z])")
        found = []
        files = os.listdir(folder) if words and os.path.isdir(folder) else ()  # a version may lack the package
        for file in sorted(one for one in files if one.endswith(".py")):
            module = f"{package}.{file[:-3]}"
            source = _text(os.path.join(folder, file))
            parsed = self._parsed(module) if pattern.search(source) else None
            if parsed is not None:
                lines = source.split("\n")
                found += [
                    f"{module}:{name}" for name, node in _functions(parsed[1])
                    if pattern.search("\n".join(lines[node.lineno - 1 : node.end_lineno]))
                ]  # fmt: skip
        return found

    def _find(self, name: str) -> tuple[str, ast.FunctionDef | ast.ClassDef] | None:
        if not _NAME.fullmatch(name):
            return None
        module, _, path = name.partition(":")
        parsed = self._parsed(module)
        if parsed is None:
            return None
        source, holder = parsed
        found: ast.FunctionDef | ast.ClassDef | None = None
        body = holder.body
        for part in path.split("."):
            defined = [one for one in body if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and one.name == part]
            if not defined:
                return None
            found = defined[-1]
            body = found.body
        return (source, found) if found is not None else None

    def _parsed(self, module: str) -> tuple[str, ast.Module] | None:
        if module not in self._modules:
            path = os.path.join(self._folder, *module.split(".")[1:])
            self._modules[module] = _read(f"{path}.py") or _read(os.path.join(path, "__init__.py"))
        return self._modules[module]


def _read(path: str) -> tuple[str, ast.Module] | None:
    text = _text(path)
    try:
        return (text, ast.parse(text)) if text else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_MOST_BYTES)
    except (OSError, ValueError):
        return ""


def _functions(module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for one in module.body:
        if isinstance(one, ast.FunctionDef):
            yield one.name, one
        elif isinstance(one, ast.ClassDef):
            yield from ((f"{one.name}.{inner.name}", inner) for inner in one.body if isinstance(inner, ast.FunctionDef))


def function_changes(old: Installation, new: Installation, names: Iterable[str]) -> list[FunctionChange]:
    """The functions among these whose texts differ.  A function inside of another one is a part of it."""
    found: dict[str, FunctionChange] = {}
    for name in names:
        outer = name.partition(".<locals>")[0]
        was, now = old.text(outer), new.text(outer)
        if outer not in found and was != now:
            found[outer] = FunctionChange(
                EnvironmentChange(FUNCTION, outer.replace(":", "."), _has(was), _has(now)), outer, was
            )
    return list(found.values())


def new_methods(old: Installation, new: Installation, names: Iterable[str]) -> list[FunctionChange]:
    """What the classes of these functions have in the newer environment alone."""
    owned = {method for name in names for method in new.methods(name.partition(".<locals>")[0])}
    return function_changes(old, new, sorted(one for one in owned if not old.text(one)))


def _has(text: str) -> str:
    return f"{len(text.splitlines())} lines" if text else ""
