"""Runs the cells of a notebook, one after the other, in one ``__main__``: as a kernel does, without a kernel."""

from __future__ import annotations
import __future__

import ast
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from irscope.runner.script import ScriptFailure, main_module, run_main
from irscope.source import overlay_of

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def run_cells_as_main(
    notebook: str, cells: Sequence[str], args: Sequence[str], on_end: Callable[[int, str], None]
) -> ScriptFailure | None:
    """Executes the texts of the cells, which are overlays; the first one that fails is the last one that runs.

    Parameters
    ----------
    notebook
        Its absolute path.
    cells
        Names of its cells: their code objects have them as file names.

    A cell may ``await`` at its top level; all of them share an event loop.  For the rest see `run_as_main`.
    """
    sys.argv = [notebook, *args]
    namespace = main_module(None).__dict__
    namespace.update(get_ipython=_get_ipython, display=_display)
    sys.excepthook = _print_traceback

    def execute() -> None:
        inherited = 0
        loop: Any = None
        try:
            for name in cells:
                text = overlay_of(name) or ""
                flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | inherited
                code = compile(text, name, "exec", flags, dont_inherit=True)
                inherited |= code.co_flags & _FUTURE  # `from __future__ import …` holds for the cells below, too
                if code.co_flags & inspect.CO_COROUTINE:
                    loop = loop or importlib.import_module("asyncio").new_event_loop()
                    loop.run_until_complete(eval(code, namespace))
                else:
                    exec(code, namespace)
        finally:
            if loop is not None:
                loop.close()

    return run_main(execute, notebook, on_end, lambda stop: f"the notebook ended with sys.exit({stop.code!r})")


def _print_traceback(kind: type[BaseException], error: BaseException, where: types.TracebackType | None) -> None:
    """The interpreter's own hook reads source lines from files, and a cell is none; this one knows the overlays."""
    traceback: Any = importlib.import_module("traceback")
    traceback.print_exception(kind, error, where)


class _NoShell:
    """What ``get_ipython()`` gives a cell: there is no kernel, so whatever it is asked to do it leaves undone."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **keywords: None


def _get_ipython() -> _NoShell:
    return _NoShell()


def _display(*objects: object, **keywords: Any) -> None:
    """Prints, as IPython's does where there is no kernel."""
    print(*map(repr, objects), sep="\n")
