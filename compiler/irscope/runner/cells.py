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

from irscope.runner import on_cpu
from irscope.runner.script import OnEnd, ScriptFailure, main_module, run_main
from irscope.runner.standins import Nothing, StandIns
from irscope.usercode.source import overlay_of

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def run_cells_as_main(
    notebook: str,
    cells: Sequence[str],
    args: Sequence[str],
    on_end: OnEnd,
    on_missing: Callable[[str], None],
) -> ScriptFailure | None:
    """Executes the texts of the cells, which are overlays; the first one that fails is the last one that runs.

    Args:
        notebook: Its absolute path.
        cells: Names of its cells: their code objects have them as file names.
        on_missing: Called with the name of a package of a notebook's front end that is not installed (`standins.py`).

    A cell may ``await`` at its top level; all of them share an event loop.  For the rest see `run_as_main`.
    """
    sys.argv = [notebook, *on_cpu.arguments(args)]
    namespace = main_module(None).__dict__
    own = {"get_ipython": _get_ipython, "display": _display}
    namespace.update(own)
    finder: Any = StandIns(own, on_missing)
    sys.meta_path.append(finder)
    sys.excepthook = _print_traceback

    def execute() -> None:
        inherited = 0
        loop: Any = None
        try:
            for name in cells:
                text = overlay_of(name) or ""
                flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | inherited
                code = on_cpu.compiled(text, name, flags)
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


def _get_ipython() -> Nothing:
    """Ignores what a cell asks of the kernel, since there is none."""
    return Nothing()


def _display(*objects: object, **keywords: Any) -> Nothing | None:
    """Prints, as IPython's does without a kernel; an object that cannot be printed does not end the cell."""
    for one in objects:
        try:
            text = repr(one)
        except Exception as error:  # noqa: BLE001  whatever a __repr__ raises
            text = f"<{type(one).__name__}, whose repr() raised {type(error).__name__}: {error}>"
        print(text)
    return Nothing() if keywords.get("display_id") else None
