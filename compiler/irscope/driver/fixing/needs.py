"""What most fixes need beside irscope: LibCST, which has binary wheels and so is not part of the extension."""

from __future__ import annotations

import functools
import importlib.util
import os
import site
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

NEEDS = "libcst>=1.8.2,<2"
"""What the extra ``fix`` of pyproject.toml asks for."""
_OF_LIBCST = ("libcst", "yaml", "_yaml", "yaml_ft")
"""What it is made of, and what that imports."""


def is_missing() -> bool:
    """Whether LibCST cannot be imported by this interpreter.

    VS Code starts the server without the interpreter's own packages, so that it gets the libraries that it was tested
    with.  LibCST alone is then taken from among them.
    """
    if sys.flags.no_site:
        _take_from_packages()
    return importlib.util.find_spec("libcst") is None


@functools.cache
def _take_from_packages() -> None:
    sys.meta_path.append(_OfPackages(_package_folders()))


def _package_folders(python: str = sys.executable) -> list[str]:
    """Where an interpreter that runs without its own packages has them: those of its environment, else its own."""
    around = os.path.dirname(os.path.dirname(os.path.abspath(python)))
    if os.path.exists(os.path.join(around, "pyvenv.cfg")):
        return site.getsitepackages([around])
    return [*site.getsitepackages(), site.getusersitepackages()]


class _OfPackages(MetaPathFinder):
    """Finds LibCST in folders, and what it needs; nothing else in there."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Of a module that is not inside of another one."""
        return PathFinder.find_spec(name, self._folders) if path is None and name in _OF_LIBCST else None


def install_command(python: str = sys.executable) -> str:
    """The command that installs it for an interpreter; quoted for the shells of all systems."""
    name = f'"{python}"' if " " in python else python
    return f'{name} -m pip install "{NEEDS}"'
