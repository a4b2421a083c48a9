"""Files of the user's that hide modules of the standard library, such as a ``json.py`` beside the script.

In ``python script.py`` the script and torch import that file.  irscope has imported the standard library's module
before, and needs it to the end.  So where such files exist, irscope's modules import through another
function, and everybody else sees ``sys.modules`` as if irscope had not been there.
"""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.machinery
import os
import sys
import threading
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

_SUFFIXES = tuple(importlib.machinery.all_suffixes())


def hidden_modules(folder: str, at_start: Collection[str]) -> frozenset[str]:
    """Top-level modules of the standard library that a file or a package in a folder hides.

    Parameters
    ----------
    at_start
        The modules that an interpreter has imported before it looks into the folder: these are never hidden.
    """
    return frozenset(
        name
        for name in _importable(folder)
        if name in sys.stdlib_module_names
        and name not in at_start
        and name not in sys.builtin_module_names
        and importlib.machinery.FrozenImporter.find_spec(name) is None
    )


def _importable(folder: str) -> Iterator[str]:
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for entry in entries:
        suffix = next((suffix for suffix in _SUFFIXES if entry.endswith(suffix)), None)
        if suffix is not None:
            yield entry.removesuffix(suffix)
        elif entry.isidentifier() and any(
            os.path.isfile(os.path.join(folder, entry, f"__init__{suffix}")) for suffix in _SUFFIXES
        ):
            yield entry


class Shield(importlib.abc.MetaPathFinder):
    """Gives irscope's modules the standard library's modules although a file hides them.

    It holds for what is imported after `raise_it`.

    Parameters
    ----------
    package
        The name of the package whose modules are shielded.
    hidden
        Top-level modules that a file hides.
    """

    def __init__(self, package: str, hidden: frozenset[str]) -> None:
        self._package, self._hidden = package + ".", hidden
        self._ours: dict[str, types.ModuleType] = {}
        self._lock = threading.RLock()
        self._builtins = {**vars(builtins), "__import__": self._import}
        self._revealed = False

    def raise_it(self) -> None:
        """From now on modules of the package are loaded with imports of their own."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The place of a module of the package; None for every other module."""
        if not name.startswith(self._package):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self._builtins)
        return spec

    def reveal(self) -> None:
        """From now on everybody else imports what the files hold."""
        with self._lock:
            self._ours = self._take_out()
            self._revealed = True

    def _take_out(self) -> dict[str, types.ModuleType]:
        names = [name for name in sys.modules if name.partition(".")[0] in self._hidden]
        return {name: sys.modules.pop(name) for name in names}

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> types.ModuleType:
        if level != 0 or name.partition(".")[0] not in self._hidden:
            return builtins.__import__(name, globals, locals, fromlist, level)
        with self._lock:
            theirs = self._take_out() if self._revealed else {}
            first, sys.path[0] = sys.path[0], os.path.dirname(os.__file__)
            sys.modules.update(self._ours)
            try:
                return builtins.__import__(name, globals, locals, fromlist, level)
            finally:
                sys.path[0] = first
                if self._revealed:
                    self._ours = self._take_out()
                    sys.modules.update(theirs)


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module that sees other built-in names."""

    def __init__(self, name: str, path: str, names: dict[str, Any]) -> None:
        super().__init__(name, path)
        self._names = names

    def exec_module(self, module: types.ModuleType) -> None:
        """Execute it, with these names."""
        module.__dict__["__builtins__"] = self._names
        super().exec_module(module)


_raised: list[Shield] = []


def shield_from(folder: str, at_start: Collection[str]) -> None:
    """Shields irscope's modules that are imported from now on, if the folder hides modules of the standard library."""
    if hidden := hidden_modules(folder, at_start):
        _raised.append(Shield(__name__.partition(".")[0], hidden))
        _raised[-1].raise_it()


def reveal_hidden() -> None:
    """Lets the script and everything that it imports see the files, if there are any."""
    for shield in _raised:
        shield.reveal()
