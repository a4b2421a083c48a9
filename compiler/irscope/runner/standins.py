"""Stand-ins for a notebook's front end: objects that accept everything and do nothing.

A notebook's kernel often runs in another environment than irscope's interpreter, so what only draws on the screen may
not be installed there.  A cell that imports it goes on with a stand-in; that it was left out is told.
"""

from __future__ import annotations

import ast
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irscope.internals.frames import callers
from irscope.usercode.notebooks import notebook_of
from irscope.usercode.source import overlay_of

FRONT_END = frozenset({"IPython", "ipykernel", "ipywidgets", "ipympl"})
"""Packages that do nothing without a notebook's front end."""


class Nothing:
    """It does nothing on every request: called, entered, iterated over, asked for attributes, derived from."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """A function that it decorates stays what it was."""
        return args[0] if len(args) == 1 and not keywords and isinstance(args[0], types.FunctionType) else Nothing()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __contains__(self, _: object) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __getitem__(self, _: object) -> Any:
        return Nothing()

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def __bool__(self) -> bool:
        return False

    def __mro_entries__(self, _: object) -> tuple[type, ...]:
        return (Nothing,)


class StandIns:
    """A finder after all others: gives a cell what is missing of the front end.

    Libraries get no stand-in, nor does an import that is ready not to find it (``try: import ipywidgets``): they go on
    as they would.

    Args:
        given: Names of a notebook's own that the stand-in of ``IPython`` has, too.
        on_missing: Called once with the name of each package that a stand-in took the place of.
    """

    def __init__(self, given: dict[str, Any], on_missing: Callable[[str], None]) -> None:
        self._given = given
        self._on_missing = on_missing

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a stand-in; None for modules that are not part of a notebook's front end, or are installed."""
        package, _, part = name.partition(".")
        if package not in FRONT_END or (part and not isinstance(sys.modules.get(package), _StandIn)):
            return None  # or it is installed, and this part of it is not there
        if not part:
            if not _imported_by_a_cell():
                return None
            self._on_missing(package)
        loader: Any = self
        return importlib.machinery.ModuleSpec(name, loader, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The stand-in itself."""
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Give the stand-in what is known about the front end."""
        vars(module).update(self._given)


class _StandIn(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __bool__(self) -> bool:
        """Libraries that look for a notebook in ``sys.modules`` find none."""
        return False


def _imported_by_a_cell() -> bool:
    importing = ("<frozen importlib", __file__)
    frame = next((frame for frame in callers() if not frame.f_code.co_filename.startswith(importing)), None)
    if frame is None or notebook_of(frame.f_code.co_filename) is None:
        return False
    line = frame.f_lineno
    tree = ast.parse(overlay_of(frame.f_code.co_filename) or "")
    return not any(
        isinstance(node, ast.Try) and node.handlers and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
        for node in ast.walk(tree)
    )
