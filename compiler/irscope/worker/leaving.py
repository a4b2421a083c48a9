"""How a run's process ends that is a fork of the worker: as an interpreter ends, but sooner.

Taking torch apart, as an interpreter does at its end, costs a fork a quarter of a second, most of it for copying the
pages that it shares with the worker.  None of that can be seen from outside.  What can be seen is done here, in the
interpreter's order: threads are waited for, functions at exit run, streams are flushed, and the script's own modules
and objects go, with their ``__del__``.  If anything is left then that could still say or write something, the
interpreter's own end is taken after all.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
import threading
import types
import weakref
from collections.abc import Collection
from typing import Any

from irscope.worker.modules import ModuleKind, kind_of_file

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def leave(code: object, known: Collection[str]) -> None:
    """Ends the process with an exit code, or returns if the interpreter has to do it.

    Args:
        code: What the script gave to ``sys.exit``; None if it ran to its end.  No traceback may be alive any more.
        known: The modules that the worker had imported; the others are the run's own.
    """
    code = 0 if code is None else code
    if type(code) is not int or not 0 <= code <= 255 or sys.warnoptions or os.environ.get("PYTHONINSPECT"):
        return
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if len(sys._current_frames()) > 1 or not _flushed():
        return  # a thread that goes on would see its modules go; and a stream that cannot be flushed changes the code
    _drop_modules(known)
    if not _flushed() or _could_still_speak():
        return
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).fflush(None)  # what C code printed
    os._exit(code)


def _flushed() -> bool:
    for stream in {id(stream): stream for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)}.values():
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:  # noqa: BLE001  whatever the script has put there
            return False
    return True


def _drop_modules(known: Collection[str]) -> None:
    """What the interpreter does with all modules (``finalize_modules``), for those of the run."""
    names = [name for name in sys.modules if name not in known or name == "__main__"]
    modules = [sys.modules.pop(name) for name in names if name != "__main__"]
    modules.insert(0, sys.modules.pop("__main__", types.ModuleType("__main__")))
    left = [weakref.ref(module) for module in modules if isinstance(module, types.ModuleType)]
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        sys.__dict__.pop(name, None)
    others, finders = dict(sys.modules), sys.meta_path
    sys.modules.clear()  # a finalizer can import nothing any more
    sys.meta_path = None  # type: ignore[assignment]
    modules.clear()
    gc.collect()
    for reference in reversed(left):
        if (module := reference()) is not None:
            _clear(module.__dict__)
            del module
    gc.collect()
    sys.modules.update(others)
    sys.meta_path = finders


def _clear(names: dict[str, Any]) -> None:
    """Like ``_PyModule_Clear``: names with one underscore first, then all others; functions that still run find
    None."""
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name.startswith("_") and not name.startswith("__")) == private:
                names[name] = None


def _could_still_speak() -> bool:
    """Whether something of the run is left that does something when it goes; `gc.freeze` hides what is the worker's."""
    torch = os.path.dirname(sys.modules["torch"].__file__ or "")
    try:
        return any(_speaks(one, type(one), torch) for one in gc.get_objects())
    except Exception:  # noqa: BLE001  a class of the script's with its own ideas
        return True


def _speaks(one: object, kind: type, torch: str) -> bool:
    if issubclass(kind, (io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)):
        return not one.closed and one.writable()  # type: ignore[attr-defined]
    if kind in (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType):  # the user's ``finally`` runs
        code = next(code for name in ("gi_code", "cr_code", "ag_code") if (code := getattr(one, name, None)))
        return kind_of_file(code.co_filename) is ModuleKind.OWN and not code.co_filename.startswith(("<", _OURS))
    code = getattr(getattr(kind, "__del__", None), "__code__", None)
    return code is not None and not code.co_filename.startswith((torch, _OURS))
