"""Runs a script as ``python script.py`` does, and a module as ``python -m module``."""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from irscope.events.raised import place_of
from irscope.protocol import Origin
from irscope.runner import on_cpu
from irscope.usercode.source import overlay_of
from irscope.vocabulary.records import dataclass

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


OnEnd = Callable[[int, str, "BaseException | None"], None]


@dataclass(frozen=True)
class ScriptFailure:
    """The script raised; its traceback has been printed."""

    exit_code: int


def run_as_main(path: str, argv0: str, args: Sequence[str], on_end: OnEnd) -> ScriptFailure | None:
    """Executes the file as the module ``__main__``.

    Args:
        path: Absolute path of the script.
        argv0, args: What it sees as ``sys.argv``.
        on_end: Called when the main module ends, with the exit code that it asks for and, if it failed, a line that
            says how and the exception, if there was one.  Not called if the process ends in another way.

    Raises SystemExit and KeyboardInterrupt as the script did (the interpreter ends a process in its own ways after
    them); any other exception is printed as the interpreter would print it.  No traceback has irscope's frames.
    """
    sys.argv = [argv0, *on_cpu.arguments(args)]
    module = main_module(path)

    def execute() -> None:
        exec(on_cpu.compiled(read_code(path), path), module.__dict__)

    return run_main(execute, path, on_end, lambda stop: f"the script ended with sys.exit({stop.code!r})")


def run_module_as_main(
    name: str,
    args: Sequence[str],
    on_end: OnEnd,
    describe_exit: Callable[[SystemExit], str] | None = None,
) -> ScriptFailure | None:
    """Executes a module, or the ``__main__`` of a package, as ``python -m name`` does: by the same function.

    Args:
        describe_exit: What to say of an exit code other than 0.

    For the rest see `run_as_main`.
    """
    sys.argv = ["-m", *on_cpu.arguments(args)]
    main_module(None)
    as_main: Any = runpy._run_module_as_main  # type: ignore[attr-defined]  # of the standard library: 3.10 to 3.14
    return run_main(lambda: as_main(name), name, on_end, describe_exit or _describe_module_exit)


def _describe_module_exit(stop: SystemExit) -> str:
    if isinstance(stop.code, str) and stop.code.startswith(f"{sys.executable}: "):
        return stop.code.partition(": ")[2]  # runpy: there is no such module
    return f"the module ended with sys.exit({stop.code!r})"


def run_main(
    execute: Callable[[], None],
    path: str,
    on_end: OnEnd,
    describe_exit: Callable[[SystemExit], str],
) -> ScriptFailure | None:
    """Executes a main module, and ends as `run_as_main` does."""
    try:
        execute()
    except SystemExit as stop:
        exit_code = _exit_code(stop)
        on_end(exit_code, "" if exit_code == 0 else _text("SystemExit", describe_exit, stop), None)
        raise
    except KeyboardInterrupt:
        on_end(130, "KeyboardInterrupt", None)
        hook = sys.excepthook
        sys.excepthook = lambda kind, error, traceback: hook(kind, *_without_our_frames(error))
        raise
    except BaseException as error:  # noqa: BLE001  whatever the script raises ends it, as in plain Python
        on_end(1, _text(type(error).__name__, _describe, error, path), error)
        _print_like_the_interpreter(error)
        return ScriptFailure(1)
    on_end(0, "", None)
    return None


def read_code(path: str) -> bytes | str:
    """The text of a file as the run has it: the editor's unsaved one, if there is one.  Raises OSError."""
    overlay = overlay_of(path)
    if overlay is not None:
        return overlay
    with open(path, "rb") as file:
        return file.read()


def main_module(path: str | None) -> types.ModuleType:
    """A fresh ``__main__`` with the attributes that it has in a run without irscope: of that script, or of none yet."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __package__=None, __spec__=None)
    if path is None:
        vars(module)["__loader__"] = importlib.machinery.BuiltinImporter
    else:
        loader = importlib.machinery.SourceFileLoader("__main__", path)
        module.__dict__.update(__file__=path, __cached__=None, __loader__=loader)
    if sys.version_info < (3, 14):
        vars(module)["__annotations__"] = {}
    sys.modules["__main__"] = module
    return module


def _text(otherwise: str, describe: Callable[..., str], *about: object) -> str:
    """What describes an end.  An exception of the script's may raise anything where it is asked for its text."""
    try:
        return describe(*about)
    except BaseException:  # noqa: BLE001
        return otherwise


def _exit_code(stop: SystemExit) -> int:
    try:
        code = stop.code
    except BaseException:  # noqa: BLE001  a property of the script's
        return 1
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    value = int.__index__(code)
    return value & 0xFF if -(1 << 63) <= value < 1 << 63 else 0xFF  # what does not fit into a C long counts as -1


def _describe(error: BaseException, path: str) -> str:
    place = place_of(error)
    if isinstance(error, SyntaxError):
        place = place or Origin(path, error.lineno or 1)
        return f"{type(error).__name__}: {error.msg} ({place.file}:{place.line})"
    text = str(error).strip().split("\n")[0]
    where = f" ({place.file}:{place.line})" if place is not None else ""
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def _print_like_the_interpreter(error: BaseException) -> None:
    sys.excepthook(type(error), *_without_our_frames(error))


def _without_our_frames(error: BaseException) -> tuple[BaseException, types.TracebackType | None]:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        traceback = traceback.tb_next
    return error.with_traceback(traceback), traceback
