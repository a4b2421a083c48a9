"""What a Python debugger leaves in the environment of those it starts, and a run must not find there.

An editor's terminal, or a script that is being debugged, hands its variables on.  With them pydevd (the core of debugpy)
would trace the run too, or wait for a debugger that never comes; Dynamo skips frames that are traced.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES = ("PYDEVD_", "DEBUGPY_", "VSCODE_DEBUGPY_")
_DEBUGGERS = ("pydevd", "debugpy")


def without_debugger(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those of pydevd and debugpy.

    ``breakpoint()`` does nothing if it would have called them, as it does where no debugger is attached; another
    debugger that the user has named stays.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith(_NAMES)}
    if kept.get("PYTHONBREAKPOINT", "").partition(".")[0] in _DEBUGGERS:
        kept["PYTHONBREAKPOINT"] = "0"
    if "PYTHONPATH" in kept:
        folders = kept["PYTHONPATH"].split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if not _is_of_debugger(folder))
    return kept


def _is_of_debugger(folder: str) -> bool:
    """Holds the `sitecustomize` or the modules by which pydevd gets into every interpreter that is started."""
    parts = folder.replace("\\", "/").split("/")
    return "pydev_sitecustomize" in parts or "pydevd" in parts
