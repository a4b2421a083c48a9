"""The owner of a module: the standard library's, an installed package's, or the user's own; and how it is found."""

from __future__ import annotations

import enum
import importlib.machinery
import os
import sys
import sysconfig
import types
from collections.abc import Collection, Sequence


class ModuleKind(enum.Enum):
    """Who a module belongs to."""

    STANDARD = "the standard library"
    INSTALLED = "an installed package"
    OWN = "the user's own files, packages that are installed in editable form among them"


_STANDARD = tuple(
    os.path.realpath(folder) + os.sep
    for name in ("stdlib", "platstdlib")
    if (folder := sysconfig.get_paths().get(name))
)


def is_package_folder(path: str) -> bool:
    """Whether an entry of ``sys.path`` is one into which packages are installed."""
    return os.path.basename(path.rstrip(os.sep)) in ("site-packages", "dist-packages")


def kind_of_file(file: str) -> ModuleKind:
    """Who the file of a module belongs to."""
    if any(file.startswith(folder.rstrip(os.sep) + os.sep) for folder in sys.path if is_package_folder(folder)):
        return ModuleKind.INSTALLED
    return ModuleKind.STANDARD if os.path.realpath(file).startswith(_STANDARD) else ModuleKind.OWN


def find(name: str, first: str) -> importlib.machinery.ModuleSpec | None:
    """Finds a top-level module as a script in the folder ``first`` would, without importing anything."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    before, had = sys.path[0], first in sys.path_importer_cache
    sys.path[0] = first
    try:
        for finder in sys.meta_path:
            if hasattr(finder, "find_spec") and (spec := finder.find_spec(name, None)) is not None:
                return spec
    except Exception:  # noqa: BLE001  a finder that the user has installed
        return None
    finally:
        sys.path[0] = before
        if not had:  # what lies there now must not be remembered
            sys.path_importer_cache.pop(first, None)
    return None


class AskedNames:
    """A finder that finds nothing, and remembers which top-level modules were looked for, found or not."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __enter__(self) -> AskedNames:
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None, _target: types.ModuleType | None = None) -> None:
        """Note the name of a top-level module; returns None, so that the next finder is asked."""
        if path is None:
            self.names.add(name)


def hiding(folders: Collection[str], names: Collection[str]) -> str:
    """A file of the user's that would be imported in place of one of these modules; empty if there is none."""
    for folder in folders:
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            stem, dot, _ = entry.partition(".")
            path = os.path.join(folder, entry)
            if stem not in names or getattr(sys.modules.get(stem), "__file__", None) in (path, _init(path)):
                continue
            if entry.endswith((".py", ".so", ".pyd")) or (not dot and os.path.isfile(_init(path))):
                return path
    return ""


def _init(folder: str) -> str:
    return os.path.join(folder, "__init__.py")
