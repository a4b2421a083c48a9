"""Runs a function as soon as a module has been imported.

irscope does not import torch before the script does: many scripts set environment variables first, and torch reads
them while it is imported.  So what has to touch a torch module waits for the script to import it.

Python's garbage collector rests while torch is imported.  Hardly anything that the import makes is ever garbage, but
the collector would go through all of it time and again, then and in each compile: a tenth of the processor time of a
small script, with irscope and without.  So what is there after the import is frozen, as it is in the worker's forks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator, Sequence

_QUIET = "torch"


class ImportWatcher(importlib.abc.MetaPathFinder):
    """A finder that finds nothing by itself, but calls back after the modules that were asked for."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callable[[types.ModuleType], None]]] = {}

    def install(self) -> None:
        """Put the finder first, so that it sees every import."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Take the finder out and forget all callbacks."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._waiting.clear()

    def when_imported(self, name: str, callback: Callable[[types.ModuleType], None]) -> None:
        """Calls back with the module: now if it is there already, else right after its code has run."""
        module = sys.modules.get(name)
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            callback(module)
        else:
            self._waiting.setdefault(name, []).append(callback)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec from another finder, with the callbacks added to the loader; None if no callback waits for it."""
        callbacks = self._waiting.pop(fullname, [])
        if not callbacks and fullname != _QUIET:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _call_after(spec.loader, callbacks, quietly=fullname == _QUIET)
                return spec
        return None


def _call_after(
    loader: importlib.abc.Loader, callbacks: list[Callable[[types.ModuleType], None]], quietly: bool
) -> None:
    """Makes this one loader object, which serves one module, call back when it has executed it."""
    execute = loader.exec_module

    def exec_module(module: types.ModuleType) -> None:
        del loader.exec_module  # the class's own again
        with _collector_rests() if quietly else contextlib.nullcontext():
            execute(module)
        for callback in callbacks:
            callback(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]


@contextlib.contextmanager
def _collector_rests() -> Iterator[None]:
    """Freezes what is there at its end.  A collector that the script has stopped is left as it is."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
