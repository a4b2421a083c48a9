"""Files of the user's that hide modules of the standard library or irscope itself, such as a ``json.py`` or an
``irscope.py`` beside the script.

In ``python script.py`` the script and torch import that file.  irscope has imported the standard library's module
before, and needs it to the end; its own modules are in ``sys.modules``, too.  So where such files exist, irscope's
modules import through another function, and everybody else sees ``sys.modules`` as if irscope had not been there:
irscope is there by another name.
"""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

_SUFFIXES = tuple(importlib.machinery.all_suffixes())
_STANDARD = [path for path in sys.path if path.startswith(os.path.dirname(os.__file__)) and "-packages" not in path]
"""Where the standard library is: its folder, and that of its modules in C."""
_IRSCOPE, _BY_ANOTHER_NAME = "irscope", "_irscope"


def first_folders(folder: str) -> list[str]:
    """Where a script in a folder looks for modules before the standard library: there, and in ``PYTHONPATH``."""
    entries = sys.path if getattr(sys.flags, "safe_path", False) else [folder, *sys.path[1:]]
    standard = os.path.dirname(os.__file__)
    return entries[: entries.index(standard)] if standard in entries else entries[:1]


def is_irscope_hidden(folder: str) -> bool:
    """Whether ``import irscope`` in a script in that folder finds another package or module than this tool."""
    ours, first = sys.modules.pop(_IRSCOPE), sys.path[0]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
    try:
        spec = importlib.util.find_spec(_IRSCOPE)
    except Exception:  # noqa: BLE001  a finder that the user has installed
        return False
    finally:
        sys.modules[_IRSCOPE], sys.path[0] = ours, first
    return spec is not None and not any(
        os.path.isfile(os.path.join(place, "driver", "boot.py")) for place in spec.submodule_search_locations or ()
    )


def hidden_modules(folder: str, at_start: Collection[str]) -> frozenset[str]:
    """Top-level modules of the standard library that a file or a package in a folder hides.

    Args:
        at_start: The modules that an interpreter has imported before it looks into the folder: these are never hidden.
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
    """Gives irscope's modules the standard library's modules, and each other, although a file hides them.

    It holds for what is imported after `raise_it`.

    Args:
        package: The name by which ``sys.modules`` has the package whose modules are shielded; they say ``irscope``.
        hidden: Top-level modules that a file hides.
    """

    def __init__(self, package: str, hidden: frozenset[str]) -> None:
        self._package, self._hidden = package, hidden
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
        if not name.startswith(self._package + "."):
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
        top, dot, rest = name.partition(".")
        if level == 0 and top == _IRSCOPE:
            name = self._package + dot + rest
        if level != 0 or top not in self._hidden:
            return builtins.__import__(name, globals, locals, fromlist, level)
        with self._lock:
            theirs = self._take_out() if self._revealed else {}
            sys.path[:0] = _STANDARD
            sys.modules.update(self._ours)
            try:
                return builtins.__import__(name, globals, locals, fromlist, level)
            finally:
                del sys.path[: len(_STANDARD)]
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


def shield_from(folder: str, at_start: Collection[str]) -> str:
    """Shields irscope's modules that are imported from now on from what a script in that folder would import.

    Returns the name by which they are to be imported.
    """
    package = _IRSCOPE
    if is_irscope_hidden(folder):
        package = _BY_ANOTHER_NAME
        _rename()
    hidden = frozenset(name for first in first_folders(folder) for name in hidden_modules(first, at_start))
    if hidden or package != _IRSCOPE:
        _raised.append(Shield(package, hidden))
        _raised[-1].raise_it()
    return package


def _rename() -> None:
    """Has ``sys.modules`` know irscope's modules by another name."""
    for name in [name for name in sys.modules if name.partition(".")[0] == _IRSCOPE]:
        module: Any = sys.modules.pop(name)
        module.__name__ = _BY_ANOTHER_NAME + name.removeprefix(_IRSCOPE)
        module.__spec__.name = module.__name__
        module.__package__ = module.__spec__.parent
        sys.modules[module.__name__] = module


def reveal_hidden() -> None:
    """Lets the script and everything that it imports see the files, if there are any."""
    for shield in _raised:
        shield.reveal()
